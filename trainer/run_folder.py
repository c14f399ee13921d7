"""A run's folder appears whole or not at all: it is written under a hidden name, synced, then renamed."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from trainer.errors import TrainerError


@dataclass(frozen=True, kw_only=True)
class RunFolder:
    """A run in the making: files go into `partial`, which becomes `final` at the end."""

    name: str
    partial: Path
    final: Path

    def write(self, file: str, content: bytes) -> dict[str, Any]:
        """Write `file` down to the disk and return its size and SHA-256.

        Raises:
            OSError: with the file's name, also where the system leaves it out (a full disk).
        """
        path = self.partial / file
        try:
            with path.open("wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            error.filename = str(path)
            raise
        return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


@contextlib.contextmanager
def open_run(output: Path, name: str | None, *, need_bytes: int) -> Iterator[RunFolder]:
    """Reserve a run in `output` now, hand it out, and publish it if the block ends without an exception.

    That `output` can be written and has room is found out here, before any training.

    Raises:
        TrainerError: RM540 where the run exists, RM543 where less than `need_bytes` are free.
        OSError: where the output folder cannot be made or written.
    """
    output.mkdir(parents=True, exist_ok=True)
    _require_space(output, need_bytes)
    folder = _reserve(output, name or fresh_name())
    try:
        yield folder
        _sync(folder.partial)
        folder.partial.rename(folder.final)
        _sync(output)
    except BaseException:
        shutil.rmtree(folder.partial, ignore_errors=True)
        raise


def fresh_name() -> str:
    """Return a name that sorts by time: UTC to the second, and 32 random bits against runs started together."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(4)}"


def _require_space(output: Path, need_bytes: int) -> None:
    free = shutil.disk_usage(output).free
    if free < need_bytes:
        what = f"the run needs about {need_bytes:,} bytes, {free:,} are free"
        raise TrainerError("RM543", what=what, where=str(output))


def _reserve(output: Path, name: str) -> RunFolder:
    folder = RunFolder(name=name, partial=output / f".{name}.partial", final=output / name)
    if folder.final.exists():
        raise TrainerError("RM540", what=f"there is a run called {name}", where=str(folder.final))
    try:
        folder.partial.mkdir()
    except FileExistsError:
        what = f"run {name} is under way, or was killed before it could clean up"
        remedy = f"If nothing is running, delete {folder.partial}; else choose another name with --run."
        raise TrainerError("RM540", what=what, where=str(folder.partial), next=remedy) from None
    return folder


def _sync(folder: Path) -> None:
    """Ask the disk to keep the folder's entries; some network file systems cannot, and their server does."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            os.fsync(handle)
    finally:
        os.close(handle)
