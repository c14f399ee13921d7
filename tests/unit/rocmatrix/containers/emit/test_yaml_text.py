"""A document as YAML that every reader takes for the same thing."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rocmatrix.containers.emit.yaml_text import yaml_text

TEXT = st.text(st.characters(exclude_categories=["C"]), max_size=12)


@given(st.dictionaries(TEXT, TEXT | st.integers() | st.booleans() | st.lists(TEXT, max_size=3), max_size=4))
def test_document_is_read_back_with_its_keys_in_their_order(document):
    found = yaml.safe_load(yaml_text(document))
    assert (found, list(found)) == (document, list(document))


@pytest.mark.parametrize("text", ["1e3", "0o7", "0x1F", "12:30:45", "1_000", "~", "-", ".5", "", "!x", "*a"])
def test_text_that_is_no_plain_word_is_quoted(text):
    assert yaml_text({"a": text}) == f"a: '{text}'\n"


def test_plain_word_and_path_are_not_quoted():
    assert yaml_text({"a": "/dev/kfd", "b": "bind"}) == "a: /dev/kfd\nb: bind\n"


def test_value_used_twice_is_written_twice():
    groups = ["video"]
    assert yaml_text({"a": groups, "b": groups}) == "a:\n- video\nb:\n- video\n"


@pytest.mark.parametrize("end", ["\x85", "\u2028", "\u2029", "\r", "\r\n", "\n"])
def test_line_end_of_some_readers_is_written_as_an_escape(end):
    text = f"a{end}b"
    written = yaml_text({"a": text})
    assert end not in written.strip("\n")
    assert yaml.safe_load(written) == {"a": text}
