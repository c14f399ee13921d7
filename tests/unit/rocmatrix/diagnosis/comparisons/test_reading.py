"""Values are read once, with their lines, within bounds, and across the blocks of a log."""

import pytest

from rocmatrix.diagnosis.comparisons.forms import Read, ValueForm
from rocmatrix.diagnosis.comparisons.reading import MOST_HITS, MOST_READ, Reader


def read(log, *forms, kind="word", size=None):
    """The readings of one value, as (text, line)."""
    reader = Reader({"it": ValueForm(kind=kind, says="it", reads=[Read(**form) for form in forms])})
    data = log.encode()
    for start in range(0, len(data), size or len(data)):
        reader.read(data[start : start + (size or len(data))])
    return [(row.text, row.line) for row in reader.readings["it"]]


LINE = {"line": r"\bvalue=(?P<value>\w{1,9})"}
PRINTED = {"command": "show", "line": r"^value (?P<value>\w{1,9})$"}


def test_line_gives_each_match_with_its_number():
    assert read("a\nvalue=1 value=2\nVALUE=3\nvalue=1\n", LINE) == [("1", 2), ("2", 2), ("1", 4)]


def test_lines_are_counted_over_blocks():
    assert read("aaaaaaaaa\nvalue=1xx\n", LINE, size=10) == [("1xx", 2)]


@pytest.mark.parametrize("typed", ["$ show", "show", "root@a:~# sudo show", "`show`"])
def test_output_of_a_command_is_read(typed):
    assert read(f"value 0\n{typed}\nvalue 1\n\nvalue 2\n$ other\nvalue 3\n", PRINTED) == [("1", 3), ("2", 5)]


def test_line_before_the_last_one_that_was_read_keeps_its_number():
    assert read("$ show\nvalue=7\nvalue 1\nvalue=8\n", PRINTED, LINE) == [("1", 3), ("7", 2), ("8", 4)]


@pytest.mark.parametrize("typed", ["$ showing", "$ echo show", "he has to show"])
def test_other_command_prints_another_value(typed):
    assert read(f"{typed}\nvalue 1\n", PRINTED) == []


@pytest.mark.parametrize(
    ("log", "known"),
    [
        ("$ show\n$ other\n", True),
        ("$ show\n", True),
        ("$ show\n\n$ other\n", True),
        ("$ show\nvalue 1\n", False),
        ("show\n$ other\n", False),
    ],
)
def test_empty_output_is_known_where_a_prompt_shows_it(log, known):
    assert bool(read(log, {"command": "show", "empty": True})) is known


def test_indented_line_counts_below_its_head_alone():
    form = {"line": "driver: (?P<value>\\w{1,9})", "under": "^card"}
    log = "card 1\n\tx\n\tdriver: a\nother\n\tdriver: b\ndriver: c\n"
    assert read(log, form) == [("a", 3)]


def test_constant_table_and_unit_stand_for_what_was_found():
    assert read("value=x\n", {**LINE, "gives": "6.11"}) == [("6.11", 1)]
    assert read("value=a value=b\n", {**LINE, "table": {"a": "1"}}) == [("1", 1)]
    assert read("value=64\n", {**LINE, "unit": "K"}) == [("64K", 1)]


def test_log_of_one_line_again_and_again_is_bounded():
    many = "".join(f"value={number}\n" for number in range(MOST_HITS + 9))
    assert len(read(many, LINE)) == MOST_READ


def test_place_within_a_line_that_is_too_long_is_left_out():
    assert read("x" * 9000 + " value=1\nvalue=2\n", LINE) == [("2", 2)]


def test_lines_of_a_folder_are_counted_by_log():
    reader = Reader({"it": ValueForm(kind="word", says="it", reads=[Read(**LINE)])})
    for log in ("one", "two"):
        assert list(reader.watched([b"a\nvalue=1\n"], log=log)) == [b"a\nvalue=1\n"]
    assert [(row.log, row.line) for row in reader.readings["it"]] == [("one", 2), ("two", 2)]
