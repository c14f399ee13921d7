"""Recovery from out-of-memory, by injection: no accelerator here. torch's own class is raised, with HIP's wording."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.fixtures.training import StopAt, gone_on, interrupted, network, same, training, weights
from trainer.device.memory import MicroBatch, OutOfMemory, StepSnapshot, reserve
from trainer.engine.callbacks.callback import Callback
from trainer.engine.callbacks.callback_list import Callbacks
from trainer.engine.loop import fit
from trainer.engine.oom_recovery import cut_smaller, grow_back, step_or_rollback, unrecoverable_oom
from trainer.engine.training import Training
from trainer.runtime.errors import TrainerError


class Limited(nn.Sequential):
    """A network on a device that holds `most` rows, from step `first` on; it draws and counts before it fails."""

    most = 1000
    where = "forward"

    def forward(self, inputs: Tensor) -> Tensor:
        outputs: Tensor = super().forward(inputs)
        if self.training and len(inputs) > self.most:
            if self.where == "forward":
                raise OutOfMemory("HIP out of memory. Tried to allocate 2.00 GiB")
            outputs.register_hook(self.fail)
        return outputs

    def fail(self, gradient: Tensor) -> None:
        raise OutOfMemory("HIP out of memory. Tried to allocate 2.00 GiB")


def limited(**more: Any) -> Training:
    return training("fp64", model=Limited(*network()), guarded=True, **more)


def plain(**more: Any) -> Training:
    return training("fp64", model=Limited(*network(noisy=False)), guarded=True, **more)


def at_steps(run: Training, limits: dict[int, int], where: str = "forward") -> Training:
    """Change the device's limit before the steps that are named."""
    model = run.model
    assert isinstance(model, Limited)
    model.where = where

    def before(module: nn.Module, inputs: Any) -> None:
        model.most = limits.get(run.state.step + 1, model.most)

    run.forward.register_forward_pre_hook(before)
    return run


@pytest.mark.parametrize("where", ["forward", "backward"])
@pytest.mark.parametrize("most", [7, 4, 3, 2])
def test_weights_are_bit_identical_to_a_run_started_at_the_smaller_size(where: str, most: int) -> None:
    run = at_steps(limited(), {1: most}, where)
    size = {7: 4, 4: 4, 3: 2, 2: 2}[most]
    assert same(weights(run), weights(training("fp64", micro_batch=size)))
    assert run.state.micro_batch.size == size


@pytest.mark.parametrize("seed", range(10))
def test_oom_at_random_steps_leaves_the_rest_as_a_run_given_the_size_there(seed: int) -> None:
    """The reference never runs out: it is stopped before the step, and gone on with at the smaller size."""
    rng = random.Random(seed)
    step, most, where = rng.randrange(2, 21), rng.randrange(2, 8), rng.choice(["forward", "backward"])
    run = at_steps(limited(), {step: most}, where)
    found = weights(run)
    resumed = gone_on(limited, interrupted(limited, step - 1))
    resumed.state.micro_batch.size = run.state.micro_batch.size
    assert run.state.micro_batch.halvings >= 1
    assert same(found, weights(resumed))


@pytest.mark.parametrize("seed", range(3))
def test_network_without_batch_norm_even_equals_a_run_started_at_the_smaller_size(seed: int) -> None:
    """Steps before the failure were summed in other pieces, so this holds to rounding: 1e-12 in fp64."""
    rng = random.Random(seed)

    run = at_steps(plain(), {rng.randrange(2, 15): 2})
    found, expected = weights(run), weights(plain(micro_batch=2))
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=1e-12, atol=1e-12)


def test_weights_without_the_roll_back_would_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    def only_gradients(self: Any, model: nn.Module, device: torch.device) -> None:
        model.zero_grad(set_to_none=True)

    monkeypatch.setattr("trainer.device.memory.StepSnapshot.apply", only_gradients)
    assert not same(weights(at_steps(limited(), {1: 4})), weights(training("fp64", micro_batch=4)))


def test_oom_is_reported_and_remembered(capsys: pytest.CaptureFixture[str]) -> None:
    weights(at_steps(limited(), {5: 2}))
    stdout = capsys.readouterr().out
    assert '"event": "out_of_memory", "step": 5, "from_rows": 8, "to_rows": 4, "memory": null' in stdout
    assert '"from_rows": 4, "to_rows": 2' in stdout
    files = interrupted(lambda **more: at_steps(limited(**more), {5: 2}), 10)
    assert gone_on(limited, files).state.micro_batch == MicroBatch(limit=8, size=2, calm=6, halvings=2)


def test_single_row_that_does_not_fit_ends_the_run_with_a_message() -> None:
    with pytest.raises(TrainerError, match="RM523") as caught:
        weights(at_steps(plain(), {3: 0}))
    assert caught.value.where == "step 3, cpu"


def test_another_runtime_error_is_not_taken_for_it() -> None:
    class Broken(nn.Linear):
        def forward(self, inputs: Tensor) -> Tensor:
            raise RuntimeError("HIP out of memory, says somebody who is not the allocator")

    with pytest.raises(RuntimeError, match="says somebody"):
        weights(training(model=Broken(3, 1), guarded=True))


def test_micro_batch_grows_back_after_calm_steps(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = at_steps(limited(epochs=10), {2: 2, 3: 1000})
    run.state.micro_batch.patience = 10
    weights(run)
    assert run.state.micro_batch.size == 8
    assert capsys.readouterr().out.count("micro_batch_grows") == 2


class Budget:
    """A stand-in for a device that is full at certain allocations: those numbered are refused, as torch words it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, where: Any, name: str, refused: set[int]) -> None:
        self.real, self.refused, self.count = getattr(where, name), refused, 0
        monkeypatch.setattr(where, name, self)

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        self.count += 1
        if self.count in self.refused:
            raise OutOfMemory("HIP out of memory. Tried to allocate 2.00 GiB")
        return self.real(*inputs, **named)


@pytest.mark.parametrize("number", [1, 2, 3, 12])
def test_moments_that_do_not_fit_are_found_out_before_the_step(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Refused where they are asked for beforehand: one halving, and the bits of a run started at that size."""
    budget = Budget(monkeypatch, torch, "empty_like", {number})
    run = training("fp64", guarded=True)
    found = weights(run)
    assert budget.count > number
    assert run.state.micro_batch == MicroBatch(limit=8, size=4, calm=21, halvings=1)
    assert same(found, weights(training("fp64", micro_batch=4)))


@pytest.mark.parametrize("number", [1, 2, 5, 12])
def test_first_step_that_fails_while_it_allocates_is_rolled_back(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """INJECTED into torch's own AdamW, between the moments of two weights: half of the state was there already."""
    expected = weights(training("fp64", micro_batch=4))
    run = training("fp64", guarded=True)
    budget = Budget(monkeypatch, torch, "zeros_like", {number})
    found = weights(run)
    assert budget.count > number
    assert run.state.micro_batch.halvings == 1
    assert same(found, expected)


def test_step_left_as_torch_leaves_it_could_not_be_taken_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainer.device.memory.OptimizerUnchanged.holds", lambda self: True)
    Budget(monkeypatch, torch, "zeros_like", {2})
    with pytest.raises(KeyError, match="exp_avg_sq"):
        weights(training("fp64", guarded=True))


def half_way(run: Training, step: int) -> Training:
    """INJECT a failure after the first weight has been changed, at a step that is no first one."""
    real = run.optimizer.step

    def fail(*inputs: Any) -> Any:
        if run.state.step + 1 != step:
            return real(*inputs)
        first = run.optimizer.param_groups[0]["params"][0]
        with torch.no_grad():
            first.mul_(0.9)
        raise OutOfMemory("HIP out of memory. Tried to allocate 2.00 GiB")

    run.optimizer.step = fail  # type: ignore[method-assign]
    return run


def test_step_that_was_taken_in_part_is_the_end_and_not_kept() -> None:
    keeper_saw, requested = list[int](), list[int]()

    class Keeper(StopAt):
        def on_out_of_memory(self, run: Training, rows: int) -> None:
            requested.append(rows)

        def on_checkpoint(self, run: Training, *, final: bool = False) -> None:
            keeper_saw.append(run.state.step)

    with pytest.raises(TrainerError, match="RM559") as caught:
        weights(half_way(training("fp64", guarded=True, callbacks=Callbacks([Keeper(0)])), 5))
    assert caught.value.where == "step 5, rank 0, cpu"
    assert caught.value.why == "some weights are changed and others not"
    assert requested == [4]
    assert keeper_saw == []


@pytest.mark.parametrize("name", ["fp64", "fp16"])
def test_step_after_the_first_that_fails_before_it_changes_anything_is_rolled_back(name: str) -> None:
    make = partial(training, name, guarded=True)
    run = make()
    real, failed = run.optimizer.step, []

    def fail(*inputs: Any) -> Any:
        if run.state.step >= 6 and not failed:  # fp16 skips the steps that overflow
            failed.append(run.state.step)
            raise OutOfMemory("HIP out of memory. Tried to allocate 2.00 GiB")
        return real(*inputs)

    run.optimizer.step = fail  # type: ignore[method-assign]
    found = weights(run)
    resumed = gone_on(make, interrupted(make, failed[0]))
    resumed.state.micro_batch.size = 4
    assert same(found, weights(resumed))


def test_fused_optimizer_with_moments_needs_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    run = training("fp64", guarded=True)
    assert run.optimizer.param_groups[0]["fused"]
    weights(run)
    budget = Budget(monkeypatch, torch, "empty_like", set())
    reserve(run.optimizer)
    assert budget.count == 0
    for group in run.optimizer.param_groups:
        group["fused"] = False
    reserve(run.optimizer)
    assert budget.count == len(list(run.model.parameters()))


def test_size_that_fails_again_is_tried_ever_more_seldom() -> None:
    run = at_steps(limited(epochs=30), {2: 4})
    run.state.micro_batch.patience = 10
    weights(run)
    assert run.state.micro_batch.size == 4
    assert run.state.micro_batch.patience >= 80
    assert run.state.micro_batch.halvings < 6


def test_guard_is_taken_on_accelerators_only() -> None:
    assert not training().guarded
    run = training()
    with pytest.raises(OutOfMemory):
        run.model.register_forward_pre_hook(lambda module, inputs: Limited.fail(None, inputs))  # type: ignore[arg-type]
        fit(run)


FULL = OutOfMemory("HIP out of memory. Tried to allocate 2.00 GiB\nmore")


def sized(size: int, **more: Any) -> Training:
    made = limited(**more)
    made.state.micro_batch = MicroBatch(limit=8, size=size)
    return made


@pytest.mark.parametrize(("size", "rows"), [(8, 4), (5, 3), (3, 2), (2, 1)])
def test_attempt_that_cannot_be_undone_leaves_half_the_rows_to_the_next(size: int, rows: int) -> None:
    seen: list[int] = []

    class Notes(Callback):
        def on_out_of_memory(self, run: Any, rows: int) -> None:
            seen.append(rows)

    made = sized(size, callbacks=Callbacks([Notes()]))
    made.state.step = 6
    error = unrecoverable_oom(made, "RM559", FULL, "why")
    assert (error.code, error.what, error.where) == (
        "RM559", "HIP out of memory. Tried to allocate 2.00 GiB", "step 7, rank 0, cpu"
    )  # fmt: skip
    assert seen == [rows]
    assert made.state.micro_batch.size == size  # this attempt ends: the next one reads the number


def test_single_row_leaves_no_smaller_attempt() -> None:
    with pytest.raises(TrainerError, match="RM523"):
        unrecoverable_oom(sized(1), "RM559", FULL, "why")
    with pytest.raises(TrainerError, match="RM523"):
        cut_smaller(sized(1), StepSnapshot.of(sized(1).model, torch.device("cpu")))


def test_error_without_words_is_named_all_the_same() -> None:
    assert unrecoverable_oom(sized(2), "RM559", OutOfMemory(""), "why").what == "out of memory"


def test_step_without_a_guard_raises_what_it_met() -> None:
    def step(run: Training) -> None:
        raise FULL

    made = limited()
    made.guarded = False
    with pytest.raises(OutOfMemory):
        step_or_rollback(made, step)


def test_step_is_undone_only_while_the_optimizer_changed_nothing() -> None:
    def untouched(run: Training) -> None:
        raise FULL

    def changed(run: Training) -> None:
        with torch.no_grad():
            next(run.model.parameters()).add_(1.0)
        raise FULL

    assert step_or_rollback(limited(), untouched) is False
    assert step_or_rollback(limited(), lambda run: None) is True
    with pytest.raises(TrainerError, match="RM559") as caught:
        step_or_rollback(limited(), changed)
    assert "some weights are changed" in str(caught.value.why)


def test_micro_batch_grows_to_twice_and_at_most_the_limit(capsys: pytest.CaptureFixture[str]) -> None:
    made = sized(3)
    for size in (6, 8, 8):
        grow_back(made)
        assert made.state.micro_batch.size == size
    assert '"event": "micro_batch_grows", "step": 1, "from_rows": 3, "to_rows": 6' in capsys.readouterr().out
