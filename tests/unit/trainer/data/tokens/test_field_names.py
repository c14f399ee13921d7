"""Names of fields: renamed by --rename, found under other names, listed in messages."""

from __future__ import annotations

import json

import pytest

from trainer.data.tokens.field_names import fields_of, name_among, under_names, under_one_name
from trainer.data.tokens.messages import RowError
from trainer.data.tokens.records import read_records
from trainer.runtime.errors import TrainerError

ROWS = [{"instruction": f"Say {n}.", "input": "", "output": str(n)} for n in range(3)]


def lines(tmp_path, rows):
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_renamed_fields_are_trained_like_those_of_the_names_themselves(tmp_path):
    other = [{"q": row["instruction"], "context": row["input"], "a": row["output"]} for row in ROWS]
    names = {"q": "instruction", "context": "input", "a": "output"}
    assert list(read_records(lines(tmp_path, other), names)) == list(read_records(lines(tmp_path, ROWS)))


@pytest.mark.parametrize(
    ("names", "code", "words"),
    [
        ({"nope": "input"}, "RM500", "no row has such a field"),
        ({"output": "instruction"}, "RM708", "the row has instruction"),
    ],
)
def test_name_that_no_row_has_or_that_is_taken_is_refused(tmp_path, names, code, words):
    with pytest.raises(TrainerError) as caught:
        for record in read_records(lines(tmp_path, ROWS), names):
            if isinstance(record, TrainerError):
                raise record
    assert (caught.value.code, words in caught.value.what) == (code, True), caught.value.what


def test_two_fields_may_exchange_their_names():
    assert under_names({"prompt": "a", "completion": "b"}, {"prompt": "completion", "completion": "prompt"}) == {
        "completion": "a",
        "prompt": "b",
    }
    with pytest.raises(RowError):
        under_names({"a": "1", "text": "2"}, {"a": "text"})


def test_fields_of_a_row_are_listed_up_to_a_dozen():
    assert fields_of({}) == "none"
    assert fields_of({f"f{n:02}": 1 for n in range(20)}).endswith("f11, and 8 more")


def test_name_in_capitals_is_found_and_the_likeliest_first():
    assert name_among({"Question": "Q", "n": 1, "query": 2}, ("query", "question")) == "Question"
    assert name_among({"n": "Q"}, ("query", "question")) is None


def test_row_without_a_worse_answer_stays_as_it_is():
    for row in ({"messages": [1]}, {"chosen": "a", "rejected_response": "b"}, {"query": "a", "rejected_response": "b"}):
        assert under_one_name(row) is row
