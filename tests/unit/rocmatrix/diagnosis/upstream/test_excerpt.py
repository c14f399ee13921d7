"""What a report quotes: the lines around a failure, whatever blocks they came in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmatrix.diagnosis.upstream.excerpt import AROUND, FIRST, LONGEST, excerpt


def log(count, **special):
    return [special.get(f"line{number}", f"row {number}").encode() for number in range(1, count + 1)]


@given(st.integers(1, 60), st.integers(1, 60), st.integers(1, 7))
def test_quoted_lines_are_those_around_the_failure(count, line, size):
    rows = log(count)
    blocks = [b"\n".join(rows[at : at + size]) + b"\n" for at in range(0, count, size)]
    found = excerpt(blocks, line)
    if line <= count:
        low, high = max(1, line - AROUND), min(count, line + AROUND)
        assert found.quoted == tuple(f"row {number}" for number in range(low, high + 1))
    else:  # a line that the log does not have: its end
        low = max(1, count + 1 - AROUND)
        assert found.quoted == tuple(f"row {number}" for number in range(low, count + 1))
    assert found.first == low


def test_first_line_that_reports_an_error_is_taken_where_none_is_named():
    found = excerpt([b"\n".join(log(40, line20="RuntimeError: x", line30="FAILED"))], None)
    assert (found.first, found.quoted[AROUND]) == (20 - AROUND, "RuntimeError: x")


def test_head_holds_the_first_lines_alone():
    found = excerpt([b"\n".join(log(FIRST + 5))], None)
    assert (len(found.head), found.head[0], found.head[-1]) == (FIRST, "row 1", f"row {FIRST}")


@pytest.mark.parametrize(
    ("row", "shown"),
    [(b"\x1b[31mred\x1b[0m", "red"), (b"a\x07b  ", "a b"), (b"y" * 999, "y" * (LONGEST - 1) + "…")],
)
def test_quoted_line_is_plain_and_not_too_long(row, shown):
    assert excerpt([row], 1).quoted == (shown,)


def test_empty_log_quotes_nothing():
    assert excerpt([], None).quoted == ()
