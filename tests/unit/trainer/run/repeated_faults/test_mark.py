"""The mark of the running step: what a killed process leaves, and what one that ends in order does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from trainer.device.memory import OutOfMemory
from trainer.distributed.collectives import Ranks
from trainer.run.repeated_faults.mark import FAULTS, LAYOUT, MAGIC, MARK, Fault, StepMark, died_at, faults_of, marked
from trainer.runtime.errors import TrainerError

KEPT = (Fault(step=5, remedies=0), Fault(step=6, remedies=1))
DEVICE = RuntimeError("HIP error: an illegal memory access was encountered")


def at(step: int) -> SimpleNamespace:
    return SimpleNamespace(state=SimpleNamespace(step=step - 1))


def leave(folder: Path, rank: int, running: int, step: int, magic: int = MAGIC) -> None:
    (folder / MARK.format(rank)).write_bytes(LAYOUT.pack(magic, running, step))


def test_killed_process_leaves_the_step_it_was_in(tmp_path: Path) -> None:
    code = f"""
import os, signal
from pathlib import Path
from types import SimpleNamespace
from trainer.distributed.collectives import Ranks
from trainer.run.repeated_faults.mark import marked
with marked(Path({str(tmp_path)!r}), Ranks(), ()) as mark:
    for step in range(7):
        mark.on_step_begin(SimpleNamespace(state=SimpleNamespace(step=step)))
    os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    assert died_at(tmp_path) == 7


def test_complete_run_leaves_nothing(tmp_path: Path) -> None:
    with marked(tmp_path, Ranks(), KEPT) as mark:
        assert faults_of(tmp_path) == KEPT
        mark.on_step_begin(at(3))
        assert died_at(tmp_path) == 3
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("error", "step"),
    [
        (TrainerError("RM554", what="stopped"), None),
        (KeyboardInterrupt(), None),
        (OutOfMemory("HIP out of memory"), None),
        (RuntimeError("a callback's own"), None),
        (DEVICE, 4),
        (RuntimeError("CUDA error: unspecified launch failure"), 4),
        *([(torch.AcceleratorError("HIP error: x"), 4)] if hasattr(torch, "AcceleratorError") else []),
    ],
    ids=lambda value: type(value).__name__,
)
def test_error_of_the_device_counts_as_a_death_and_no_other(
    error: BaseException, step: int | None, tmp_path: Path
) -> None:
    with pytest.raises(type(error)), marked(tmp_path, Ranks(), KEPT) as mark:
        mark.on_step_begin(at(4))
        raise error
    assert died_at(tmp_path) == step
    assert faults_of(tmp_path) == KEPT


@pytest.mark.parametrize(
    ("marks", "step"),
    [
        ([], None),
        ([(0, 0, 9)], None),  # ended in order
        ([(0, 1, 0)], None),  # before the first step
        ([(0, 0, 9), (1, 1, 8)], 8),  # one of two died, the other was stopped
        ([(0, 1, 9), (1, 1, 8)], 9),
    ],
)
def test_death_of_any_rank_is_found(marks: list[tuple[int, int, int]], step: int | None, tmp_path: Path) -> None:
    for rank, running, number in marks:
        leave(tmp_path, rank, running, number)
    assert died_at(tmp_path) == step


@pytest.mark.parametrize("content", [b"", b"x" * 24, b"x" * 7])
def test_file_that_is_no_mark_is_no_death(content: bytes, tmp_path: Path) -> None:
    (tmp_path / MARK.format(0)).write_bytes(content)
    assert died_at(tmp_path) is None


@pytest.mark.parametrize(
    "content", ["", "{}", "[1]", '[{"step": 1}]', '[{"step": true, "remedies": 0}]', '[{"step": -1, "remedies": 0}]']
)
def test_file_of_faults_that_is_none_holds_none(content: str, tmp_path: Path) -> None:
    (tmp_path / FAULTS).write_text(content)
    assert faults_of(tmp_path) == ()


def test_marks_of_ranks_that_are_no_more_are_removed(tmp_path: Path) -> None:
    leave(tmp_path, 0, 1, 5)
    leave(tmp_path, 1, 1, 5)
    with pytest.raises(KeyboardInterrupt), marked(tmp_path, Ranks(), ()):
        raise KeyboardInterrupt
    assert died_at(tmp_path) is None
    assert not (tmp_path / MARK.format(1)).exists()


def test_mark_is_a_callback_for_launches_of_several_steps(tmp_path: Path) -> None:
    assert StepMark(tmp_path / "m").accepts_launches
