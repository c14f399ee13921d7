"""A running text as tokens in mapped shards: made once, larger than memory, and read at any position.

A row is a window of the stream, a pure function of its number: a resumed run needs the number and nothing else.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainer.data.tokens.field_names import NO_NAMES
from trainer.data.tokens.files.kind import is_one_text, no_text, not_utf8
from trainer.data.tokens.records import read_records
from trainer.data.tokens.tokenizer import ByteTokenizer, Tokenizer, with_begin
from trainer.runtime.errors import TrainerError

INDEX = "index.json"
SHARD_TOKENS = 2**28
PIECE = 2**22  # characters that are tokenised at a time
Ids = NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class TokenStream:
    """Tokens of a corpus in shards: `ids` are mapped from files and read where they are used."""

    shards: tuple[Ids, ...]
    text_bytes: int
    text_sha256: str

    def __len__(self) -> int:
        return sum(len(shard) for shard in self.shards)

    def window(self, begin: int, end: int) -> Ids:
        """Return tokens [begin, end) as int64, across shards."""
        parts = []
        bounds = [0, *accumulate(len(shard) for shard in self.shards)]
        for first, shard in zip(bounds, self.shards, strict=False):
            low, high = max(begin - first, 0), min(end - first, len(shard))
            if low < high:
                parts.append(shard[low:high])
        joined = np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)
        return joined.astype(np.int64)


def pieces_of(path: Path, tokenizer: Tokenizer, names: Mapping[str, str] = NO_NAMES) -> Iterator[list[int]]:
    """Yield a corpus' tokens: a text file is one document, a row of JSONL is one; each ends with the stop token.

    What a tokenizer puts before a text begins each document.

    Args:
        path: text, JSON rows or a table with texts.
        names: value of `--rename`.

    Raises:
        TrainerError: RM717 where the file is missing, empty or not UTF-8, RM708 for a row without text.
    """
    documents, begins = _plain(path) if is_one_text(path, names) else _json_texts(path, names), True
    for part, ends in documents:
        ids = (
            tokenizer.encode_bytes(part.encode())
            if isinstance(tokenizer, ByteTokenizer)
            else tokenizer.encode(part).ids
        )
        ids = with_begin(tokenizer, ids) if begins else ids
        yield [*ids, tokenizer.stops[0]] if ends else ids
        begins = ends


def _json_texts(path: Path, names: Mapping[str, str]) -> Iterator[tuple[str, bool]]:
    for record in read_records(path, names):
        if isinstance(record, TrainerError):
            raise record
        if record.text is None:
            what = "a corpus needs rows with the field text"
            raise TrainerError("RM708", what=what, where=record.where, next="Choose --method sft for conversations.")
        yield record.text, True


def _plain(path: Path) -> Iterator[tuple[str, bool]]:
    """Yield the text in pieces that end with a line, where a line ends at all: tokens do not depend on memory."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:  # a byte-order mark is no text
            kept, empty = "", True
            while read := file.read(PIECE):
                if "\0" in read:
                    raise no_text(path)
                empty, kept = False, kept + read
                cut = kept.rfind("\n") + 1 or len(kept)
                yield kept[:cut], False
                kept = kept[cut:]
    except UnicodeDecodeError as error:
        raise not_utf8(path, error) from None
    except OSError as error:
        raise TrainerError("RM717", what=f"{path} cannot be opened", why=str(error.strerror)) from None
    if empty:
        raise TrainerError("RM717", what="the file is empty", where=str(path))
    yield kept, True


def in_memory(path: Path, tokenizer: Tokenizer, names: Mapping[str, str] = NO_NAMES) -> TokenStream:
    """Return a corpus' tokens without a file.

    Args:
        path: as for `pieces_of`.
        names: value of `--rename`.

    Raises:
        TrainerError: RM714 where there is none.
    """
    dtype = _dtype(tokenizer)
    parts = [np.array(piece, dtype=dtype) for piece in pieces_of(path, tokenizer, names)]
    if not parts:
        raise TrainerError("RM714", what="the file has no text", where=str(path))
    ids = np.concatenate(parts)
    return TokenStream(shards=(ids,), text_bytes=path.stat().st_size, text_sha256=_digest(path))


def _dtype(tokenizer: Tokenizer) -> Any:
    return np.uint16 if tokenizer.size <= 2**16 else np.uint32


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def build(
    path: Path,
    tokenizer: Tokenizer,
    folder: Path,
    *,
    shard_tokens: int = SHARD_TOKENS,
    names: Mapping[str, str] = NO_NAMES,
) -> None:
    """Write a corpus' shards and index to `folder`, which is there whole or not at all.

    Of several processes that come at once, as ranks do, one writes; the others wait for it.

    Args:
        path: text file.
        folder: folder to make.
        shard_tokens: most tokens of one shard.
        names: value of `--rename`.

    Raises:
        TrainerError: what `pieces_of` raises.
        OSError: where the folder cannot be written.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _alone(folder.parent):
        if not folder.is_dir():
            _build(path, tokenizer, folder, shard_tokens, names)


@contextlib.contextmanager
def _alone(parent: Path) -> Iterator[None]:
    """Hold the lock of a folder in which another is made; the system releases it however the process ends."""
    handle = os.open(parent, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _build(path: Path, tokenizer: Tokenizer, folder: Path, shard_tokens: int, names: Mapping[str, str]) -> None:
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        shards = list(_write(pieces_of(path, tokenizer, names), partial, _dtype(tokenizer), shard_tokens))
        index = {
            "dtype": np.dtype(_dtype(tokenizer)).name,
            "shards": shards,
            "text_bytes": path.stat().st_size,
            "text_sha256": _digest(path),
            "tokenizer_sha256": tokenizer.sha256,
        }
        (partial / INDEX).write_text(json.dumps(index, indent=1) + "\n", encoding="utf-8")
        partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _write(pieces: Iterable[list[int]], folder: Path, dtype: Any, most: int) -> Iterator[dict[str, Any]]:
    """Write shards of `most` tokens, the last one shorter, and yield the index's entry for each."""
    kept, number = np.empty(0, dtype=dtype), 0
    for piece in pieces:
        kept = np.concatenate([kept, np.array(piece, dtype=dtype)])
        while len(kept) >= most:
            yield _shard(folder, number, kept[:most])
            kept, number = kept[most:], number + 1
    if len(kept) or number == 0:
        yield _shard(folder, number, kept)


def _shard(folder: Path, number: int, ids: Ids) -> dict[str, Any]:
    content, name = ids.tobytes(), f"tokens-{number:05d}.bin"
    (folder / name).write_bytes(content)
    return {"file": name, "tokens": len(ids), "sha256": hashlib.sha256(content).hexdigest()}


def opened(folder: Path, tokenizer: Tokenizer) -> TokenStream:
    """Return the shards of a folder, mapped.

    Raises:
        TrainerError: RM715 where index or shard is missing or damaged, or another tokenizer made them.
    """
    try:
        index = json.loads((folder / INDEX).read_text(encoding="utf-8"))
        dtype, made_by = np.dtype(index["dtype"]), index["tokenizer_sha256"]
        shards = tuple(_mapped(folder, entry, dtype) for entry in index["shards"])
        stream = TokenStream(shards=shards, text_bytes=index["text_bytes"], text_sha256=index["text_sha256"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TrainerError("RM715", what=f"{folder} cannot be read", why=str(error)) from None
    if made_by != tokenizer.sha256:
        raise TrainerError("RM715", what=f"another tokenizer than {tokenizer.name} made them", where=str(folder))
    return stream


def _mapped(folder: Path, entry: dict[str, Any], dtype: Any) -> Ids:
    path = folder / entry["file"]
    size = entry["tokens"] * np.dtype(dtype).itemsize
    if path.stat().st_size != size:
        raise ValueError(f"{path.name} has {path.stat().st_size} bytes instead of {size}")
    return np.memmap(path, dtype=dtype, mode="r") if size else np.empty(0, dtype=dtype)
