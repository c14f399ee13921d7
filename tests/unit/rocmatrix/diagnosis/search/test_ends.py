"""Exceptions by the thousand: whether one stands at the end is known, and the middle of a chunk is passed over."""

import pytest

from rocmatrix.diagnosis.pattern import parse
from rocmatrix.diagnosis.search import ends
from rocmatrix.diagnosis.search.chunk import Chunk
from rocmatrix.diagnosis.search.match import LAST_LINES, MOST_COUNTED
from tests.unit.rocmatrix.diagnosis.known import ranked, signatures_of

NUMBERED = parse(r"widget\d{4}")
LINE = "ValueError: the widget {} has no frobnicator\n"
WENT_ON = "step {} done\n"


def of(count, line=LINE):
    return "".join(line.format(number) for number in range(count))


@pytest.mark.parametrize("count", [1, MOST_COUNTED, MOST_COUNTED + 1, 12_000])
def test_exception_of_any_number_that_ends_a_log_is_known(count):
    (failure,) = ranked(of(count)).failures
    assert failure.signature.id == "python-value-refused"
    assert (failure.line, failure.count) == (1, min(count, MOST_COUNTED))


def test_exceptions_by_the_thousand_that_were_handled_are_none():
    assert signatures_of(of(12_000) + of(LAST_LINES + 1, WENT_ON)) == []
    assert signatures_of(of(12_000) + of(LAST_LINES - 1, WENT_ON)) == ["python-value-refused"]


def test_cause_in_the_middle_of_exceptions_by_the_thousand_is_known():
    text = of(6_000) + "RuntimeError: HIP error: invalid device function\n" + of(6_000)
    assert "hip-invalid-device-function" in signatures_of(text)


def chunk_of(text):
    return Chunk(text.encode(), 1, 0, text.encode())


def test_matches_of_both_ends_are_the_first_ones_and_those_of_the_last_lines_each_once():
    chunk = chunk_of("".join(f"widget{number:04d}\n" for number in range(1000)))
    whole = [[0, len(chunk.squeezed)]]
    every = list(ends.all_of(chunk, NUMBERED, whole))
    assert len(every) == 1000
    assert list(ends.both_ends(chunk, NUMBERED, whole, 1000)) == every
    assert list(ends.both_ends(chunk, NUMBERED, whole, 3)) == every[:3] + every[-LAST_LINES:]
    assert list(ends.both_ends(chunk, NUMBERED, whole, 0)) == every[-LAST_LINES:]
    assert list(ends.both_ends(chunk, NUMBERED, whole, 900)) == every[:900] + every[900:]


def test_text_without_a_match_is_searched_at_both_ends_alone(monkeypatch):
    monkeypatch.setattr(ends, "MOST_SEARCHED", 10)
    chunk = chunk_of("x" * 40 + "widget0000\n" + "b\n" * 300 + "widget0001\n")
    found = list(ends.both_ends(chunk, NUMBERED, [[0, len(chunk.squeezed)]], 5))
    assert [chunk.squeezed[start:end] for start, end in found] == [b"widget0001"]


@pytest.mark.parametrize(
    ("most", "expected"), [(0, []), (3, [[0, 3]]), (5, [[0, 5]]), (6, [[0, 5], [9, 10]]), (99, [[0, 5], [9, 12]])]
)
def test_first_parts_of_spans_have_so_many_bytes(most, expected):
    assert ends.first([[0, 5], [9, 12]], most) == expected


def test_last_parts_of_spans_begin_at_a_place():
    assert ends.last([[0, 5], [9, 12]], 5) == [[9, 12]]
    assert ends.last([[0, 5], [9, 12]], 10) == [[10, 12]]


def test_line_of_a_million_matches_costs_a_hundred_of_them_and_hides_no_other_line(monkeypatch):
    monkeypatch.setattr(ends, "MOST_IN_LINE", 3)
    chunk = chunk_of("widget0001 " * 50 + "\nwidget0002 widget0003\n" + "widget0004 " * 9)
    found = [chunk.squeezed[start:end] for start, end in ends.all_of(chunk, NUMBERED, [[0, len(chunk.squeezed)]])]
    assert found == [b"widget0001"] * 3 + [b"widget0002", b"widget0003"] + [b"widget0004"] * 3


@pytest.mark.parametrize("rows", [[250], [40, 99, 100, 101], [3, 250, 1, 120], [100, 100], [60, 60, 60]])
def test_matches_of_one_line_are_bounded_and_those_of_others_are_all_found(rows):
    text = "".join("widget0001" * count + "\n" for count in rows)
    chunk = chunk_of(text)
    found = [chunk.line(start) for start, _ in ends.all_of(chunk, NUMBERED, [[0, len(chunk.squeezed)]])]
    assert [found.count(row) for row in range(len(rows))] == [min(count, ends.MOST_IN_LINE) for count in rows]
