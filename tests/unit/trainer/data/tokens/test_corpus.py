"""A text as a stream of tokens: in memory and in shards alike, at any position; damage is noticed."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.fixtures.file_tokenizers import sentencepiece
from trainer.data.tokens import corpus
from trainer.data.tokens.tokenizer import ByteTokenizer, read_tokenizer
from trainer.runtime.errors import TrainerError

TOKENIZER = ByteTokenizer()
TEXT = "first line\nGrüße\n" * 7 + "no line end"


@pytest.fixture
def text(tmp_path):
    (tmp_path / "a.txt").write_text(TEXT, encoding="utf-8")
    return tmp_path / "a.txt"


@pytest.mark.parametrize("piece", [1, 10, 10_000])
def test_stream_of_a_text_is_its_bytes_and_the_stop_token_for_any_piece(text, piece, monkeypatch):
    monkeypatch.setattr(corpus, "PIECE", piece)
    stream = corpus.in_memory(text, TOKENIZER)
    assert stream.window(0, len(stream)).tolist() == [*TEXT.encode(), 256]


@pytest.mark.parametrize("shard_tokens", [1, 7, 10**6])
def test_shards_give_every_window_of_the_stream(text, tmp_path, shard_tokens):
    corpus.build(text, TOKENIZER, tmp_path / "tokens", shard_tokens=shard_tokens)
    whole, shards = corpus.in_memory(text, TOKENIZER), corpus.opened(tmp_path / "tokens", TOKENIZER)
    assert len(shards) == len(whole)
    assert shards.text_sha256 == whole.text_sha256
    for begin, end in ((0, 5), (6, 8), (3, 30), (len(whole) - 1, len(whole)), (4, 4)):
        assert np.array_equal(shards.window(begin, end), whole.window(begin, end))


def test_processes_that_come_at_once_get_the_shards_of_one(text, tmp_path):
    """Threads stand for ranks here: each opens the lock by itself, as a process does."""
    folder, barrier = tmp_path / "tokens", threading.Barrier(4)

    def rank(_):
        barrier.wait()
        corpus.build(text, TOKENIZER, folder, shard_tokens=3)
        return len(corpus.opened(folder, TOKENIZER))

    with ThreadPoolExecutor(4) as ranks:
        assert set(ranks.map(rank, range(4))) == {len(TEXT.encode()) + 1}
    assert not folder.with_name(".tokens.partial").exists()


def test_rows_of_jsonl_are_documents_of_their_own(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "ab"}\n{"text": "c"}\n')
    stream = corpus.in_memory(tmp_path / "a.jsonl", TOKENIZER)
    assert stream.window(0, 5).tolist() == [97, 98, 256, 99, 256]


def test_document_begins_as_the_tokenizer_has_it(tmp_path, monkeypatch):
    tokenizer = read_tokenizer(sentencepiece(tmp_path / "model"))
    (tmp_path / "a.jsonl").write_text('{"text": "the fox"}\n{"text": "dog"}\n')
    ids = [token for piece in corpus.pieces_of(tmp_path / "a.jsonl", tokenizer) for token in piece]
    begin, stop = tokenizer.begins[0], tokenizer.stops[0]
    assert [token for token in ids if token in (begin, stop)] == [begin, stop, begin, stop]
    monkeypatch.setattr(corpus, "PIECE", 4)
    (tmp_path / "a.txt").write_text("the\nfox\ndog\n")
    pieces = list(corpus.pieces_of(tmp_path / "a.txt", tokenizer))
    assert len(pieces) > 2
    assert [piece.count(begin) for piece in pieces] == [1] + [0] * (len(pieces) - 1)


def test_special_token_in_a_text_ends_no_document(tmp_path):
    (tmp_path / "a.txt").write_text("a<|endoftext|>b")
    stream = corpus.in_memory(tmp_path / "a.txt", TOKENIZER)
    assert stream.window(0, len(stream)).tolist().count(256) == 1


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("a.txt", b"", "RM717"),
        ("a.txt", b"ok\xff\xfe", "RM717"),
        ("a.jsonl", b'{"text": "a"}\n{"messages": []}\n', "RM708"),
        ("a.jsonl", b'{"prompt": "a", "completion": "b"}\n', "RM708"),
    ],
)
def test_text_that_cannot_be_read_is_refused_and_leaves_no_folder(tmp_path, name, content, code):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TrainerError) as caught:
        corpus.build(tmp_path / name, TOKENIZER, tmp_path / "tokens")
    assert caught.value.code == code
    assert sorted(path.name for path in tmp_path.iterdir()) == [name]


def test_missing_text_is_refused(tmp_path):
    with pytest.raises(TrainerError) as caught:
        corpus.in_memory(tmp_path / "none.txt", TOKENIZER)
    assert caught.value.code == "RM717"


@pytest.mark.parametrize("damage", ["shard", "missing", "index", "tokenizer"])
def test_damaged_shards_are_refused(text, tmp_path, damage):
    folder = tmp_path / "tokens"
    corpus.build(text, TOKENIZER, folder, shard_tokens=50)
    shard, index = folder / "tokens-00001.bin", folder / "index.json"
    if damage == "shard":
        shard.write_bytes(shard.read_bytes()[:-1])
    elif damage == "missing":
        shard.unlink()
    elif damage == "index":
        index.write_text(index.read_text()[:20])
    else:
        index.write_text(json.dumps(json.loads(index.read_text()) | {"tokenizer_sha256": "0"}))
    with pytest.raises(TrainerError) as caught:
        corpus.opened(folder, TOKENIZER)
    assert caught.value.code == "RM715"


def test_text_with_nul_bytes_is_refused(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"some text\n" * 50 + b"\0\0" + b"more\n")
    with pytest.raises(TrainerError) as caught:
        corpus.in_memory(tmp_path / "a.txt", TOKENIZER)
    assert (caught.value.code, "NUL" in caught.value.what) == ("RM717", True)
