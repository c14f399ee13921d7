"""The index of a checkpoint's shards: what is no index is refused before a tensor is made."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trainer.distributed.sharded_checkpoint.shard_files import read_index


def index(**changes: Any) -> bytes:
    chunks = [
        {"file": "shard-00000.safetensors", "offsets": [0, 0], "sizes": [2, 3]},
        {"file": "shard-00001.safetensors", "offsets": [2, 0], "sizes": [1, 3]},
    ]
    return json.dumps({"w": {"dtype": "F32", "shape": [3, 3], "chunks": chunks} | changes}).encode()


def halves(*begins: list[float]) -> list[dict[str, Any]]:
    """Two chunks that hold as many values as the tensor, wherever they lie in it."""
    sizes = ([2, 3], [1, 3])
    places = zip(begins, sizes, strict=True)
    return [{"file": "shard-00000.safetensors", "offsets": begin, "sizes": size} for begin, size in places]


def test_index_of_chunks_that_fill_their_tensor_is_read() -> None:
    assert list(read_index(index())["w"]) == ["dtype", "shape", "chunks"]


@pytest.mark.parametrize(
    "content",
    [
        index(dtype="F31"),
        index(shape=[4, 3]),
        index(chunks=[]),
        index(chunks=[{"file": "../shard-0", "offsets": [0, 0], "sizes": [3, 3]}]),
        index(chunks=[{"file": "shard-0/../../x", "offsets": [0, 0], "sizes": [3, 3]}]),
        index(chunks=[{"offsets": [0, 0], "sizes": [3, 3]}]),
        index(shape="9"),
        index(shape=[-3, -3]),
        index(chunks=[{"file": "shard-00000.safetensors", "offsets": [0], "sizes": [3, 3]}]),
        index(chunks=halves([0, 0], [0, 0])),
        index(chunks=halves([0, 0], [3, 0])),
        index(chunks=halves([0, 0], [-2, 0])),
        index(chunks=halves([0, 0], [1.5, 0])),
        b'{"w": 3}',
        b"{",
        b"[]",
        b"3",
    ],
)
def test_index_of_another_form_is_refused(content: bytes) -> None:
    with pytest.raises((ValueError, LookupError, TypeError)):
        read_index(content)
