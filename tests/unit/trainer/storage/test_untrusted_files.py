"""Files of others: JSON without surprises, regular files alone, and errors with a code."""

import json
import os

import pytest

from trainer.runtime.errors import TrainerError
from trainer.storage import untrusted_files


def test_regular_file_is_read_up_to_its_limit(tmp_path):
    file = tmp_path / "a"
    file.write_bytes(b"abc")
    assert untrusted_files.regular(file) == untrusted_files.regular(file, most=3) == b"abc"
    with pytest.raises(ValueError, match="3 bytes, and 2 are read at most"):
        untrusted_files.regular(file, most=2)


def test_pipe_and_folder_are_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises(ValueError, match="no regular file"):
            untrusted_files.regular(path)


@pytest.mark.parametrize("error", [ValueError("odd"), KeyError("name"), TypeError("x"), OverflowError("large")])
def test_odd_value_is_an_error_with_a_code_and_the_reason(tmp_path, error):
    with pytest.raises(TrainerError) as refused, untrusted_files.read_from(tmp_path / "f.json", "the record"):
        raise error
    found = refused.value
    assert (found.code, found.where) == ("RM546", str(tmp_path / "f.json"))
    assert type(error).__name__ in found.why


def test_reason_is_bounded(tmp_path):
    with pytest.raises(TrainerError) as refused, untrusted_files.read_from(tmp_path, "x", code="RM500"):
        raise ValueError("y" * 10_000)
    assert refused.value.code == "RM500"
    assert len(refused.value.why) < 300


def test_other_error_passes_through(tmp_path):
    with pytest.raises(KeyboardInterrupt), untrusted_files.read_from(tmp_path, "x"):
        raise KeyboardInterrupt


def test_json_is_read_as_it_was_written(tmp_path):
    content = {"a": [1, 2.5, None, "x"]}
    (tmp_path / "f.json").write_text(json.dumps(content))
    assert untrusted_files.json_of(tmp_path / "f.json") == content


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[NaN]", "NaN is no number"),
        ("[Infinity]", "is no number"),
        ("[" * 10**6, "nested too deep"),
        ("{", "property name"),
    ],
)
def test_text_that_is_no_plain_json_is_a_value_error(tmp_path, text, words):
    (tmp_path / "f.json").write_text(text)
    with pytest.raises(ValueError, match=words):
        untrusted_files.json_of(tmp_path / "f.json")
