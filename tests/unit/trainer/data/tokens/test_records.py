"""Records of each format, and those that are none."""

from __future__ import annotations

import json

import pytest

from tests.fixtures.token_files import ANSWER, TEMPLATE, TOKENIZER, USER, rows_of, trained, write
from trainer.data.tokens.records import read_records
from trainer.data.tokens.tokenize import RowPolicy, tokenized_pair
from trainer.runtime.errors import TrainerError


def test_json_list_and_byte_order_mark_and_blank_lines_are_read(tmp_path):
    (tmp_path / "a.json").write_text("\n " + json.dumps([{"messages": [USER, ANSWER]}] * 2))
    (tmp_path / "b.jsonl").write_text("\ufeff\n" + json.dumps({"messages": [USER, ANSWER]}) + "\n\n", encoding="utf-8")
    assert len(rows_of(tmp_path / "a.json").rows) == 2
    assert len(rows_of(tmp_path / "b.jsonl").rows) == 1


BAD = [
    ('{"messages": [', "not valid JSON"),
    ("[1]", "a row is an object"),
    ("[" * 100_000, "not valid JSON"),
    ({"question": "a", "answer": "b"}, "no known fields"),
    ({"messages": []}, "at least one"),
    ({"messages": "hi"}, "at least one"),
    ({"messages": ["hi"]}, "no object"),
    ({"messages": [{"role": "narrator", "content": "x"}]}, "narrator"),
    ({"messages": [{"role": "user"}, ANSWER]}, "no text"),
    ({"messages": [ANSWER]}, "begins with assistant"),
    ({"messages": [USER]}, "ends with user"),
    ({"messages": [USER, USER, ANSWER]}, "two user"),
    ({"messages": [USER, ANSWER, ANSWER]}, "two assistant"),
    ({"messages": [USER, {"role": "system", "content": "x"}, ANSWER]}, "only the first"),
    ({"messages": [USER, {**ANSWER, "weight": -1}]}, "weight"),
    ({"messages": [USER, {**ANSWER, "weight": "high"}]}, "weight"),
    ({"instruction": "a"}, "output"),
    ({"prompt": 1, "completion": "x"}, "prompt and completion"),
]


@pytest.mark.parametrize(("row", "words"), BAD, ids=range(len(BAD)))
def test_bad_row_is_refused_with_its_line_and_dropped_on_request(tmp_path, row, words):
    path = write(tmp_path / "a.jsonl", {"messages": [USER, ANSWER]}, "", row)
    with pytest.raises(TrainerError) as caught:
        rows_of(path)
    assert caught.value.code == "RM708"
    assert words in caught.value.what
    assert caught.value.where.endswith("a.jsonl:3")
    kept = rows_of(path, bad_rows="drop")
    assert (len(kept.rows), kept.changed["RM708"]) == (1, 1)
    assert kept.first["RM708"].endswith(":3")


def test_file_that_is_not_utf8_or_missing_is_refused(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "\xff"}\n')
    for name in ("a.jsonl", "none.jsonl"):
        with pytest.raises(TrainerError) as caught:
            rows_of(tmp_path / name)
        assert caught.value.code == "RM717"


@pytest.mark.parametrize(
    "row",
    [
        {"prompt": "Q", "chosen": "good", "rejected": "bad"},
        {"prompt": [USER], "chosen": [{"role": "assistant", "content": "good"}], "rejected": "bad"},
        {
            "conversations": [{"from": "human", "value": "Hi"}],
            "chosen": {"from": "gpt", "value": "good"},
            "rejected": {"from": "gpt", "value": "bad"},
        },
        {"chosen": [USER, {"role": "assistant", "content": "good"}],
         "rejected": [USER, {"role": "assistant", "content": "bad"}]},
        {"instruction": "Do", "input": "", "chosen": "good", "rejected": "bad"},
    ],
)  # fmt: skip
def test_preference_pair_of_each_format_trains_both_last_answers(tmp_path, row):
    (record,) = read_records(write(tmp_path / "a.jsonl", row))
    chosen, rejected = tokenized_pair(record, TOKENIZER, TEMPLATE, RowPolicy(length=500))
    assert trained(chosen).startswith("good<|")
    assert trained(rejected).startswith("bad<|")
