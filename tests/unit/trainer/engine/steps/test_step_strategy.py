"""Several steps at a time against one by one: the same to the bit, at every place where a run may be interrupted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.fixtures.step_runs import direct, eager, plain, run
from tests.fixtures.training import StopAt, gone_on, interrupted, joined, network, part, same, training, weights
from trainer.data.loading.placement import TensorPartition
from trainer.engine.callbacks.callback_list import Callbacks
from trainer.engine.callbacks.nan_check import NanCheck
from trainer.engine.loop import fit
from trainer.engine.steps import fused_adamw
from trainer.engine.steps.step_batching import Launches
from trainer.engine.steps.step_strategy import Memory, choose_step, trial, unproven
from trainer.engine.training import Training
from trainer.models.losses import squared_error_sum
from trainer.run.checkpoint_writer import capture
from trainer.runtime.errors import TrainerError
from trainer.storage.checkpoint_tree import encode
from trainer.telemetry.nan_guard import NanGuard, RecomputeHooks


@pytest.fixture(autouse=True)
def faster_by_decree(monkeypatch: pytest.MonkeyPatch) -> None:
    """`auto` also looks at the clock, which on a busy machine may say anything."""
    monkeypatch.setattr("trainer.engine.steps.step_strategy.FASTER", 0.0)


@pytest.mark.parametrize("name", ["fp32", "fp64"])
@pytest.mark.parametrize("hidden", [(8, 4), (5,), (32, 16, 7)])
@pytest.mark.parametrize("batch_size", [1, 8, 25, 50])
def test_direct_run_is_an_eager_one_to_the_bit(name: str, hidden: tuple[int, ...], batch_size: int) -> None:
    found, expected = (run(step, name, hidden, batch_size=batch_size) for step in ("direct", "eager"))
    assert found.launches is not None
    assert expected.launches is None
    assert same(weights(found), weights(expected))
    assert [epoch.facts() for epoch in found.state.history] == [epoch.facts() for epoch in expected.state.history]
    assert found.state.micro_batch == expected.state.micro_batch
    for one, other in zip(found.optimizer.state.values(), expected.optimizer.state.values(), strict=True):
        assert same(one, other)


@pytest.mark.parametrize("step", [1, 3, 6, 7, 8, 14, 20])
@pytest.mark.parametrize(("before", "after"), [(direct, direct), (eager, direct), (direct, eager)])
def test_stopped_run_resumes_under_either_strategy(
    step: int, before: Callable[..., Training], after: Callable[..., Training]
) -> None:
    assert same(weights(gone_on(after, interrupted(before, step))), weights(eager()))


def test_checkpoint_inside_a_launch_is_taken_after_the_very_step() -> None:
    class Every(StopAt):
        taken: list[tuple[int, bytes]]

        def checkpoint_due(self, run: Training) -> bool:
            return (run.state.step + 1) % 4 == 0

        def on_checkpoint(self, run: Training, *, final: bool = False) -> None:
            tree = capture(run)
            assert tree is not None
            tree["state"]["seconds"] = 0.0
            for epoch in tree["state"]["history"]:
                epoch["seconds"] = epoch["rows_per_second"] = 0.0
            self.taken.append((run.state.step, b"".join(joined(encode(tree)).values())))

    found = []
    for make in (direct, eager):
        keeper = Every(0)
        keeper.taken = []
        fit(make(callbacks=Callbacks([keeper])))
        found.append(keeper.taken)
    assert [step for step, _ in found[0]] == [4, 8, 12, 16, 20]
    assert found[0] == found[1]


def test_trial_leaves_no_trace() -> None:
    made = training(model=network())
    before = Memory.of(made)
    with pytest.raises(KeyError):
        trial(made, "no such way")
    after = Memory.of(made)
    states = (before.random["torch"], after.random["torch"])
    assert torch.equal(*states)
    names = made.model.state_dict()
    assert all(torch.equal(one, other) for one, other in zip(before.values, after.values[: len(names)], strict=True))
    assert all(not value.any() for value in after.values[len(names) :])  # the optimizer's, which it had not yet
    assert same(weights(made), weights(training(model=network())))


def off_by(much: float) -> Callable[[fused_adamw.FusedSteps], None]:
    original = fused_adamw.FusedSteps.take

    def take(self: fused_adamw.FusedSteps) -> None:
        original(self)
        self._kernel.args[0][0].view(-1)[0] *= 1 + much

    return take


def test_results_that_differ_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainer.engine.steps.fused_adamw.FusedSteps.take", off_by(1e-3))
    made = training(model=plain())
    choice = choose_step("auto", made)
    assert choice.name == "eager"
    assert "off eager's, 0 is allowed" in choice.reason
    assert made.launches is None
    with pytest.raises(TrainerError, match="RM585") as caught:
        choose_step("direct", made)
    assert "1e-05 is allowed" in caught.value.why


def test_strategy_equal_to_tolerance_is_used_only_on_request_and_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainer.engine.steps.fused_adamw.FusedSteps.take", off_by(3e-7))
    assert choose_step("auto", training(model=plain())).name == "eager"
    choice = choose_step("direct", training(model=plain()))
    assert choice.name == "direct"
    assert not choice.same_bits


class Noisy(nn.Sequential):
    """The same layers, by another class."""


AGAINST: dict[str, tuple[str, Callable[[], Training]]] = {
    "dropout": ("not a plain stack", lambda: training(model=network())),
    "subclass": ("not a plain stack", lambda: training(model=Noisy(*plain()))),
    "no bias": ("not a plain stack", lambda: training(model=nn.Sequential(nn.Linear(3, 1, bias=False)))),
    "bf16": ("bf16 is autocast", lambda: training("bf16", model=plain())),
    "fp16": ("loss scaler", lambda: training("fp16", model=plain())),
    "threads": ("threads fetch", lambda: training(model=plain(), loader_workers=1)),
    "pieces": ("4 rows at a time", lambda: training(model=plain(), micro_batch=4)),
    "few rows": ("no whole batch", lambda: training(model=plain(), batch_size=51)),
    "weighed": ("weight of its own", lambda: training(model=plain(), batch_weight=lambda targets: targets.sum())),
    "loss": (
        "not the squared error",
        lambda: training(model=plain(), loss_sum=lambda a, b: 2 * squared_error_sum(a, b)),
    ),
    "large": ("bound by arithmetic", lambda: training(model=plain(hidden=(4096, 4096)))),
}


@pytest.mark.parametrize("what", AGAINST)
def test_auto_reports_why_it_is_eager(what: str) -> None:
    words, make = AGAINST[what]
    made = make()
    choice = choose_step("auto", made)
    assert choice.name == "eager"
    assert words in choice.reason
    assert made.launches is None
    if what != "large":
        with pytest.raises(TrainerError, match="RM585"):
            choose_step("direct", made)


def test_hooks_and_another_optimizer_are_seen() -> None:
    made = training(model=plain())
    handle = made.model[1].register_forward_hook(lambda *_: None)  # type: ignore[index]
    assert "observe the network" in choose_step("auto", made).reason
    handle.remove()
    made.optimizer = torch.optim.SGD(made.model.parameters(), lr=0.1)
    assert "not AdamW" in choose_step("auto", made).reason
    made.optimizer = torch.optim.AdamW(made.model.parameters(), fused=False)
    assert "not the fused one" in choose_step("auto", made).reason


def test_graph_needs_a_card() -> None:
    with pytest.raises(TrainerError, match="RM585") as caught:
        choose_step("graph", training(model=plain()))
    assert "graphs are for cards" in caught.value.why


def test_batch_in_pieces_later_on_is_the_loops() -> None:
    """Memory ran out in the last, smaller batch: from then on nothing is launched whole."""
    made = direct()
    made.state.micro_batch.size = 4
    expected = eager(micro_batch=4)
    assert same(weights(made), weights(expected))


def test_guard_names_the_step_and_the_layer(tmp_path: Path) -> None:
    data = part()
    bad = TensorPartition(inputs=data.inputs.clone(), targets=data.targets)
    made = training(model=plain())
    order = made.sampler.order(1)  # the fourth batch of the second epoch
    bad.inputs[order[24]] = torch.inf
    made.train = bad
    made.launches = Launches(steps={8: choose_and_take(made)})
    from trainer.engine.loop import forward_backward, step_optimizer

    again = RecomputeHooks(
        fetch=lambda rows: bad.rows(rows, made.device),
        compute=lambda inputs, targets: forward_backward(made, inputs, targets, rows=len(inputs), weight=len(inputs)),
        advance=lambda: step_optimizer(made),
        stateful=[made.optimizer],
    )
    guard = NanGuard(made.model, again, architecture={}, folder=tmp_path, every=5)
    made.callbacks = Callbacks([NanCheck(guard)])
    with pytest.raises(TrainerError, match="RM506") as caught:
        fit(made)
    first = next(step for step, rows in enumerate(made.sampler.order(0).split(8), 1) if order[24] in rows)
    assert caught.value.where == f"step {first}"


def choose_and_take(made: Training) -> Any:
    from trainer.engine.steps.manual_autograd import DirectSteps

    eager_state = Memory.of(made)
    made.optimizer.zero_grad()
    for weight in made.model.parameters():
        weight.grad = torch.zeros_like(weight)
    made.optimizer.step()
    eager_state.restore(made)
    return DirectSteps(made)


def test_weights_of_a_launch_are_read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading a checkpoint replaces the optimizer's moments."""
    made = direct()
    made.optimizer.load_state_dict(made.optimizer.state_dict())
    assert same(weights(made), weights(eager()))


def test_auto_uses_graphs_on_amd_cards_on_request_only(monkeypatch) -> None:
    made = training(model=plain())
    assert unproven("graph", made) is None
    monkeypatch.setattr(torch.version, "hip", "7.2")
    assert "never tried on an AMD card" in str(unproven("graph", made))
