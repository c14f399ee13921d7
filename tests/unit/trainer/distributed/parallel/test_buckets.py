"""Buckets of gradients: their layout, what is sent of them, and when, with a stand-in for the sum over ranks."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from trainer.distributed.parallel.buckets import Bucket, GradientSync, lay_out

SIZES = (4, 3, 5, 1)  # numbers of each parameter, first to last


def parameters(*sizes: int, dtype: torch.dtype = torch.float32) -> list[nn.Parameter]:
    return [nn.Parameter(torch.arange(size, dtype=dtype)) for size in sizes]


class Layers(nn.Module):
    """Parameters in a row; `used` of them enter the loss, each with a gradient of its own number."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = nn.ParameterList(parameters(*SIZES))

    def loss(self, used: tuple[int, ...] = (0, 1, 2, 3)) -> Tensor:
        return torch.stack([(number + 1) * self.rows[number].sum() for number in used]).sum()


class Twice:
    """STAND-IN for two ranks with equal gradients: each sum is twice what was sent, and there once it is waited for."""

    def __init__(self) -> None:
        self.sent: list[Tensor] = []
        self.waited: list[int] = []

    def __call__(self, flat: Tensor) -> Callable[[], None]:
        self.sent.append(flat.clone())
        number = len(self.sent) - 1

        def wait() -> None:
            self.waited.append(number)
            flat.mul_(2)

        return wait


@pytest.mark.parametrize(
    ("limit", "expected"),
    [(1, [[1], [5], [3], [4]]), (24, [[1, 5], [3], [4]]), (28, [[1, 5], [3, 4]]), (52, [[1, 5, 3, 4]])],
)
def test_layout_begins_with_the_last_parameters_and_keeps_the_limit(limit: int, expected: list[list[int]]) -> None:
    found = lay_out(parameters(*SIZES), limit)
    assert [[parameter.numel() for parameter in bucket.parameters] for bucket in found] == expected


def test_layout_has_one_dtype_a_bucket_and_leaves_frozen_parameters_out() -> None:
    mixed = [*parameters(2), *parameters(3, dtype=torch.float64), *parameters(4)]
    frozen = nn.Parameter(torch.zeros(9), requires_grad=False)
    found = lay_out([*mixed, frozen], 10**6)
    assert [(bucket.flat.dtype, len(bucket.parameters)) for bucket in found] == [
        (torch.float32, 1), (torch.float64, 1), (torch.float32, 1),
    ]  # fmt: skip


def test_missing_gradient_is_sent_as_zeros_without_a_mark_and_stays_missing() -> None:
    first, second = parameters(2, 3)
    bucket = Bucket([first, second])
    bucket.flat.fill_(7)  # of an earlier step
    first.grad = torch.tensor([5.0, 6.0])
    bucket.fill()
    assert bucket.flat.tolist() == [5, 6, 0, 0, 0, 1, 0]
    bucket.flat.mul_(3)
    bucket.write_gradients()
    assert first.grad.tolist() == [15, 18]
    assert second.grad is None


def test_gradient_that_another_rank_alone_has_is_written() -> None:
    first, second = parameters(2, 3)
    bucket = Bucket([first, second])
    first.grad = torch.ones(2)
    bucket.fill()
    bucket.flat.add_(torch.tensor([0.0, 0, 1, 2, 3, 0, 1]))  # what the other rank sent
    bucket.write_gradients()
    assert second.grad is not None
    assert second.grad.tolist() == [1, 2, 3]
    bucket.flat.zero_()
    assert second.grad.tolist() == [1, 2, 3]  # a copy, as the bucket is used again


def test_sums_are_in_the_gradients_after_finish_in_the_order_of_the_buckets() -> None:
    model, add = Layers(), Twice()
    sync = GradientSync(model, add, limit_bytes=1)
    sync.arm()
    model.loss().backward()
    assert len(add.sent) == len(SIZES)  # all while backward ran
    sync.flush()
    sync.finish()
    assert [flat.numel() for flat in add.sent] == [2, 6, 4, 5]  # numbers and their marks, the last parameter first
    assert add.waited == [0, 1, 2, 3]
    for number, weight in enumerate(model.rows):
        assert weight.grad is not None
        assert weight.grad.tolist() == [2.0 * (number + 1)] * SIZES[number]


def test_bucket_is_never_sent_before_those_in_front_of_it() -> None:
    model, add = Layers(), Twice()
    sync = GradientSync(model, add, limit_bytes=1)
    sync.arm()
    model.loss(used=(0, 1, 2)).backward()  # the last parameter, whose bucket is the first, has no gradient
    assert add.sent == []
    sync.flush()
    sync.finish()
    assert [flat.numel() for flat in add.sent] == [2, 6, 4, 5]
    assert model.rows[3].grad is None


def test_bucket_is_sent_with_its_last_gradient_and_no_earlier() -> None:
    model, add = Layers(), Twice()
    sync = GradientSync(model, add, limit_bytes=10**6)
    sync.arm()
    model.loss(used=(1, 2, 3)).backward()
    assert add.sent == []
    model.rows[0].sum().backward()
    assert len(add.sent) == 1


def test_step_that_failed_is_waited_for_and_dropped() -> None:
    model, add = Layers(), Twice()
    sync = GradientSync(model, add, limit_bytes=1)
    sync.arm()
    model.loss(used=(2, 3)).backward()  # then memory ran out
    sync.flush()
    model.zero_grad()
    sync.arm()
    assert add.waited == [0, 1, 2, 3]
    model.loss().backward()
    sync.flush()
    sync.finish()
    assert len(add.sent) == 2 * len(SIZES)
    assert all(weight.grad is not None and bool(weight.grad.eq(2 * n).all()) for n, weight in enumerate(model.rows, 1))


def test_sync_that_is_not_armed_or_is_closed_sends_nothing() -> None:
    model, add = Layers(), Twice()
    sync = GradientSync(model, add, limit_bytes=1)
    model.loss().backward()
    assert add.sent == []
    model.zero_grad()
    sync.arm()
    sync.close()
    model.loss().backward()
    assert add.sent == []
