"""Lists of names: what is written, and pasted into a shell, is read as the same names."""

import shlex
from argparse import ArgumentTypeError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.config.name_list import as_word, read_names, written

LETTERS = st.characters(exclude_categories=["Cs", "Cc"]) | st.just("\n")
NAMES = st.lists(st.text(LETTERS, min_size=1).map(str.strip).filter(bool))


@given(NAMES)
def test_names_written_are_read_and_survive_a_shell(names):
    assert read_names(written(names)) == tuple(names)
    (word,) = shlex.split(as_word(names))
    assert read_names(word) == tuple(names)
    assert not word.startswith("-")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a, b ,,c", ("a", "b", "c")),
        ("", ()),
        ('a,"Price, USD"', ("a", "Price, USD")),
        ("Individual ID", ("Individual ID",)),
    ],
)
def test_list_is_read_without_blanks_and_empty_names(text, names):
    assert read_names(text) == names


def test_plain_names_are_written_as_they_are():
    assert as_word(["name", "cabin"]) == "name,cabin"
    assert as_word(["Individual ID"]) == "'Individual ID'"
    assert as_word(["-x", "y"]) == ",-x,y"  # no flag


def test_line_end_outside_of_quotes_is_refused_with_what_to_do():
    with pytest.raises(ArgumentTypeError, match="double quotes"):
        read_names("a\nb")
