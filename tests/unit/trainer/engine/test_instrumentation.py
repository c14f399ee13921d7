"""The trainer's own callbacks of a run, by rank and setting, and what rates are measured against."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.fixtures.training import training
from trainer.config.sections.run import TelemetryConfig
from trainer.device.accelerator import Accelerator
from trainer.engine import instrumentation
from trainer.engine.instrumentation import age_of_checkpoint, callbacks_of, cards_of, guard_of, throughput_reference
from trainer.engine.training import Training
from trainer.storage.run_folder import RunFolder
from trainer.telemetry.nan_guard import MOST_BYTES

CPU = Accelerator(device="cpu", kind="cpu", name="a processor", arch="x86_64", memory_bytes=1 << 30)
CARD = replace(CPU, device="cuda:0", kind="rocm", name="AMD Instinct MI300X", arch="gfx942")


def folder(path: Path) -> RunFolder:
    (path / ".one.partial").mkdir(exist_ok=True)
    return RunFolder(name="one", partial=path / ".one.partial", final=path / "one")


def ranked(run: Training, **ranks: Any) -> Training:
    """Return a run whose ranks are a STAND-IN for several."""
    facts = {"rank": 1, "world_size": 2, "is_main": False, "heartbeat": None, "lockstep": False} | ranks
    run.ranks = SimpleNamespace(**facts)  # type: ignore[assignment]
    return run


def names(run: Training, path: Path, **settings: Any) -> list[str]:
    made = callbacks_of(run, TelemetryConfig(**settings), folder(path), CPU, {}, {})
    return [type(each).__name__ for each in made]


def test_callbacks_of_one_process_are_guard_telemetry_and_progress(tmp_path: Path) -> None:
    assert names(training(), tmp_path) == ["NanCheck", "Measurements", "Progress"]
    assert names(training(), tmp_path, nan_guard=0) == ["Measurements", "Progress"]


def test_rank_that_is_not_the_first_has_its_heartbeat_and_guard_alone(tmp_path: Path) -> None:
    assert names(ranked(training(), heartbeat=object()), tmp_path) == ["Heartbeat", "NanCheck"]
    assert names(ranked(training()), tmp_path, nan_guard=0) == []


def test_guard_of_several_ranks_keeps_no_step_to_search_in(tmp_path: Path) -> None:
    alone = guard_of(training(), 7, folder(tmp_path), {})
    one_of_two = guard_of(ranked(training()), 7, folder(tmp_path), {})
    assert (alone._most_bytes, one_of_two._most_bytes) == (MOST_BYTES, 0)
    assert (alone._folder, one_of_two._folder) == (tmp_path / "one-nan", tmp_path / "one-nan-rank-1")
    assert (alone._every, one_of_two._every) == (7, 7)


@pytest.mark.parametrize(
    ("accelerator", "words"),
    [
        (CPU, "so there is no MFU"),
        (replace(CARD, name="Unknown", arch="gfx000"), "no peak is known for Unknown (gfx000), so there is no MFU"),
    ],
)
def test_rates_without_a_peak_have_a_reason(accelerator: Accelerator, words: str) -> None:
    found = throughput_reference(training(), accelerator)
    assert found.peak is None
    assert words in found.why
    assert found.flops_per_row is None  # counted for a share of the peak alone: it takes seconds


def test_peak_is_compared_with_the_operations_of_a_row() -> None:
    found = throughput_reference(training("bf16"), CARD)
    assert found.flops_per_row is not None and found.flops_per_row > 0


def test_operations_that_cannot_be_counted_are_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instrumentation, "flops_per_row", lambda model, row: None)
    found = throughput_reference(training("bf16"), CARD)
    assert (found.flops_per_row, found.why) == (None, "torch cannot count the operations of this model")


def test_peak_is_that_of_all_ranks_cards() -> None:
    one = throughput_reference(training("bf16"), CARD)
    two = throughput_reference(ranked(training("bf16")), CARD)
    assert one.peak is not None
    assert (two.peak, two.ranks) == (2 * one.peak, 2)
    sharded = throughput_reference(ranked(training("bf16"), lockstep=True), CARD)
    assert (sharded.flops_per_row, "sharded model are not counted" in sharded.why) == (None, True)


@pytest.mark.parametrize(
    ("world", "device", "expected"),
    [(1, "cuda:1", ["cuda:1"]), (4, "cpu", ["cpu"]), (4, "cuda:1", ["cuda:0", "cuda:1", "cuda:2"])],
)
def test_cards_are_those_of_this_machines_ranks(
    monkeypatch: pytest.MonkeyPatch, world: int, device: str, expected: list[str]
) -> None:
    here = SimpleNamespace(from_environment=lambda: SimpleNamespace(local_world=3))
    monkeypatch.setattr(instrumentation, "Launch", here)
    assert cards_of(ranked(training(), world_size=world), device) == expected


def test_age_of_a_checkpoint_is_unknown_before_the_first() -> None:
    run = training()
    assert age_of_checkpoint(run)() is None
    writer = SimpleNamespace(written_at=None)
    run.callbacks = SimpleNamespace(all=[object(), writer])  # type: ignore[assignment]
    age = age_of_checkpoint(run)
    assert age() is None
    writer.written_at = time.monotonic() - 5
    assert age() == pytest.approx(5, abs=2)
