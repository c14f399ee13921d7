"""The hooks of the loop: which are called, in which order, and what an end or a failure does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.fixtures.training import StopAt, same, training, weights
from trainer.engine.callbacks import Callback, TakenSteps
from trainer.engine.callbacks.callback_list import HOOKS, Callbacks
from trainer.engine.loop import fit
from trainer.engine.steps.step_strategy import choose_step
from trainer.engine.training import StoppedError, Training


def noting(name: str, seen: list[str], *, launches: bool = False) -> Callback:
    """A callback that notes each of its hooks."""

    def note(hook: str) -> Any:
        return lambda self, run, *more, **named: seen.append(f"{name}.{hook}")

    hooks = {hook: note(hook) for hook in HOOKS if hook != "waiting"}
    made: Callback = type(name, (Callback,), {**hooks, "accepts_launches": launches})()
    return made


def test_hooks_of_a_run_are_called_in_the_order_of_the_loop() -> None:
    seen: list[str] = []
    fit(training(epochs=2, batch_size=25, callbacks=Callbacks([noting("a", seen)])))
    step = ["on_step_begin", "checkpoint_due", "on_gradients", "on_step_end"]
    epoch = ["on_epoch_begin", *step, *step, "on_losses_ready", "on_batch_log", "on_validation_end", "on_epoch_end"]
    assert seen == [f"a.{hook}" for hook in ["on_train_begin", *epoch, *epoch, "on_train_end"]]


def test_callbacks_are_called_in_the_order_of_the_list() -> None:
    seen: list[str] = []
    fit(training(epochs=1, callbacks=Callbacks([noting("a", seen), noting("b", seen)])))
    assert seen[::2] == [each.replace("b.", "a.") for each in seen[1::2]]


def test_checkpoint_follows_the_measurement_of_its_step() -> None:
    seen: list[str] = []
    stop = StopAt(5)
    made = training(epochs=2, callbacks=Callbacks([stop, noting("a", seen)]))
    made.stop, made.plan = stop.stop, replace(made.plan, eval_every=5)
    with pytest.raises(StoppedError):
        fit(made)
    assert seen[-4:] == ["a.on_losses_ready", "a.on_validation_end", "a.on_checkpoint", "a.on_exception"]


def test_exception_reaches_every_callback_and_stays_the_error(capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[str] = []

    class Fails(Callback):
        def on_step_end(self, run: Training, taken: TakenSteps) -> None:
            raise LookupError("the first")

        def on_exception(self, run: Training, error: BaseException) -> None:
            raise ValueError("the second")

    with pytest.raises(LookupError, match="the first"):
        fit(training(callbacks=Callbacks([Fails(), noting("a", seen)])))
    assert seen[-1] == "a.on_exception"
    assert "a.on_train_end" not in seen
    assert "the second" in capsys.readouterr().err


def test_step_is_described_by_number_rows_and_loss() -> None:
    taken: list[TakenSteps] = []

    class Notes(Callback):
        def on_step_end(self, run: Training, steps: TakenSteps) -> None:
            assert run.state.step == steps.first
            taken.append(steps)

    made = training(epochs=1, callbacks=Callbacks([Notes()]))
    (epoch,) = fit(made)
    assert [each.first for each in taken] == list(range(1, 8))
    assert torch.equal(torch.cat([each.rows[0] for each in taken]), made.sampler.order(0))
    total = sum(each.losses.item() * len(each.rows[0]) for each in taken)
    assert epoch.train_loss == pytest.approx(total / 50)


@pytest.mark.parametrize(
    ("hook", "steps"),
    [("on_train_begin", 0), ("on_step_begin", 1), ("on_gradients", 1), ("on_step_end", 1), ("on_epoch_end", 7)],
)
def test_stop_request_ends_the_run_after_the_current_step(hook: str, steps: int) -> None:
    def request_stop(self: Callback, run: Training, *more: Any) -> None:
        run.should_stop = True

    made = training(callbacks=Callbacks([type("Asks", (Callback,), {hook: request_stop})()]))
    history = fit(made)
    assert made.state.step == steps
    assert len(history) == (1 if steps else 0)
    assert not made.stopped_early


def test_callback_of_each_step_gets_single_steps() -> None:
    plain = training(model=torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1)))
    assert choose_step("direct", plain).name == "direct"
    for hook in ("on_step_begin", "on_gradients", "on_step_end"):
        kind = type("Mine", (Callback,), {hook: lambda self, run, *more: None})
        plain.callbacks = Callbacks([kind()])
        choice = choose_step("auto", plain)
        assert (choice.name, plain.launches) == ("eager", None)
        assert f"Mine.{hook} is called at each step" in choice.reason


def test_gradients_are_not_part_of_a_launch_whatever_the_class_accepts() -> None:
    kind = type("Mine", (Callback,), {"on_gradients": lambda self, run: None, "accepts_launches": True})
    assert Callbacks([kind()]).needs_each_step() == "Mine.on_gradients"
    assert Callbacks([noting("a", [], launches=True)]).needs_each_step() == "a.on_gradients"
    assert Callbacks([Callback()]).needs_each_step() is None


def test_callbacks_that_only_read_leave_the_weights_as_they_are() -> None:
    expected = weights(training())
    assert same(weights(training(callbacks=Callbacks([noting("a", [])]))), expected)
