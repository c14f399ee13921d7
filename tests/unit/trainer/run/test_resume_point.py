"""What a resume finds: a complete run, no run, a state that is none of this training's."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.fixtures.training import training
from trainer.config.sections.run import RunConfig
from trainer.config.train import TrainConfig
from trainer.distributed.collectives import Ranks
from trainer.run import resume_point
from trainer.run.checkpoint_writer import capture
from trainer.run.resume_point import (
    finalize_if_complete,
    report_nothing_to_resume,
    report_rounding,
    require_state,
    restore_latest_checkpoint,
)
from trainer.storage.run_folder import MOST_ROWS, SETTINGS, RunFolder

Change = Callable[[dict[str, Any]], object]


def events(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def config(folder: Path, **settings: Any) -> RunConfig:
    return RunConfig(output=folder, **settings)


@pytest.mark.parametrize("settings", [{"resume": "auto", "run": "one"}, {"resume": "one", "run": None}])
def test_complete_run_is_reported_and_what_only_a_resume_needs_is_removed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], settings: dict[str, Any]
) -> None:
    run = tmp_path / "one"
    (run / "checkpoints").mkdir(parents=True)
    for name in (SETTINGS, MOST_ROWS, "metadata.json"):
        (run / name).write_text("{}")
    assert finalize_if_complete(config(tmp_path, **settings))
    assert [path.name for path in run.iterdir()] == ["metadata.json"]
    assert events(capsys) == [{"event": "complete", "run": "one", "folder": str(run)}]


@pytest.mark.parametrize(
    "settings", [{"resume": "auto", "run": None}, {"resume": "auto", "run": "two"}, {"resume": None, "run": "one"}]
)
def test_run_that_is_not_complete_or_not_resumed_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], settings: dict[str, Any]
) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / SETTINGS).write_text("{}")
    assert not finalize_if_complete(config(tmp_path, **settings))
    assert (tmp_path / "one" / SETTINGS).exists()
    assert events(capsys) == []


@pytest.mark.parametrize(("name", "words"), [(None, "begins a new run\n"), ("one", "begins a new run one\n")])
def test_first_start_under_auto_is_reported_as_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str | None, words: str
) -> None:
    report_nothing_to_resume(config(tmp_path, resume="auto", run=name))
    printed = capsys.readouterr()
    assert json.loads(printed.out) == {"event": "nothing_to_resume", "folder": str(tmp_path), "run": name}
    assert printed.err.endswith(words)


def tree() -> dict[str, Any]:
    """Return the content of a checkpoint of the run of the fixtures, before its first step."""
    content = capture(training())
    assert content is not None
    return content


def test_state_of_this_training_is_taken() -> None:
    require_state(tree(), training(), 0)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda content: content["state"].update(step=True), "step is True"),
        (lambda content: content["state"].update(batch=-1), "batch is -1"),
        (lambda content: content["state"].update(logged=1.0), "logged is 1.0"),
        (lambda content: content["state"]["micro_batch"].update(size=0), "micro_batch.size is 0"),
        (lambda content: content["state"].update(step=3), "its state is of step 3"),
        (lambda content: content["state"].update(epoch=1), "epoch 1 and 0 measurements"),
        (lambda content: content["state"].update(losses=[1.0]), "losses are no tensor"),
        (lambda content: content["state"].update(losses=torch.zeros(7, dtype=torch.int8)), "losses are no tensor"),
        (lambda content: content["model"].popitem(), "weights are those of another network"),
        (lambda content: content["state"].update(best={"x": torch.zeros(1)}), "weights are those of another network"),
    ],
)
def test_state_of_another_training_is_refused_with_what_is_wrong(change: Change, what: str) -> None:
    content = tree()
    change(content)
    with pytest.raises((ValueError, TypeError), match=what):
        require_state(content, training(), 0)


def test_measurements_within_epochs_are_not_compared_with_their_number() -> None:
    content, run = tree(), training()
    content["state"]["history"] = [{}, {}]
    with pytest.raises(ValueError, match="epoch 0 and 2 measurements"):
        require_state(content, run, 0)
    run.plan = replace(run.plan, eval_every=2)
    require_state(content, run, 0)


def test_changed_threads_are_reported_and_a_new_run_reports_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = TrainConfig.of(threads=2)
    report_rounding(now, Ranks(), None)
    assert events(capsys) == []
    monkeypatch.setattr(resume_point, "rounding_changes", lambda config, world, settings: ["threads 1 is now 2"])
    report_rounding(now, Ranks(), {"config": {}})
    printed = capsys.readouterr()
    assert json.loads(printed.out) == {"event": "rounding_changes", "changes": ["threads 1 is now 2"]}
    assert "will not be bit-identical to the original run: threads 1 is now 2" in printed.err


def folder(path: Path) -> RunFolder:
    (path / ".one.partial").mkdir()
    return RunFolder(name="one", partial=path / ".one.partial", final=path / "one")


def test_run_without_a_checkpoint_starts_anew_and_keeps_what_memory_allowed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, place = training(), folder(tmp_path)
    settings = {"config": TrainConfig.of().as_dict(), "inputs": None}
    restore_latest_checkpoint(run, place, settings, {"inputs": {}}, fixed_size=False)
    assert events(capsys) == [{"event": "resumed", "run": "one", "step": 0, "epoch": 0, "from_start": True}]
    (place.partial / MOST_ROWS).write_text(json.dumps({"rows": 3}))
    restore_latest_checkpoint(run, place, settings, {"inputs": {}}, fixed_size=False)
    assert (run.most_rows, run.state.micro_batch.size) == (3, 3)
    assert events(capsys)[0] == {"event": "out_of_memory_before", "most_rows": 3}
