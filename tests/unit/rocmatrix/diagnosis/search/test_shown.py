"""What is shown of a match: plain text of one width, and its message up to the next entry."""

from rocmatrix.diagnosis.search.chunk import Chunk
from rocmatrix.diagnosis.search.shown import LONGEST_SHOWN, context, readable


def chunk(text):
    return Chunk(text, 1, 0, text)


def test_line_is_shown_without_control_characters_and_cut():
    assert readable(b" an error\x1b here\xff\n", 0) == "an error  here�"
    assert readable(b"x" * 5000, 0) == "x" * (LONGEST_SHOWN - 1) + "…"


def test_line_of_a_megabyte_is_shown_around_the_place():
    assert readable(b"a" * 5000 + b"X" + b"b" * 5000, 5000).startswith("a" * (LONGEST_SHOWN // 4) + "Xbbb")


def test_message_is_the_line_from_the_match_on_with_two_more_up_to_the_next_entry():
    lines = b"step 3: it is\n not\n so\n at all\n"
    assert context(chunk(lines), 6) == "step 3: it is not so"
    assert context(chunk(b"it is\nhint: more\n so\n"), 0) == "it is"
