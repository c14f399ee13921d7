"""Checkpoints on disk: whole or absent, with a checksum for every byte, and never a pickle.

A checkpoint is a folder. Its files are written under a hidden name and synced, the manifest with their sizes
and SHA-256 last; then the folder is renamed and its parent synced. A kill at any moment leaves the earlier
ones as they were, and at most a hidden folder that is never read.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.storage.untrusted_files import MOST_BYTES, regular, require_regular

MANIFEST = "manifest.json"
SHARD = "shard-"  # begins the names of files that are verified, and read later, in part, by whoever needs them
FORMAT = 1
_NAME = re.compile(r"step-([0-9]{12})")
Pieces = Sequence[bytes | memoryview]  # of a file, one behind the other


class DamagedCheckpointError(Exception):
    """A checkpoint that is not what was written; the message states in which way."""


@dataclass(frozen=True, kw_only=True)
class Stored:
    """One checkpoint of a folder, not yet verified."""

    step: int
    path: Path


def write(folder: Path, step: int, files: Mapping[str, Pieces], facts: Mapping[str, Any]) -> Path:
    """Write a checkpoint of `step` to `folder`, durable when this returns; `facts` go into the manifest.

    Other threads run meanwhile: neither the disk nor a checksum holds Python's lock.

    Args:
        folder: folder of the run's checkpoints.
        step: number of steps taken.
        files: content of each file, by its name.
        facts: JSON values for the manifest.

    Raises:
        OSError: where it cannot be written (a full disk); nothing of it is left then.
    """
    partial = partial_of(folder, step)
    try:
        begin(partial)
        records = {name: write_pieces(partial / name, content) for name, content in files.items()}
        return publish(partial, step, records, facts)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def path_of(folder: Path, step: int) -> Path:
    """Return the folder of the checkpoint of `step`."""
    return folder / f"step-{step:012d}"


def partial_of(folder: Path, step: int) -> Path:
    """Return the hidden folder in which the checkpoint of `step` is written."""
    return folder / f".{path_of(folder, step).name}.partial"


def begin(partial: Path) -> None:
    """Make the hidden folder of a checkpoint, empty."""
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)


def publish(partial: Path, step: int, records: Mapping[str, Any], facts: Mapping[str, Any]) -> Path:
    """Write the manifest and give a written checkpoint its name; return its path.

    Args:
        partial: hidden folder that holds the files, as `partial_of` names it.
        step: number of steps taken.
        records: size and checksum of each file, by its name.
        facts: JSON values for the manifest.
    """
    final = path_of(partial.parent, step)
    write_durably(partial / MANIFEST, _manifest(step, records, facts))
    sync_folder(partial)
    if final.exists():  # a resumed run that passes the step again; a damaged one must not be in the way
        shutil.rmtree(final)
    partial.rename(final)
    sync_folder(partial.parent)
    return final


def read(stored: Stored) -> tuple[dict[str, bytes], dict[str, Any]]:
    """Return the files of a checkpoint and its facts, every byte verified before anything is parsed.

    Files whose names begin with SHARD are verified and not returned: together they may exceed one host's memory.

    Raises:
        DamagedCheckpointError: where a file is missing, truncated or changed, the manifest included.
    """
    try:
        manifest = _verified_manifest(regular(stored.path / MANIFEST, most=MOST_BYTES))
        if manifest["step"] != stored.step:
            raise DamagedCheckpointError(f"the manifest is of step {manifest['step']}")
        files = {name: regular(stored.path / name) for name in manifest["files"] if not name.startswith(SHARD)}
        found = {name: _record(len(content), hashlib.sha256(content)) for name, content in files.items()}
        found |= {name: _record_of(stored.path / name) for name in manifest["files"] if name.startswith(SHARD)}
    except ValueError as error:
        raise DamagedCheckpointError(str(error)) from error
    except OSError as error:
        raise DamagedCheckpointError(f"{Path(error.filename or stored.path).name}: {error.strerror}") from error
    for name, record in found.items():
        if record != manifest["files"][name]:
            raise DamagedCheckpointError(f"{name}: {record['bytes']:,} bytes whose checksum is not the manifest's")
    return files, manifest["facts"]


def stored(folder: Path) -> list[Stored]:
    """Return the checkpoints in `folder`, newest first."""
    if not folder.is_dir():
        return []
    named = ((path, _NAME.fullmatch(path.name)) for path in folder.iterdir())
    found = [Stored(step=int(match[1]), path=path) for path, match in named if match]
    return sorted(found, key=lambda one: one.step, reverse=True)


def sweep(folder: Path) -> None:
    """Remove what killed writers left half-written; only the one process that holds the run may."""
    for path in folder.glob(".step-*.partial"):
        shutil.rmtree(path, ignore_errors=True)


def facts_of(folder: Path) -> Iterator[tuple[Stored, dict[str, Any]]]:
    """Yield each checkpoint whose manifest is whole, newest first, with its facts; contents are not read."""
    for one in stored(folder):
        facts = None
        with contextlib.suppress(OSError, ValueError, DamagedCheckpointError):
            facts = _verified_manifest(regular(one.path / MANIFEST, most=MOST_BYTES))["facts"]
        if facts is not None:
            yield one, facts


def write_durably(path: Path, content: bytes) -> None:
    """Write a file down to the disk; raises what `write_pieces` does."""
    write_pieces(path, [content])


def write_pieces(path: Path, content: Iterable[bytes | memoryview]) -> dict[str, Any]:
    """Write a file down to the disk piece by piece; return its size and checksum as they were in memory.

    Raises:
        OSError: with the file's name, also where the system leaves it out (a full disk).
    """
    digest, size = hashlib.sha256(), 0
    try:
        with path.open("wb") as stream:
            for piece in content:
                stream.write(piece)
                digest.update(piece)
                size += len(piece)
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        error.filename = str(path)
        raise
    return _record(size, digest)


def sync_folder(folder: Path) -> None:
    """Ask the disk to keep the folder's entries; some network file systems cannot, and their server does."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            os.fsync(handle)
    finally:
        os.close(handle)


def _manifest(step: int, records: Mapping[str, Any], facts: Mapping[str, Any]) -> bytes:
    return _encoded({"format": FORMAT, "step": step, "files": dict(records), "facts": dict(facts)})


def _verified_manifest(data: bytes) -> dict[str, Any]:
    try:
        manifest = json.loads(data)
        content: dict[str, Any] = manifest["content"]
        intact = _encoded(content) == data  # byte for byte: 1e-5 and 1E-5 are the same number, but not what was written
        known = content["format"] == FORMAT
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise DamagedCheckpointError(f"{MANIFEST}: no manifest ({type(error).__name__})") from error
    if not intact:
        raise DamagedCheckpointError(f"{MANIFEST}: its own checksum differs")
    if known and not _well_formed(content):
        raise DamagedCheckpointError(f"{MANIFEST}: no manifest of this format")
    if not known:
        raise DamagedCheckpointError(f"{MANIFEST}: format {content['format']}, this trainer reads {FORMAT}")
    return content


def _well_formed(content: dict[str, Any]) -> bool:
    """Return whether a manifest has its parts; names of files are never paths, which would leave the folder."""
    files, facts, step = content.get("files"), content.get("facts"), content.get("step")
    if not isinstance(files, dict) or not isinstance(facts, dict) or type(step) is not int:
        return False
    return all(re.fullmatch(r"[A-Za-z0-9][\w.-]{0,99}", name, re.ASCII) for name in files)


def _record_of(path: Path) -> dict[str, Any]:
    """Return size and checksum of a regular file, read a piece at a time."""
    require_regular(path)
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256")
        return _record(stream.tell(), digest)


def _record(size: int, digest: hashlib._Hash) -> dict[str, Any]:
    return {"bytes": size, "sha256": digest.hexdigest()}


def _encoded(content: dict[str, Any]) -> bytes:
    digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()
    return json.dumps({"content": content, "sha256": digest}, indent=1).encode() + b"\n"
