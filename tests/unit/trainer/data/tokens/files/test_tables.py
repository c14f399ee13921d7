"""CSV, TSV and Parquet as rows with names: the same tokens as from JSON lines."""

from __future__ import annotations

import csv
import importlib.util
import io
import json

import pytest

from tests.unit.trainer.data.tokens.files.test_kind import loaded, written
from trainer.data.tokens.files.tables import columns
from trainer.data.tokens.records import Record, read_records
from trainer.runtime.errors import TrainerError

ROWS = [{"instruction": f"Say {n}, please.", "input": "", "output": f'{n};\nand "so" on'} for n in range(4)]


def table(rows, delimiter=","):
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), delimiter=delimiter, lineterminator="\r\n")
    writer.writeheader()
    writer.writerows(rows)
    return b"\xef\xbb\xbf" + out.getvalue().encode()


def lines(tmp_path, rows):
    return written(tmp_path, "rows.jsonl", "".join(json.dumps(row) + "\n" for row in rows).encode())


def tokens(data):
    return [data.train.rows(range_of(data), data.train.device)[0][name].tolist() for name in ("tokens", "labels")]


def range_of(data):
    import torch

    return torch.arange(len(data.train))


@pytest.mark.parametrize(("name", "delimiter"), [("a.csv", ","), ("a.CSV", ";"), ("a.tsv", "\t")])
def test_table_is_trained_like_its_rows_as_json(tmp_path, name, delimiter):
    found, expected = loaded(written(tmp_path, name, table(ROWS, delimiter))), loaded(lines(tmp_path, ROWS))
    assert found.method == expected.method == "sft"
    assert tokens(found) == tokens(expected)


def test_parquet_is_trained_like_its_rows_as_json_and_refused_without_polars(tmp_path, monkeypatch):
    polars = pytest.importorskip("polars")
    rows = [
        {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": str(n)}]} for n in range(4)
    ]
    rows[0]["messages"][0]["name"] = "Ann"  # null in the others' structs
    polars.DataFrame(rows).write_parquet(tmp_path / "a.parquet")
    assert tokens(loaded(tmp_path / "a.parquet")) == tokens(loaded(lines(tmp_path, rows)))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(TrainerError, match="read_parquet"):
        loaded(tmp_path / "a.parquet")


def test_column_of_texts_is_a_corpus_and_a_table_without_one_a_text_on_request(tmp_path):
    texts = written(tmp_path, "a.csv", table([{"text": "word " * 40, "n": n} for n in range(4)]))
    assert loaded(texts).facts["tokens"] == 4 * (200 + 1)
    assert loaded(texts, "pretrain").facts["tokens"] == 4 * (200 + 1)
    other = written(tmp_path, "b.csv", table([{"name": "Ann " * 40, "n": n} for n in range(4)]))
    with pytest.raises(TrainerError, match="RM708"):
        loaded(other)
    assert loaded(other, "pretrain").facts["tokens"] > 600


def test_cells_of_messages_are_json_and_a_line_with_too_many_names_its_line(tmp_path):
    row = {"messages": json.dumps([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes."}])}
    (record,) = read_records(written(tmp_path, "a.csv", table([row])))
    assert isinstance(record, Record) and record.messages[1]["content"] == "Yes."
    _, error = read_records(written(tmp_path, "b.csv", b'prompt,completion\n"Hi\nthere",Yes\nHi,"Yes\n",No\n'))
    assert isinstance(error, TrainerError)
    assert (error.code, error.where.endswith("b.csv:4"), "3 cells" in error.what) == ("RM708", True, True)
    assert columns(tmp_path / "b.csv") == ["prompt", "completion"]


def test_empty_cell_is_no_field(tmp_path):
    """A table of several kinds of rows has each column in each row."""
    row = {"prompt": "Hi", "completion": "Yes", "chosen": "", "rejected": ""}
    (record,) = read_records(written(tmp_path, "a.csv", table([row])))
    assert isinstance(record, Record) and (record.answer, record.rejected) == ("Yes", None)


@pytest.mark.parametrize("answer", ['{"name": "Ann"}', '[{"n": 1}, {"n": 2}]', "{not json"])
def test_answer_that_is_json_is_a_text(tmp_path, answer):
    (record,) = read_records(written(tmp_path, "a.csv", table([{"prompt": "Hi", "completion": answer}])))
    assert isinstance(record, Record) and record.answer == answer


def test_column_that_is_there_twice_is_refused(tmp_path):
    with pytest.raises(TrainerError, match="RM717") as caught:
        list(read_records(written(tmp_path, "a.csv", b"prompt,completion, completion\na,b,c\n")))
    assert "the column 'completion' twice" in str(caught.value)


@pytest.mark.parametrize(
    "content",
    [
        b"sep=;\r\nprompt;completion\r\nHi, you;Yes\r\n",
        b'sep=,\nprompt,completion\n"Hi, you",Yes\n',
        b'prompt;completion;"a, b"\nHi, you;Yes;1\n',
        b"prompt|completion\nHi, you|Yes\n",
        b"prompt\tcompletion\nHi, you\tYes\n",
        b',prompt,completion\n0,"Hi, you",Yes\n',
    ],
)
def test_table_is_read_by_the_delimiter_of_its_header(tmp_path, content):
    path = written(tmp_path, "a.csv", content)
    (record,) = read_records(path)
    assert isinstance(record, Record) and (record.prompt, record.answer) == ("Hi, you", "Yes")
    assert columns(path)[-2:] == ["prompt", "completion"] or "a, b" in columns(path)
