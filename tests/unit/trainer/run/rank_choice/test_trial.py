"""A trial of `--ranks auto`: which cards count, what is measured for each kind of data, and that nothing is left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from trainer.config.recipe import resolve
from trainer.device.accelerator import Accelerator
from trainer.distributed.collectives import Ranks
from trainer.engine.callbacks.callback import TakenSteps
from trainer.run.memory_plan.start_size import StartSize
from trainer.run.phases import prepare
from trainer.run.rank_choice import trial
from trainer.runtime.errors import TrainerError

CARD = Accelerator(device="cuda:0", kind="rocm", name="SIMULATED card", arch="gfx1100", memory_bytes=1 << 34)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv(trial.TRIAL, str(tmp_path))
    monkeypatch.setenv(trial.LENGTH, "0.05")
    yield tmp_path


@pytest.mark.parametrize(
    ("alike", "visible", "cards", "phrase"),
    [(2, 2, 2, ""), (1, 1, 1, "one card is here"), (2, 3, 1, "3 cards are here, 2 of them gfx1100"), (1, 2, 1, "hide")],
)
def test_cards_count_where_all_that_are_visible_are_alike(
    alike: int, visible: int, cards: int, phrase: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial, "alike_cards", lambda _: [CARD] * alike)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: visible)
    found = trial.usable(CARD)
    assert found["cards"] == cards
    assert phrase in found.get("why", "")


def test_named_card_is_one_and_a_cpu_stands_in() -> None:
    assert trial.here(resolve({"device": "cuda:1"})) == {"cards": 1, "why": "--device cuda:1 names one card"}
    assert trial.here(resolve({"device": "cpu"})) == {"cards": 2, "stand_in": True}


def test_stopwatch_counts_after_its_warm_up_and_stops_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(trial.time, "perf_counter", lambda: now[0])
    watch, run = (
        trial.Stopwatch(3.0),
        SimpleNamespace(device=torch.device("cpu"), stop=SimpleNamespace(requested=False)),
    )
    rows = torch.arange(10)
    for step in range(60):
        now[0] += 0.1
        watch.on_step_end(run, TakenSteps(step, [rows], torch.zeros(1)))
    assert run.stop.requested
    assert (watch.steps, watch.rows) == (30, 300)
    assert watch.seconds == pytest.approx(3.0)


@pytest.mark.usefixtures("torch_as_before")
@pytest.mark.parametrize("kind", ["bars", "table", "text"])
def test_kinds_of_data_are_measured_and_no_run_is_written(kind: str, folder: Path, tmp_path_factory: Any) -> None:
    source: Path = tmp_path_factory.mktemp("data") / "data"
    settings: dict[str, Any] = {"device": "cpu", "ranks": "auto"}
    if kind == "table":
        source.write_text("x,y,price\n" + "".join(f"{i % 7},{i % 5},{i % 11}\n" for i in range(300)))
        settings |= {"data": source, "target": "price"}
    if kind == "text":
        source = source.with_suffix(".txt")
        source.write_text("the quick brown fox jumps over the lazy dog. " * 200)
        small = {"decoder_layers": 1, "decoder_width": 32, "sequence": 32, "batch_size": 4}
        settings |= {"data": source, "task": "lm", **small}
    found = trial.measured(trial.without_traces(resolve(settings)), Ranks())
    assert found["ranks"] == 1
    assert found["rows_per_second"] > 0
    assert found["steps"] >= trial.STEPS
    assert not [path for path in folder.rglob("*") if path.suffix in (".safetensors", ".json", ".jsonl", ".pt")]


@pytest.mark.usefixtures("torch_as_before", "folder")
def test_trial_is_of_the_micro_batch_that_the_run_would_start_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan is a STAND-IN: no card is here."""
    source = tmp_path / "data.txt"
    source.write_text("the quick brown fox jumps over the lazy dog. " * 200)
    small = {"decoder_layers": 1, "decoder_width": 32, "sequence": 32, "batch_size": 4}
    monkeypatch.setattr(prepare, "planned_start", lambda *_: StartSize(rows=2, why="STAND-IN"))
    monkeypatch.setattr(trial, "rate", lambda _, config, ranks: {"rows": config.compute.micro_batch})
    config = resolve({"device": "cpu", "data": source, "task": "lm", **small})
    assert trial.measured(trial.without_traces(config), Ranks()) == {"rows": 2}


@pytest.mark.parametrize(
    ("settings", "rows", "size"),
    [
        ({}, 640, 64),
        ({}, 639, None),
        ({"parallel": "fsdp2"}, 10_000, None),
        ({"set": ["train.batch_schedule=5:64"]}, 10_000, None),
    ],
)
def test_larger_batch_is_measured_where_it_is_a_sensible_training(
    settings: dict[str, Any], rows: int, size: int | None
) -> None:
    found = trial.larger_batch(resolve(settings), rows=rows, ranks=2)
    assert (found.loop.batch_size if found else None) == size


@pytest.mark.parametrize("text", ["0", "-1", "soon"])
def test_length_that_is_no_time_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(trial.LENGTH, text)
    with pytest.raises(TrainerError, match="RM500"):
        trial.length()
