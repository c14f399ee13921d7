"""Files of other kinds are refused by name before their bytes become tokens."""

from __future__ import annotations

import gzip
import json
import shlex
import subprocess
from pathlib import Path

import pytest

from trainer.config.sections.tokens import TokensConfig
from trainer.data.tokens.chat_template import CHATML, ChatTemplate
from trainer.data.tokens.corpus import pieces_of
from trainer.data.tokens.files.kind import is_json, require_readable, require_text
from trainer.data.tokens.load import LanguageData, load, method_of
from trainer.data.tokens.tokenizer import ByteTokenizer
from trainer.runtime.advice import fitted
from trainer.runtime.errors import TrainerError

ROW = json.dumps({"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes."}]})


def written(folder: Path, name: str, content: bytes) -> Path:
    (folder / name).write_bytes(content)
    return folder / name


def loaded(path: Path, method: str = "auto") -> LanguageData:
    tokenizer = ByteTokenizer()
    template = ChatTemplate(text=CHATML, source="test", special=tokenizer.special)
    config = TokensConfig(data=path, sequence=64, method=method)
    return load(path, config, tokenizer, template, folder=path.parent, seed=0)


@pytest.mark.parametrize(
    ("name", "content", "words", "hint"),
    [
        # A packed time would be part of the test's name, and the processes of a run must agree on names.
        ("a.jsonl.gz", gzip.compress(ROW.encode(), mtime=0), "compressed by gzip", "gunzip"),
        ("a.txt", gzip.compress(b"text" * 90, mtime=0), "compressed by gzip", "gunzip"),
        ("a.jsonl", b"\x28\xb5\x2f\xfd" + b"x" * 90, "compressed by zstd", "unzstd"),
        ("a.parquet", b"PAR1" + bytes(99), "Parquet", "ends with the bytes PAR1"),
        ("a.pq", b"PAR1" + bytes(99), "Parquet", "read_parquet"),
        ("a.arrow", b"ARROW1\0\0" + bytes(99), "Arrow", "read_ipc"),
        ("b.arrow", b"\xff\xff\xff\xff" + bytes(99), "Arrow stream", "read_ipc_stream"),
        ("a.docx", b"PK\x03\x04" + bytes(99), "zip", "plain text"),
        ("a.pdf", b"%PDF-1.7" + bytes(99), "PDF", "pdftotext"),
        ("a.txt", ("text\n" * 90).encode("utf-16"), "UTF-16", "iconv"),
        ("a.jsonl", ROW.encode("utf-16"), "UTF-16", "iconv"),
    ],
)
@pytest.mark.parametrize("method", ["auto", "pretrain", "sft"])
def test_kind_of_file_that_is_no_text_is_named_with_what_converts_it(tmp_path, name, content, words, hint, method):
    with pytest.raises(TrainerError, match="RM717") as caught:
        loaded(written(tmp_path, name, content), method)
    assert words in str(caught.value)
    assert hint in str(caught.value)


@pytest.mark.parametrize("name", ["a.JSONL", "a.Json", "a.NDJSON"])
def test_letter_case_of_the_name_does_not_make_rows_a_text(tmp_path, name):
    path = written(tmp_path, name, f"{ROW}\n{ROW}\n".encode())
    assert is_json(path)
    assert loaded(path).method == "sft"


@pytest.mark.parametrize("name", ["chats.txt", "chats", "a.ipynb"])
def test_rows_named_as_a_text_are_refused_and_trained_as_text_on_request(tmp_path, name):
    path = written(tmp_path, name, b"\xef\xbb\xbf\n" + ((ROW + "\n") * 9).encode())
    with pytest.raises(TrainerError, match="RM717") as caught:
        loaded(path)
    assert "--method pretrain" in str(caught.value)
    assert loaded(path, "pretrain").method == "pretrain"


@pytest.mark.parametrize("content", [b"plain words\n" * 90, b"[1] a note\n" * 90, b'{"broken": \n' * 90, b"5\n" * 300])
def test_text_that_only_looks_like_json_is_a_text(tmp_path, content):
    path = written(tmp_path, "a.txt", content)
    require_readable(path)
    require_text(path)
    assert loaded(path).method == "pretrain"


def test_byte_order_mark_of_a_text_is_no_token(tmp_path):
    marked = loaded(written(tmp_path, "a.txt", b"\xef\xbb\xbf" + b"words\n" * 90))
    plain = loaded(written(tmp_path, "b.txt", b"words\n" * 90))
    assert marked.train.window(0).tolist() == plain.train.window(0).tolist()  # type: ignore[union-attr]


def test_file_without_a_valid_row_reports_the_first_rows_mistake(tmp_path):
    rows = '{"question": "a", "answer": "b"}\n{"x": 1}\n'
    with pytest.raises(TrainerError, match="RM708") as caught:
        method_of(written(tmp_path, "a.jsonl", rows.encode()), "auto")
    assert "answer, question" in str(caught.value)
    assert "a.jsonl:1" in str(caught.value)
    with pytest.raises(TrainerError, match="no row"):
        method_of(written(tmp_path, "b.jsonl", b"\n \n"), "auto")


@pytest.mark.parametrize("name", ["my book.txt", "rows.jsonl"])
def test_text_of_another_encoding_is_refused_with_the_command_that_converts_it(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes('{"text": "café"}\n'.encode("cp1252"))
    with pytest.raises(TrainerError, match="RM717") as caught:
        list(pieces_of(path, ByteTokenizer()))
    assert caught.value.what == f"{name} is not UTF-8: byte 0xe9 is no part of it"
    command = caught.value.next.partition(" converts")[0]
    subprocess.run(command, shell=True, cwd=tmp_path, check=True)  # as a person would copy it
    assert (tmp_path / f"{path.stem}.utf8{path.suffix}").read_text() == '{"text": "café"}\n'


@pytest.mark.parametrize("indent", [None, 1])
def test_rows_below_a_name_are_refused_with_the_command_that_takes_them_out(tmp_path: Path, indent: int | None) -> None:
    whole = {"version": "1", "few": [{"a": 1}], "all rows": [json.loads(ROW)] * 3}
    path = written(tmp_path, "my data.json", json.dumps(whole, indent=indent).encode())
    with pytest.raises(TrainerError, match="RM717") as caught:
        loaded(path)
    assert "'all rows' has 3 rows" in caught.value.what
    words = shlex.split(caught.value.next.removeprefix("Take them out: "))
    assert words == ["jq", "-c", '.["all rows"][]', "my data.json", ">", "my data.rows.jsonl"]


def test_row_alone_in_a_file_of_json_is_a_row(tmp_path: Path) -> None:
    path = written(tmp_path, "a.json", (ROW + "\n").encode())
    assert method_of(path, "auto") == "sft"
    assert loaded(written(tmp_path, "b.json", f"{ROW}\n{ROW}\n".encode())).method == "sft"


@pytest.mark.parametrize(
    ("inside", "words"),
    [
        ("dataset_info.json", ("load_from_disk", "folder of Hugging Face datasets")),
        ("train/dataset_info.json", ("load_from_disk", "train")),
        ("rows.jsonl", ("Give one file of it: rows.jsonl",)),
        ("notes.md", ("Give a file",)),
    ],
)
def test_folder_is_refused_with_what_makes_one_file_of_it(tmp_path: Path, inside: str, words: tuple[str, ...]) -> None:
    (tmp_path / "set" / inside).parent.mkdir(parents=True)
    (tmp_path / "set" / inside).write_text("{}")
    with pytest.raises(TrainerError, match="RM717") as caught:
        loaded(tmp_path / "set")
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_advice_on_a_notebook_stays_whole_in_every_command(tmp_path):
    """A command's flags that are another program's are taken out of advice."""
    path = written(tmp_path, "a.ipynb", (ROW + "\n").encode())
    with pytest.raises(TrainerError) as caught:
        require_text(path)
    assert "nbconvert" in fitted(caught.value.next, [])


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.csv"])
@pytest.mark.parametrize("encoding", ["UTF-16LE", "UTF-16BE"])
def test_wide_text_without_its_mark_is_named_with_what_converts_it(tmp_path, name, encoding):
    with pytest.raises(TrainerError, match="RM717") as caught:
        loaded(written(tmp_path, name, f"{ROW}\n".encode(encoding)))
    assert f"iconv -f {encoding} -t UTF-8 {name}" in str(caught.value)


@pytest.mark.parametrize("content", [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\xff", b"\x80\x04\x95\x00\x00", b"7z\xbc\xaf'\x1c"])
def test_bytes_of_no_text_are_not_advised_to_be_converted(tmp_path, content):
    with pytest.raises(TrainerError, match="RM717") as caught:
        loaded(written(tmp_path, "a.txt", content))
    assert "iconv" not in str(caught.value)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ({"prompt": ["a", "b"], "completion": ["c", "d"]}, "by column"),
        ({"prompt": {"0": "a", "1": "b"}, "completion": {"0": "c", "1": "d"}}, "by column"),
        ({"0": {"prompt": "a", "completion": "c"}, "1": {"prompt": "b", "completion": "d"}}, "orient='index'"),
    ],
)
def test_rows_by_column_or_by_number_are_refused_with_what_writes_one_a_line(tmp_path, rows, words):
    with pytest.raises(TrainerError, match="RM717") as caught:
        loaded(written(tmp_path, "a.json", json.dumps(rows).encode()))
    assert words in str(caught.value) and "lines=True" in str(caught.value)
