"""A whole file of bars, and what is recorded about it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainer.data.bar import Bars, joined
from trainer.data.readers.bars import Source
from trainer.runtime.errors import TrainerError


@dataclass(frozen=True, kw_only=True)
class DataFile:
    """Where bars came from: the file's name, the SHA-256 of its bytes, its recorded source if any.

    read: how it was understood, and its bad rows by kind.
    """

    name: str
    sha256: str
    source: str | None
    read: dict[str, Any] = field(default_factory=dict)


def all_bars(source: Source) -> Bars:
    """Return all bars of a file that was looked at. Raises RM511 where it holds none."""
    parts = list(source.chunks())
    if not parts:
        raise TrainerError("RM511", what="the file holds no bar", where=str(source.path))
    return joined(parts)


def data_file(source: Source, sha256: str | None = None) -> DataFile:
    """Return what is recorded about a file that was read."""
    digest = sha256 or digest_of(source.path)
    noted = recorded_source(source.path.parent, digest)
    return DataFile(name=source.path.name, sha256=digest, source=noted, read=source.as_dict())


def digest_of(path: Path) -> str:
    """Return the SHA-256 of the file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def recorded_source(folder: Path, digest: str) -> str | None:
    """Return the line that SOURCE.md next to the data gives as source, if it names the hash of exactly these bytes."""
    note = folder / "SOURCE.md"
    text = note.read_text(encoding="utf-8") if note.is_file() else ""
    stated = [line.removeprefix("Source: ") for line in text.splitlines() if line.startswith("Source: ")]
    return stated[0] if stated and digest in text else None
