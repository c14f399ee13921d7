"""What stands around a place in squeezed text, in short and very long lines, in time that no length decides."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmatrix.diagnosis.search.chunk import LONGEST_SHOWN, REACH, Chunk, context, readable

LONG = 8 << 20


def chunk(text):
    return Chunk(text, 1, 0, text)


@given(st.integers(0, 3 * REACH), st.integers(0, 3 * REACH))
def test_line_around_a_place_is_whole_up_to_the_reach(before, after):
    text = b"first\n" + b"-" * before + b"X" + b"+" * after + b"\nlast"
    line, place = chunk(text).around(5 + before)
    assert line[place : place + 1] == b"X"
    assert place == min(before, REACH)
    assert len(line) - place == min(after + 1, REACH)
    assert set(line) <= set(b"-X+")


def test_thousands_of_places_in_one_line_of_megabytes_take_less_than_seconds():
    found = chunk(b"some words " * (LONG // 11))
    assert found.line(0) == 0
    began = time.process_time()
    for position in range(0, 5_000_000, 500):
        found.around(position)
        found.line(position)
    assert time.process_time() - began < 2


def test_shape_of_a_match_is_that_of_lines_that_differ_in_digits_alone():
    found = chunk(b"step 11: an error\nstep 27: an error\n\nstep 3: an error")
    first, second, third = ((at, at + 5) for at in (9, 23, 36))
    assert found.shape(first) == found.shape(second)
    assert found.shape(first) != found.shape(third)
    assert found.shape((9, 20)) != found.shape(first)  # goes on in the next line
    assert chunk(b"x" * 5000).shape((3, 9)) is None


def test_line_after_a_place_and_the_last_bytes_begin_where_they_do():
    found = chunk(b"one two\n\nthree\nfour")
    assert [found.after(place) for place in (0, 5, 6, 11)] == [6, 6, 11, 15]
    assert (found.near_end(4), found.near_end(99)) == (11, 0)
    assert found.lines(1, 3) == [b"", b"three"]


def test_place_that_is_looked_up_twice_is_the_same():
    found = chunk(b"one two\nthree")
    first, other = (b"one two", 1), (b"three", 1)
    assert [found.around(place) for place in (1, 1, 7, 1)] == [first, first, other, first]


@pytest.mark.parametrize(
    ("text", "size", "expected"),
    [
        (b"", 1, False), (b"\n\n", 1, False), (b"abc", 3, True), (b"abc", 4, False), (b"a\nabc\nb", 3, True),
        (b"ab\nabc\nab\n", 4, False), (b"abcd\n\n", 4, True), (b"\nabcd", 4, True),
    ],
)  # fmt: skip
def test_line_of_a_size_is_found_wherever_it_stands(text, size, expected):
    assert chunk(text).has_line_of(size) is expected
    assert (max(map(len, text.split(b"\n"))) >= size) is expected


def test_lines_as_they_came_are_those_of_the_whole_chunk():
    whole = chunk(b"one\ntwo")
    assert Chunk(b"one", 1, 0, b"one\ntwo", whole=whole).printed is whole.printed


def test_line_of_a_place_begins_where_its_first_kept_byte_is():
    found = chunk(b"one two\n\n three\nfour")
    assert [found.beginning(place) for place in (0, 5, 6, 10, 11)] == [0, 0, 6, 6, 11]


def test_line_is_shown_without_control_characters_and_cut():
    assert readable(b" an error\x1b here\xff\n", 0) == "an error  here�"
    assert readable(b"x" * 5000, 0) == "x" * (LONGEST_SHOWN - 1) + "…"


def test_line_of_a_megabyte_is_shown_around_the_place():
    assert readable(b"a" * 5000 + b"X" + b"b" * 5000, 5000).startswith("a" * (LONGEST_SHOWN // 4) + "Xbbb")


def test_message_is_the_line_from_the_match_on_with_two_more_up_to_the_next_entry():
    lines = b"step 3: it is\n not\n so\n at all\n"
    assert context(chunk(lines), 6) == "step 3: it is not so"
    assert context(chunk(b"it is\nhint: more\n so\n"), 0) == "it is"
