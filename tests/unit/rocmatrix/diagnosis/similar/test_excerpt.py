"""Which lines of a log are compared with known failures."""

from __future__ import annotations

import pytest

from rocmatrix.diagnosis.similar.excerpt import KEPT, MOST, WHOLE, End, excerpt, reports_trouble


def lines_of(count):
    return [f"step {number} loss 1.0" for number in range(count)]


def passed(blocks):
    end = End()
    assert list(end.watched(blocks)) == blocks
    return end.kept


def test_end_of_chunks_is_kept_whatever_their_size():
    whole = b"".join(b"%07d\n" % number for number in range(3 * KEPT // 8))
    for size in (100, KEPT - 1, KEPT, 2 * KEPT):
        blocks = [whole[at : at + size] for at in range(0, len(whole), size)]
        assert passed(blocks) == whole[-KEPT:]


def test_short_log_is_compared_whole():
    lines = lines_of(WHOLE)
    lines[3] = "an error"
    assert excerpt("\n".join(lines).encode()) == "\n".join(lines)


def test_long_log_is_compared_by_its_lines_of_trouble_each_with_the_line_before_it():
    lines = lines_of(WHOLE + 5)
    lines[7], lines[8], lines[20] = "invalid device", "Aborted", "exit: cannot go on"
    assert excerpt("\n".join(lines).encode()).split("\n") == [
        "step 6 loss 1.0",
        "invalid device",
        "Aborted",
        "step 19 loss 1.0",
        "exit: cannot go on",
    ]


def test_long_log_without_trouble_is_compared_by_its_end():
    lines = lines_of(3 * MOST)
    assert excerpt("\n".join(lines).encode()).split("\n") == lines[-MOST:]


def test_prefixes_and_colours_are_left_out_and_matched_lines_come_first():
    end = b"2026-01-01T10:00:00Z \x1b[31mRuntimeError: bad\x1b[0m\n\n"
    assert excerpt(end, ["HIP error: x"]) == "HIP error: x\nRuntimeError: bad"


def test_words_by_which_programs_report_trouble():
    assert reports_trouble("E: Unable to locate package") and reports_trouble("Kernel panic - not syncing")


@pytest.mark.parametrize(
    "words",
    [
        "no GPU is found",
        "the second card stays idle",
        "0 GPUs in the dashboard",
        "the picture is black",
        "it doesn't start",
    ],
)
def test_words_by_which_people_describe_a_failure(words):
    assert reports_trouble(words)


@pytest.mark.parametrize(
    "words",
    [
        "quiet panic=1 console=ttyS0 nomodule",
        "step 3 loss 0.1",
        "I have no name!@host:/$ ls",
        "26 done in 4.8 s",
        "CXX_FLAGS=-O2 -Werror=format -Wno-unknown-pragmas",
        "INFO 01-01 [shm.py:4] No block found in 60 seconds",
    ],
)
def test_words_of_machines_that_work(words):
    assert not reports_trouble(words)
