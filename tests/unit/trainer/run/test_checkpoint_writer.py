from __future__ import annotations

import errno
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.fixtures.training import same, training, weights
from trainer.config.checkpoint_policy import Interval, Retention
from trainer.engine.callbacks.callback import Callback
from trainer.engine.callbacks.callback_list import Callbacks
from trainer.engine.loop import fit
from trainer.engine.training import Training
from trainer.run import checkpoint_writer
from trainer.run.checkpoint_writer import Checkpointer, finish, newest_good, report_damaged, restore
from trainer.storage import checkpoint_store
from trainer.storage.checkpoint_store import stored


class Release(Callback):
    """Lets a held writer go on when the last step is taken, before the keeper waits for it."""

    def __init__(self, held: threading.Event) -> None:
        self.held = held

    def on_train_end(self, run: Training) -> None:
        self.held.set()


def keeper(run: Path, **changes: Any) -> Checkpointer:
    settings: dict[str, Any] = {"interval": Interval(steps=5), "retention": Retention()}
    return Checkpointer(run=run, **(settings | changes))


def trained(made: Checkpointer) -> Training:
    run = training(callbacks=Callbacks([made]))
    fit(run)
    return run


def steps(run: Path) -> list[int]:
    return [one.step for one in stored(run / "checkpoints")]


def events(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_keeping_checkpoints_changes_nothing(tmp_path: Path) -> None:
    assert same(trained(keeper(tmp_path)).model.state_dict(), weights(training()))


def test_policy_decides_what_stays(tmp_path: Path) -> None:
    trained(keeper(tmp_path))
    assert steps(tmp_path) == [20, 15]
    trained(keeper(tmp_path / "more", interval=Interval(steps=3), retention=Retention(last=1, every=6)))
    assert steps(tmp_path / "more") == [21, 18, 12, 6]


def test_complete_run_keeps_only_what_was_requested(tmp_path: Path) -> None:
    (tmp_path / "run.json").touch()
    trained(keeper(tmp_path))
    finish(tmp_path, Retention(last=2, every=20))
    assert steps(tmp_path) == [20]
    finish(tmp_path, Retention(last=2))
    assert not (tmp_path / "checkpoints").exists()
    assert not (tmp_path / "run.json").exists()


def test_best_is_that_of_the_lowest_validation_loss(tmp_path: Path) -> None:
    made = keeper(tmp_path, interval=Interval(steps=7), retention=Retention(last=1, best=1))
    run = training(callbacks=Callbacks([made]), epochs=9, learning_rate=0.3)
    history = fit(run)
    known = history[:-1]  # the checkpoint after an epoch's last step knows the epochs before it
    best = min(known, key=lambda epoch: epoch.validation_loss)
    assert best is not known[-1]
    assert steps(tmp_path) == [63, (best.epoch + 1) * 7]


def test_time_makes_a_checkpoint_due(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(checkpoint_writer.time, "monotonic", lambda: clock[0])
    made, run = keeper(tmp_path, interval=Interval(seconds=60)), training()
    assert not made.checkpoint_due(run)
    clock[0] = 61.0
    assert made.checkpoint_due(run)
    assert not keeper(tmp_path, interval=Interval()).checkpoint_due(run)


def test_newest_good_checkpoint_is_used_and_the_damaged_one_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trained(keeper(tmp_path))
    newest, _ = stored(tmp_path / "checkpoints")
    path = newest.path / "tensors.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    capsys.readouterr()
    found = newest_good(tmp_path / "checkpoints", report_damaged)
    assert found is not None
    assert found[0] == 15
    captured = capsys.readouterr()
    assert json.loads(captured.out)["code"] == "RM552"
    assert "tensors.safetensors" in captured.err
    run = training()
    restore(run, found[1])
    assert same(weights(run), weights(training()))


def test_whole_checkpoint_of_something_else_is_not_used(tmp_path: Path) -> None:
    files = {"state.json": [b'{"map": 3}'], "tensors.safetensors": [b""]}
    checkpoint_store.write(tmp_path, 9, files, {})
    notices: list[str] = []
    assert newest_good(tmp_path, lambda path, reason: notices.append(reason)) is None
    assert len(notices) == 1


def test_full_disk_keeps_the_last_good_one_and_the_run_alive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write, written = checkpoint_store.write, []

    def full(folder: Path, step: int, *more: Any) -> Path:
        if step > 10:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))
        written.append(step)
        return write(folder, step, *more)

    monkeypatch.setattr(checkpoint_store, "write", full)
    run = trained(keeper(tmp_path))
    assert steps(tmp_path) == [10, 5]
    failed = [event for event in events(capsys) if event["event"] == "checkpoint_failed"]
    assert [(event["step"], event["code"]) for event in failed] == [(15, "RM553"), (20, "RM553")]
    assert same(run.model.state_dict(), weights(training()))


def test_full_disk_of_a_real_file_system_is_reported(
    mount_tmpfs: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    disk = mount_tmpfs("size=96k")
    made = keeper(disk, retention=Retention(last=10))
    run = training(callbacks=Callbacks([made]), epochs=10)
    fit(run)
    assert {"checkpoint", "checkpoint_failed"} <= {event["event"] for event in events(capsys)}
    assert newest_good(disk / "checkpoints", report_damaged) is not None
    assert "damaged" not in capsys.readouterr().out
    assert same(run.model.state_dict(), weights(training(epochs=10)))


def test_slow_disk_leaves_checkpoints_out_instead_of_holding_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    slow, write = threading.Event(), checkpoint_store.write

    def held(*arguments: Any) -> Path:
        slow.wait(30)
        return write(*arguments)

    monkeypatch.setattr(checkpoint_store, "write", held)
    monkeypatch.setattr(checkpoint_writer, "PATIENCE_SECONDS", 0.001)
    made = keeper(tmp_path)
    fit(training(callbacks=Callbacks([Release(slow), made])))
    reported = [(event["event"], event["step"]) for event in events(capsys)]
    assert reported == [("checkpoint_left_out", step) for step in (10, 15, 20)] + [("checkpoint", 5)]


def test_log_of_batches_is_that_of_the_state(tmp_path: Path) -> None:
    made = keeper(tmp_path)
    run = trained(made)
    log = tmp_path / "batches.jsonl"
    whole = log.read_bytes()
    assert run.state.logged == len(whole)
    lines = [json.loads(line) for line in whole.splitlines()]
    assert [(line["epoch"], line["first_step"], len(line["links"])) for line in lines] == [
        (1, 1, 56),
        (2, 8, 56),
        (3, 15, 56),
    ]
    log.write_bytes(whole + b'{"epoch": 4, "of": "a run that was killed"}\n')
    found = newest_good(tmp_path / "checkpoints", report_damaged)
    assert found is not None
    again = training(callbacks=Callbacks([keeper(tmp_path)]))
    restore(again, found[1])
    fit(again)
    assert log.read_bytes() == whole


def test_log_that_cannot_be_written_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*arguments: Any) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "open", full)
    keeper(tmp_path).on_batch_log(training(), {"epoch": 1})
    assert events(capsys)[0]["code"] == "RM553"


def test_damaged_newest_checkpoint_does_not_cost_the_good_ones_that_follow(tmp_path: Path) -> None:
    """`last=1` keeps the newest: that must be the one just written, not one that nobody can read."""
    folder = tmp_path / "checkpoints"
    made = keeper(tmp_path, interval=Interval(steps=5), retention=Retention(last=1))
    for step in (5, 20):
        checkpoint_store.write(folder, step, {"state.json": [b"1"]}, {"validation_loss": 1.0})
    (folder / "step-000000000020" / "state.json").write_bytes(b"2")  # damaged; the run goes on from step 5
    made.distrusted.add(20)
    for step in (6, 7, 8):
        checkpoint_store.write(folder, step, {"state.json": [b"1"]}, {"validation_loss": 1.0})
        made._tidy(step)
        assert steps(tmp_path) == [20, step]
    checkpoint_store.write(folder, 20, {"state.json": [b"1"]}, {"validation_loss": 1.0})
    made._tidy(20)
    assert steps(tmp_path) == [20]  # passed again and whole


def test_damaged_checkpoint_counts_neither_as_the_last_nor_as_the_best(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    made = keeper(tmp_path, interval=Interval(steps=5), retention=Retention(last=2, best=1))
    for step, loss in ((5, 3.0), (10, 0.1), (15, 2.0), (20, 4.0)):
        checkpoint_store.write(folder, step, {"state.json": [b"1"]}, {"validation_loss": loss})
    made.distrusted.add(10)
    made._tidy(20)
    assert steps(tmp_path) == [20, 15, 10]
    made.distrusted.add(15)
    made._tidy(20)
    assert set(steps(tmp_path)) >= {20, 15, 10}
    assert checkpoint_writer.losses_of(folder)


@pytest.mark.parametrize("loss", [None, "x", [], float("nan"), True])
def test_loss_that_is_no_number_ranks_last(tmp_path: Path, loss: Any) -> None:
    checkpoint_store.write(tmp_path, 5, {"state.json": [b"1"]}, {"validation_loss": loss})
    ((_, read),) = checkpoint_writer.losses_of(tmp_path)
    assert read == (1 if loss is True else float("inf"))


def test_later_checkpoint_of_an_abandoned_attempt_is_not_the_newest(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    made = keeper(tmp_path, interval=Interval(steps=5), retention=Retention(last=2))
    for step in (3, 4, 5, 20, 25):
        checkpoint_store.write(folder, step, {"state.json": [b"1"]}, {"validation_loss": 1.0})
    made._tidy(5)
    assert steps(tmp_path) == [25, 20, 5, 4]
