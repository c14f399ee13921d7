"""The mark of the running step: what a killed process leaves, and what one that ends in order does not."""

from __future__ import annotations

import faulthandler
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from tests.left_out import one_of
from trainer.device.memory import OutOfMemory
from trainer.distributed.collectives import Ranks
from trainer.run.repeated_faults.mark import (
    FAULTS,
    LAYOUT,
    MAGIC,
    MARK,
    NOTE,
    UNKNOWN,
    Fault,
    StepMark,
    cause_in,
    death_in,
    faults_of,
    marked,
)
from trainer.runtime.errors import TrainerError

KEPT = (Fault(step=5, remedies=0), Fault(step=6, remedies=1))
DEVICE = RuntimeError("HIP error: an illegal memory access was encountered")


def at(step: int) -> SimpleNamespace:
    return SimpleNamespace(state=SimpleNamespace(step=step - 1))


def died_at(folder: Path) -> int | None:
    death = death_in(folder, remedies=0)
    return death.step if death else None


def leave(folder: Path, rank: int, running: int, step: int, magic: int = MAGIC) -> None:
    (folder / MARK.format(rank)).write_bytes(LAYOUT.pack(magic, running, step))


PROGRAM = """
import ctypes, os, signal, sys
from pathlib import Path
from types import SimpleNamespace
from trainer.distributed.collectives import Ranks
from trainer.run.repeated_faults.mark import marked
with marked(Path(sys.argv[1]), Ranks(), ()) as mark:
    for step in range(7):
        mark.on_step_begin(SimpleNamespace(state=SimpleNamespace(step=step)))
    if sys.argv[2] == "SEGV at 0":
        ctypes.string_at(0)
    if sys.argv[2] == "abort(3)":
        ctypes.CDLL(None).abort()
    os.kill(os.getpid(), getattr(signal, sys.argv[2]))
"""


@pytest.mark.parametrize(
    ("how", "cause"),
    one_of(
        [
            ("SEGV at 0", "SIGSEGV"),
            ("abort(3)", "SIGABRT"),  # what a card's runtime does on a page fault
            ("SIGKILL", UNKNOWN),
            *((name, name) for name in ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGFPE")),
            ("SIGTERM", UNKNOWN),
        ],
        3,
    ),
)
def test_process_that_dies_leaves_the_step_it_was_in_and_of_what(how: str, cause: str, tmp_path: Path) -> None:
    died = subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path), how], check=False, capture_output=True)
    assert died.returncode < 0
    assert death_in(tmp_path, remedies=1) == Fault(step=7, remedies=1, cause=cause)


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
    assert death_in(tmp_path, remedies=2) == (step and Fault(step=step, remedies=2, cause="error of the device"))
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


def test_rank_whose_cause_is_known_comes_before_those_that_its_launcher_killed(tmp_path: Path) -> None:
    leave(tmp_path, 0, 1, 9)
    leave(tmp_path, 1, 1, 8)
    (tmp_path / NOTE.format(1)).write_text("Fatal Python error: Bus error\n\nThread 0x1 (most recent call first):\n")
    assert death_in(tmp_path, remedies=0) == Fault(step=8, remedies=0, cause="SIGBUS")


@pytest.mark.parametrize(("later", "cause"), [(1, "hang"), (0, "hang"), (-1, UNKNOWN)])
def test_hang_that_the_watchdog_ended_is_of_the_attempt_that_began_before_it(
    later: int, cause: str, tmp_path: Path
) -> None:
    note, hang = tmp_path / NOTE.format(0), tmp_path / "watchdog" / "attempt0" / "hang.json"
    hang.parent.mkdir(parents=True)
    for path, seconds in ((note, 0), (hang, later)):
        path.touch()
        os.utime(path, ns=(0, 10**18 + seconds * 10**9))
    assert cause_in(note) == cause


def test_note_that_is_absent_or_of_another_program_is_no_verdict_of_a_name(tmp_path: Path) -> None:
    assert cause_in(tmp_path / "absent") == UNKNOWN
    (tmp_path / "other").write_bytes(b"\xff Fatal Python error: Segmentation fault")
    assert cause_in(tmp_path / "other") == "a signal"


def test_faults_of_an_earlier_version_are_of_unknown_cause(tmp_path: Path) -> None:
    (tmp_path / FAULTS).write_text('[{"step": 3, "remedies": 1}]')
    assert faults_of(tmp_path) == (Fault(step=3, remedies=1, cause=UNKNOWN),)


def test_handler_of_faults_is_restored(tmp_path: Path) -> None:
    before = faulthandler.is_enabled()
    with marked(tmp_path, Ranks(), ()):
        assert faulthandler.is_enabled()
    assert faulthandler.is_enabled() == before


@pytest.mark.parametrize("content", [b"", b"x" * 24, b"x" * 7])
def test_file_that_is_no_mark_is_no_death(content: bytes, tmp_path: Path) -> None:
    (tmp_path / MARK.format(0)).write_bytes(content)
    assert died_at(tmp_path) is None


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{}",
        "[1]",
        '[{"step": 1}]',
        '[{"step": true, "remedies": 0}]',
        '[{"step": -1, "remedies": 0}]',
        '[{"step": 1, "remedies": 0, "cause": 3}]',
        '[{"step": 1, "more": 0}]',
    ],
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
