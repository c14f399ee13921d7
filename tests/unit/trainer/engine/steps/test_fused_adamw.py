"""AdamW's kernel on memory of its own: the bits of torch's optimizer, and optimizers that it is not."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

from trainer.engine.steps import fused_adamw

SHAPES = [(16, 16), (3, 5), (16,), (1,)]  # of whole cache lines, and of numbers that fill none


def network() -> nn.ParameterList:
    made = torch.Generator().manual_seed(0)
    return nn.ParameterList([torch.randn(shape, generator=made) for shape in SHAPES])


def optimizer_of(weights: nn.ParameterList) -> torch.optim.AdamW:
    return torch.optim.AdamW(weights, lr=0.01, weight_decay=0.1, fused=True)


def gradients(step: int) -> list[Tensor]:
    made = torch.Generator().manual_seed(step)
    return [torch.randn(shape, generator=made) for shape in SHAPES]


def taken(weights: nn.ParameterList, optimizer: torch.optim.AdamW, steps: range) -> None:
    for step in steps:
        for weight, gradient in zip(weights, gradients(step), strict=True):
            weight.grad = gradient
        optimizer.step()


def test_steps_in_flat_memory_have_the_bits_of_torchs_optimizer() -> None:
    weights = network()
    optimizer = optimizer_of(weights)
    taken(weights, optimizer, range(1))  # moments exist from the first step on
    other = copy.deepcopy(weights)
    reference = optimizer_of(other)
    reference.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    taken(other, reference, range(1, 9))

    flat = fused_adamw.FusedSteps(list(weights))
    flat.begin(fused_adamw.Hyper.of(optimizer))
    for step in range(1, 9):
        flat.gradients.read(gradients(step))
        flat.take()
    flat.end()
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(weights, other, strict=True))
    for mine, theirs in zip(weights, other, strict=True):
        state, expected = optimizer.state[mine], reference.state[theirs]
        assert {name: torch.equal(state[name], expected[name]) for name in state} == dict.fromkeys(expected, True)


def test_weights_stay_as_they_were_between_begin_and_end() -> None:
    weights = network()
    optimizer = optimizer_of(weights)
    taken(weights, optimizer, range(1))
    before = [weight.detach().clone() for weight in weights]
    flat = fused_adamw.FusedSteps(list(weights))
    flat.begin(fused_adamw.Hyper.of(optimizer))
    flat.gradients.read(gradients(1))
    flat.take()
    assert all(torch.equal(weight, kept) for weight, kept in zip(weights, before, strict=True))
    flat.end()
    assert not any(torch.equal(weight, kept) for weight, kept in zip(weights, before, strict=True))


def test_tensors_of_whole_cache_lines_share_one_piece() -> None:
    flat = fused_adamw.Flat(list(network()))
    assert [piece.numel() for piece in flat.pieces] == [16 * 16 + 16, 15, 1]
    assert [tuple(view.shape) for view in flat.views] == SHAPES
    assert all(view.data_ptr() % fused_adamw.LINE == 0 for view in flat.views[::2])


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (lambda weights: torch.optim.SGD(weights, lr=0.1), "not AdamW over all weights"),
        (lambda weights: torch.optim.Adam(weights, fused=True), "not AdamW over all weights"),
        (
            lambda weights: torch.optim.AdamW([{"params": weights[:1]}, {"params": weights[1:]}], fused=True),
            "not AdamW over all weights",
        ),
        (torch.optim.AdamW, "not the fused one"),
        (lambda weights: torch.optim.AdamW(weights, fused=True, amsgrad=True), "not the fused one"),
        (lambda weights: torch.optim.AdamW(weights, fused=True, lr=torch.tensor(0.1)), "not the fused one"),
    ],
)
def test_other_optimizers_are_refused_with_the_reason(made, why) -> None:  # type: ignore[no-untyped-def]
    assert why in (fused_adamw.why_not(made(list(network()))) or "")


def test_fused_adamw_over_all_weights_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    optimizer = optimizer_of(network())
    assert fused_adamw.why_not(optimizer) is None
    monkeypatch.setattr(fused_adamw, "KERNEL", None)
    assert "has no fused AdamW" in (fused_adamw.why_not(optimizer) or "")
