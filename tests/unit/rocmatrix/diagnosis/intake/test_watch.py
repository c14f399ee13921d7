"""A growing log: what is new is found once, also after a rotation, a cut, and without the end of its last line."""

import os

import pytest

from rocmatrix.diagnosis.intake import watch
from rocmatrix.diagnosis.intake.follow import Follower
from rocmatrix.diagnosis.ranking import HostContext
from rocmatrix.runtime.errors import RocmatrixError
from tests.unit.rocmatrix.diagnosis.known import SIGNATURES

FAULT = "RuntimeError: HIP error: invalid device function\n"
EXITED = "srun: error: node7: task 0: Exited with exit code 1\n"


def watched(path, *steps):
    """What is found while `steps` change the file between two looks."""
    left = iter(steps)

    def pause():
        step = next(left, None)
        if step is not None:
            step()
        return step is not None

    return [
        (found.best.signature.id, found.best.line)
        for found in watch.diagnoses(
            Follower(path),
            signatures=SIGNATURES,
            here=HostContext(),
            matrix=None,
            failed_checks=frozenset(),
            pause=pause,
        )
    ]


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "train.log"
    path.write_text("step 1\n")
    return path


def append(path, text):
    def step():
        with path.open("a") as file:
            file.write(text)

    return step


def test_first_answer_is_reported_once_and_again_where_it_changes(log):
    steps = (append(log, EXITED), append(log, "step 2\n" + EXITED), append(log, FAULT), append(log, FAULT))
    assert watched(log, *steps) == [("slurm-task-failed", 2), ("hip-invalid-device-function", 5)]


def test_line_that_arrives_in_pieces_is_whole(log):
    assert watched(log, append(log, FAULT[:20]), append(log, FAULT[20:])) == [("hip-invalid-device-function", 2)]


def test_last_line_without_an_end_is_read_after_a_while(log):
    quiet = [lambda: None] * 3
    assert watched(log, append(log, FAULT.strip()), *quiet) == [("hip-invalid-device-function", 2)]


def test_failure_across_two_looks_is_found(log):
    assert watched(log, append(log, "RuntimeError: HIP error:\n"), append(log, "invalid device function\n")) == [
        ("hip-invalid-device-function", 2)
    ]


def test_rotated_log_is_followed_and_what_the_old_one_still_gets_is_read(log):
    def rotate():
        log.rename(log.with_suffix(".log.1"))
        append(log.with_suffix(".log.1"), EXITED)()
        log.write_text("step 7\n" + FAULT)

    assert watched(log, rotate, lambda: None, lambda: None) == [
        ("slurm-task-failed", 2), ("hip-invalid-device-function", 2)
    ]  # fmt: skip


def test_log_that_is_away_for_a_while_is_waited_for(log):
    moved = log.with_suffix(".old")
    steps = (lambda: log.rename(moved), lambda: None, lambda: log.write_text(FAULT), lambda: None)
    assert watched(log, *steps) == [("hip-invalid-device-function", 1)]


@pytest.mark.parametrize("size", [0, 400])
def test_cut_log_is_read_from_its_start_even_where_it_has_grown_beyond(log, size):
    def cut():
        os.truncate(log, 0)
        append(log, "x" * size + "\n" + FAULT)()

    assert watched(log, cut, lambda: None) == [("hip-invalid-device-function", 2)]


def test_utf_16_log_is_followed(log):
    log.write_bytes(("step 1\n" + FAULT[:9]).encode("utf-16"))

    def more():
        with log.open("ab") as file:
            file.write(FAULT[9:].encode("utf-16-le"))

    assert watched(log, more) == [("hip-invalid-device-function", 2)]


def test_folder_or_packed_log_is_refused(tmp_path):
    (tmp_path / "a.log").write_bytes(b"\x1f\x8b\x08\x00")
    for path in (tmp_path, tmp_path / "a.log"):
        with pytest.raises(RocmatrixError, match="RM684"):
            Follower(path)
    with pytest.raises(RocmatrixError, match="RM610"):
        Follower(tmp_path / "none.log")
