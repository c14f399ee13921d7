"""Readers of settings: each takes its values and refuses all others, in its own words."""

from argparse import ArgumentTypeError
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.config import parsing


@given(st.integers(0, 30), st.integers(0, 20), st.integers(0, 20))
def test_whole_number_is_taken_within_its_limits(value, least, width):
    read = parsing.whole(least, least + width)
    if least <= value <= least + width:
        assert read(str(value)) == value
    else:
        with pytest.raises(ArgumentTypeError, match=f"whole number, {least} to {least + width}"):
            read(str(value))


@given(st.floats(-2, 12, allow_nan=False))
def test_limits_of_numbers_are_open_at_zero_or_one_where_stated(value):
    taken = {
        parsing.number(10): 0 < value <= 10,
        parsing.zero_or_more(10): 0 <= value <= 10,
        parsing.share: 0 <= value < 1,
    }
    for read, good in taken.items():
        if good:
            assert read(repr(value)) == value
        else:
            with pytest.raises(ArgumentTypeError):
                read(repr(value))


@pytest.mark.parametrize("text", ["", "nan", "inf", "-inf", "1e999", "one", "0x1"])
@pytest.mark.parametrize("read", [parsing.number(1e6), parsing.zero_or_more(1e6), parsing.share, parsing.whole(0)])
def test_text_that_is_no_finite_number_is_refused(read, text):
    with pytest.raises(ArgumentTypeError):
        read(text)


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (parsing.path, "a/b", Path("a/b")),
        (parsing.one_of("a", "b"), "b", "b"),
        (parsing.some_of("a", "b"), "b, a,b", ("b", "a")),
        (parsing.some_of("a", "b"), "", ()),
        (parsing.or_auto(parsing.whole(1)), "auto", None),
        (parsing.or_auto(parsing.whole(1)), "7", 7),
        (parsing.or_none(parsing.number(1)), "none", None),
        (parsing.switch, "YES", True),
        (parsing.switch, "0", False),
        (parsing.callbacks, "none", ()),
        (parsing.callbacks, "a.py:A, b:B", ("a.py:A", "b:B")),
        (parsing.names, "a,,b ", ("a", "b")),
        (parsing.widths_of(1, 64, 2), "none", ()),
        (parsing.widths_of(1, 64, 2), "64, 1", (64, 1)),
        (parsing.column_roles, "date=When,close=Last", ("date=When", "close=Last")),
        (parsing.session_hours, "09:30-24:00", "09:30-24:00"),
        (parsing.run_name, "a" * 100, "a" * 100),
        (parsing.seconds_or_word, "off", None),
        (parsing.seconds_or_word, "auto", "auto"),
        (parsing.seconds_or_word, "1.5", 1.5),
    ],
)
def test_value_is_read_from_its_text(read, text, value):
    assert read(text) == value


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (parsing.one_of("a", "b"), "c"),
        (parsing.some_of("a", "b"), "a,c"),
        (parsing.or_auto(parsing.whole(1)), "none"),
        (parsing.switch, "on"),
        (parsing.widths_of(1, 64, 2), "1,2,3"),
        (parsing.widths_of(1, 64, 2), "65"),
        (parsing.widths_of(1, 64, 2), ""),
        (parsing.column_roles, "date=When,date=Day"),
        (parsing.column_roles, "date="),
        (parsing.column_roles, "colour=Red"),
        (parsing.session_hours, "9:30-16:00"),
        (parsing.session_hours, "24:00-24:00"),
        (parsing.run_name, ".hidden"),
        (parsing.run_name, "a" * 101),
        (parsing.run_name, "a/b"),
        (parsing.seconds_or_word, "0"),
    ],
)
def test_text_of_another_form_is_refused_with_the_text(read, text):
    with pytest.raises(ArgumentTypeError):
        read(text)


def test_words_of_help_show_the_choices():
    assert parsing.one_of("a", "b").metavar == "{a,b}"
    assert parsing.some_of("a").metavar == "{a}"
    assert parsing.some_of("a", "b").metavar == "{a,b},..."
    assert parsing.or_none(parsing.whole(1)).metavar == "INT|none"


def test_flag_that_is_given_again_is_named_with_the_value_that_counts() -> None:
    words = ["--epochs", "3", "--seed=1", "--epochs=5", "--seed", "1", "--set", "a=1", "--set", "a=2"]
    assert parsing.given_twice(words, {"--epochs", "--seed"}) == [
        "--epochs is given 2 times, and the last one counts: 5"
    ]
