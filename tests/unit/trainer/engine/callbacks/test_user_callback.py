"""Users' callbacks: loaded by name, guarded against failing or changing a run unseen."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.fixtures.training import StopAt, same, training, weights
from trainer.engine.callbacks import Callback
from trainer.engine.callbacks.callback_list import Callbacks
from trainer.engine.callbacks.user_callback import UserCallback, load, load_all
from trainer.engine.loop import fit
from trainer.engine.training import Training
from trainer.runtime.errors import TrainerError

HEAD = "from trainer.engine.callbacks import Callback\n"


def users(callback: Callback) -> Callbacks:
    """The callback as --callback gives it."""
    one = UserCallback(name="mine.py:Mine", sha256="0" * 64, path=__file__, callback=callback)
    return Callbacks(users=[one])


def doing(hook: str, work: Callable[[Training], object], **flags: bool) -> Callbacks:
    """A user's callback that does `work` in `hook`."""
    return users(type("Mine", (Callback,), {hook: lambda self, run, *more, **named: work(run), **flags})())


def weight(run: Training) -> torch.nn.Parameter:
    return next(run.model.parameters())


@torch.no_grad()
def in_place(run: Training) -> None:
    weight(run).mul_(0.999)


def by_data(run: Training) -> None:
    weight(run).data.mul_(0.999)


def by_numpy(run: Training) -> None:
    weight(run).detach().numpy()[0, 0] += 1


def other_memory(run: Training) -> None:
    weight(run).data = weight(run).data.clone()


def scaled_gradient(run: Training) -> None:
    gradient = weight(run).grad
    assert gradient is not None
    gradient.mul_(2)


def dropped_gradient(run: Training) -> None:
    weight(run).grad = None


def learning_rate(run: Training) -> None:
    run.optimizer.param_groups[0]["lr"] = 0.5


def moment(run: Training) -> None:
    run.optimizer.state[weight(run)]["exp_avg"].zero_()


def buffer(run: Training) -> None:
    run.model[1].running_mean.zero_()  # type: ignore[index, operator, union-attr]


def reloaded(run: Training) -> None:
    run.model.load_state_dict(run.model.state_dict())


def evaluation(run: Training) -> None:
    run.model.eval()


def frozen(run: Training) -> None:
    weight(run).requires_grad_(False)


def position(run: Training) -> None:
    run.state.step += 1


CHANGES = [
    ("on_step_end", in_place, "weights"),
    ("on_step_end", by_data, "weights"),
    ("on_step_end", by_numpy, "weights"),
    ("on_step_end", other_memory, "weights"),
    ("on_validation_end", reloaded, "weights"),
    ("on_gradients", scaled_gradient, "gradients"),
    ("on_gradients", dropped_gradient, "gradients"),
    ("on_epoch_begin", learning_rate, "the optimizer's settings"),
    ("on_step_end", moment, "the optimizer's state"),
    ("on_step_begin", buffer, "buffers"),
    ("on_step_end", evaluation, "training or evaluation mode"),
    ("on_train_begin", frozen, "requires_grad of a weight"),
    ("on_step_end", position, "the position of the run"),
]


@pytest.mark.parametrize(("hook", "change", "part"), CHANGES)
def test_change_that_the_class_does_not_announce_ends_the_run(
    hook: str, change: Callable[[Training], None], part: str
) -> None:
    with pytest.raises(TrainerError, match="RM734") as caught:
        fit(training(callbacks=doing(hook, change)))
    assert caught.value.what == f"mine.py:Mine, {hook}: {part} changed"


@pytest.mark.parametrize(("hook", "change", "part"), CHANGES[:4] + CHANGES[5:6] + CHANGES[7:8])
def test_change_that_the_class_announces_is_made(hook: str, change: Callable[[Training], None], part: str) -> None:
    made = training(callbacks=doing(hook, change, changes_results=True))
    fit(made)
    assert made.state.step == 21


def test_random_numbers_of_a_callback_are_drawn_aside() -> None:
    drawn: list[float] = []

    def draw(run: Training) -> None:
        drawn.extend((torch.rand(3).sum().item(), random.random(), float(np.random.rand())))
        torch.manual_seed(7)

    expected = weights(training())  # dropout draws at each step
    for hook in ("on_step_begin", "on_gradients", "on_step_end", "on_epoch_end", "on_validation_end"):
        assert same(weights(training(callbacks=doing(hook, draw))), expected)
    assert len(drawn) > 100


@pytest.mark.parametrize("error", [ValueError("no\nsecond line"), SystemExit(3), torch.OutOfMemoryError("full")])
def test_exception_names_the_callback_the_hook_and_the_line(error: BaseException) -> None:
    def fail(run: Training) -> None:
        raise error

    keeper = StopAt(0)
    keeper.checkpoint_due = lambda run: run.state.step + 1 == 3  # type: ignore[method-assign]
    mine = doing("on_epoch_end", fail)
    made = training(callbacks=Callbacks([keeper], users=mine.users), guarded=True)
    with pytest.raises(TrainerError, match="RM733") as caught:
        fit(made)
    assert caught.value.what.startswith(f"mine.py:Mine, on_epoch_end: {type(error).__name__}")
    assert "second" not in caught.value.what
    assert caught.value.where.startswith(f"step 7, {__file__}:")
    assert keeper.files  # the checkpoint of step 3


def test_output_of_a_callback_is_no_line_of_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    fit(training(epochs=1, callbacks=doing("on_epoch_end", lambda run: print("words"))))
    out, err = capsys.readouterr()
    assert (out, "words" in err) == ("", True)


def written(folder: Path, text: str) -> str:
    path = folder / "mine.py"
    path.write_text(HEAD + text)
    return str(path)


def test_class_of_a_file_is_loaded_with_its_hash(tmp_path: Path) -> None:
    found = load(written(tmp_path, "class Mine(Callback):\n    all_ranks = True\n") + ":Mine")
    assert type(found.callback).__name__ == "Mine"
    assert found.facts()["all_ranks"] is True
    assert len(found.sha256) == 64
    again = load(written(tmp_path, "class Mine(Callback):\n    all_ranks = True\n\n") + ":Mine")
    assert again.sha256 != found.sha256


def test_class_of_an_installed_module_is_loaded() -> None:
    assert load("trainer.engine.callbacks.heartbeat:Heartbeat").name.endswith(":Heartbeat")


@pytest.mark.parametrize(
    ("text", "tail", "why"),
    [
        ("class Mine(Callback): ...", "", "it is not FILE.py:Class"),
        ("class Mine(Callback): ...", ":No-Name", "it is not FILE.py:Class"),
        ("class Mine(Callback): ...", ":Other", "it has Mine"),
        ("class Mine: ...", ":Mine", "it has none"),
        ("Mine = Callback()", ":Mine", "it has none"),
        ("class Mine(Callback)", ":Mine", "SyntaxError"),
        ("import nothing_of_this_name", ":Mine", "ModuleNotFoundError"),
        ("raise SystemExit(2)", ":Mine", "SystemExit: 2"),
        ("class Mine(Callback):\n    def __init__(self, needed): ...", ":Mine", "TypeError"),
    ],
)
def test_callback_that_cannot_be_loaded_is_refused_with_the_reason(
    tmp_path: Path, text: str, tail: str, why: str
) -> None:
    with pytest.raises(TrainerError, match="RM732") as caught:
        load(written(tmp_path, text) + tail)
    assert why in caught.value.why


@pytest.mark.parametrize("name", ["nowhere.py:Mine", "nothing_of_this_name:Mine", "trainer:Mine", ":Mine", "/:Mine"])
def test_place_that_is_not_there_is_refused(name: str) -> None:
    with pytest.raises(TrainerError, match="RM732"):
        load(name)


def test_ranks_get_those_that_all_have_and_rank_0_gets_all(tmp_path: Path) -> None:
    here = written(tmp_path, "class One(Callback): ...\nclass Each(Callback):\n    all_ranks = True\n")
    names = [f"{here}:One", f"{here}:Each"]
    assert [each.name for each in load_all(names, is_main=True, world_size=2)] == names
    assert [each.name for each in load_all(names, is_main=False, world_size=2)] == names[1:]


def test_callback_that_changes_results_on_rank_0_alone_is_refused(tmp_path: Path) -> None:
    here = written(tmp_path, "class Mine(Callback):\n    changes_results = True\n") + ":Mine"
    assert load_all([here], is_main=True, world_size=1)
    for is_main in (True, False):
        with pytest.raises(TrainerError, match="RM735"):
            load_all([here], is_main=is_main, world_size=2)


def test_users_come_after_the_trainers_own() -> None:
    seen: list[Any] = []

    class Own(Callback):
        def on_train_end(self, run: Training) -> None:
            seen.append("own")

    made = doing("on_train_end", lambda run: seen.append("user")).after(Own())
    fit(training(epochs=1, callbacks=made))
    assert seen == ["own", "user"]
