"""A place in squeezed text is found in the text and in its line, in short and very long lines, across parts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmatrix.diagnosis.pattern import DROPPED, squeeze
from rocmatrix.diagnosis.search import places
from rocmatrix.diagnosis.search.places import PART, STEP, Places, squeezed_lines


def kept_of(text):
    return [place for place, byte in enumerate(text) if byte not in DROPPED]


def check(text):
    kept, found = kept_of(text), Places(text)
    assert [found.offset(position) for position in range(len(kept))] == kept
    assert [found.row(position) for position in range(len(kept))] == [text[:place].count(b"\n") for place in kept]
    begins = [0, *(place + 1 for place, byte in enumerate(text) if byte == ord("\n"))]
    assert [found.start(row) for row in range(len(begins))] == [len(kept_of(text[:at])) for at in begins]
    assert found.start(len(begins)) == len(kept)


@given(st.text(alphabet="ab \n\t'", max_size=1500).map(str.encode))
def test_kept_bytes_are_found_with_their_lines(text):
    check(text)


@pytest.mark.parametrize(
    "text", [b"", b"\n", b"a", b" \n\n a", b"a\n" * 70, b"ab 'c'\n\n" * 40, b" " * 90 + b"a\n" + b"b" * 90]
)
@pytest.mark.parametrize("size", [16, 32])
def test_parts_of_any_size_give_the_same_places(text, size, monkeypatch):
    monkeypatch.setattr(places, "PART", size)
    monkeypatch.setattr(places, "STEP", 8)
    check(text)


def test_place_behind_the_last_byte_is_in_the_last_line():
    found = Places(b"one\ntwo\n")
    assert (found.row(6), found.row(99), found.start(-1)) == (2, 2, 0)
    assert Places(b"one\ntwo").row(99) == 1


def test_part_without_a_place_that_is_looked_up_is_not_indexed():
    found = Places(b"word\n" * (4 * PART // 5))
    assert found.row(0) == 0
    assert found.offset(1) == 1
    assert (list(found._breaks), list(found._steps)) == ([0], [0])
    assert PART % STEP == 0


def test_squeezed_lines_joined_are_the_squeezed_text():
    text = b"One 'Two'\n\n\tTHREE\\ four\n" + bytes(range(256))
    assert squeezed_lines(text)[:3] == [b"onetwo", b"", b"threefour"]
    assert b"".join(squeezed_lines(text)) == squeeze(text)
