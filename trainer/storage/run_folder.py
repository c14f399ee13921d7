"""Run folders, whole or absent: written under a hidden name, synced, then renamed.

Until then the hidden twin holds the run's checkpoints. A run that ends before its time leaves the twin if there
is a checkpoint in it, to resume from, and nothing otherwise.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from trainer.runtime.errors import TrainerError, suggestion
from trainer.storage import checkpoint_store
from trainer.storage.checkpoint_store import sync_folder, write_durably
from trainer.storage.untrusted_files import json_of

SETTINGS = "run.json"  # what a resume must know before there is a checkpoint; gone when the run is complete
MOST_ROWS = "most_rows.json"  # left by an attempt whose memory ran out, for the next one
_TWIN = re.compile(r"\.(.+)\.partial")


@dataclass(frozen=True, kw_only=True)
class RunFolder:
    """A run in the making: files go into `partial`, which becomes `final` at the end."""

    name: str
    partial: Path
    final: Path

    @property
    def checkpoints(self) -> Path:
        """Where the run's checkpoints are while it is unfinished."""
        return self.partial / "checkpoints"

    def write(self, file: str, content: bytes) -> dict[str, Any]:
        """Write `file` down to the disk and return its size and SHA-256.

        Raises:
            OSError: with the file's name, also where the system leaves it out (a full disk).
        """
        write_durably(self.partial / file, content)
        return record_of(content)

    def settings(self, checked: Callable[[Any], dict[str, Any] | None]) -> dict[str, Any] | None:
        """Return what the run was started with, or None where it was killed before that was written.

        Each checkpoint knows it too, in case the file itself is damaged. `checked` returns None for what is of no use.

        Raises:
            TrainerError: RM592 where a file states it, and none of them in a form that can be used.
        """
        found, reported = None, False
        with contextlib.suppress(OSError, ValueError):
            found, reported = checked(json_of(self.partial / SETTINGS)), True
        for _, facts in () if found else checkpoint_store.facts_of(self.checkpoints):
            found, reported = found or checked(facts.get("settings")), True
        if reported and found is None:
            raise TrainerError("RM592", what=f"what run {self.name} was started with", where=str(self.partial))
        return found


def note_most_rows(run: Path, rows: int) -> None:
    """Leave word for the next attempt at an unfinished run: at most `rows` rows at a time.

    Raises:
        OSError: where it cannot be written.
    """
    (run / MOST_ROWS).write_text(json.dumps({"rows": rows}) + "\n")


def most_rows(run: Path) -> int | None:
    """Return what `note_most_rows` left, None for nothing."""
    try:
        rows = json_of(run / MOST_ROWS)["rows"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return rows if isinstance(rows, int) and not isinstance(rows, bool) and rows > 0 else None


def record_of(content: bytes) -> dict[str, Any]:
    """Return the size and SHA-256 of a file's content."""
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def folder_of(output: Path, name: str) -> RunFolder:
    """Return where run `name` is, finished or not; nothing is made."""
    return RunFolder(name=name, partial=output / f".{name}.partial", final=output / name)


def unfinished(output: Path) -> list[str]:
    """Return the names of unfinished runs in `output`, the latest first; running ones are among them."""
    if not output.is_dir():
        return []
    found = ((path, _TWIN.fullmatch(path.name)) for path in output.iterdir() if path.is_dir())
    named = [(path.stat().st_mtime_ns, match[1]) for path, match in found if match]
    return [name for _, name in sorted(named, reverse=True)]


def to_resume(output: Path, requested: str, name: str | None) -> str | None:
    """Return the unfinished run that `--resume` means; None where `auto` finds nothing to resume.

    Args:
        output: folder of all runs.
        requested: value of `--resume`: auto, or a run's name.
        name: value of `--run-name`; None where not given.

    Raises:
        TrainerError: RM550 where the run that was named is not there, RM555 where `auto` finds only running ones.
    """
    known = unfinished(output)
    if requested == "auto" and name:
        return name if name in known else None
    if requested == "auto":
        return _first_free(output, known)
    if requested not in known:
        why = suggestion(requested, known) if known else "no unfinished run is there"
        raise TrainerError("RM550", what=f"no unfinished run {requested!r}", where=str(output), why=why)
    return requested


def _first_free(output: Path, known: list[str]) -> str | None:
    """Return the first of the runs that no process has open, None where there are no runs; RM555 where all are busy."""
    free = next((one for one in known if not is_running(folder_of(output, one))), None)
    if known and free is None:
        raise TrainerError("RM555", what=f"another process works on {', '.join(known)}", where=str(output))
    return free


def is_running(folder: RunFolder) -> bool:
    """Return whether another process works on the unfinished run just now."""
    try:
        with _locked(folder):
            return False
    except TrainerError:
        return True


@contextlib.contextmanager
def open_run(output: Path, name: str | None, *, need_bytes: int, resume: bool = False) -> Iterator[RunFolder]:
    """Reserve a run in `output` now, hand it out, and publish it if the block ends without an exception.

    That `output` can be written and has room is found out here, before any training. With `resume`, the
    unfinished twin of `name` is taken up again.

    Args:
        output: folder of all runs.
        name: name of the run; None makes one.
        need_bytes: free space that the run needs.
        resume: take up the unfinished run `name`.

    Raises:
        TrainerError: RM540 where the run exists, RM544 where no folder can be made, RM543 where less than
            `need_bytes` are free, RM555 where another process works on the run.
        OSError: where the output folder cannot be made or written.
    """
    try:
        output.mkdir(parents=True, exist_ok=True)
    except FileNotFoundError as error:  # below /proc, or a folder that was mounted and is gone
        raise TrainerError("RM544", what="no folder can be made there", where=str(output)) from error
    _require_space(output, need_bytes)
    folder = folder_of(output, name or fresh_name())
    if not resume:
        _reserve(folder)
    with _locked(folder):
        try:
            yield folder
            _publish(folder)
        except BaseException:
            if not _is_of_use(folder):
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


def _reserve(folder: RunFolder) -> None:
    if folder.final.exists():
        raise TrainerError("RM540", what=f"there is a run called {folder.name}", where=str(folder.final))
    _remove_abandoned(folder)
    try:
        folder.partial.mkdir()
    except FileExistsError:
        what = f"run {folder.name} is in progress, or was killed before it could clean up"
        remedy = (
            f"Resume it with --resume {folder.name}. If nothing is running, delete {folder.partial}; "
            "else choose another name with --run."
        )
        raise TrainerError("RM540", what=what, where=str(folder.partial), next=remedy) from None


def _is_of_use(folder: RunFolder) -> bool:
    """Return whether an unfinished run holds anything that its next attempt needs."""
    return bool(checkpoint_store.stored(folder.checkpoints)) or (folder.partial / MOST_ROWS).exists()


def _remove_abandoned(folder: RunFolder) -> None:
    """Remove what a killed run left before its first checkpoint, as one that ends by itself does.

    One that has no settings yet may be another process's that is about to lock it, so it stays.
    """
    with contextlib.suppress(OSError):  # there is none, it is locked, or its file system has no locks
        handle = os.open(folder.partial, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_there = os.path.samestat(os.fstat(handle), folder.partial.stat())
            if is_there and (folder.partial / SETTINGS).exists() and not _is_of_use(folder):
                shutil.rmtree(folder.partial)
        finally:
            os.close(handle)


@contextlib.contextmanager
def _locked(folder: RunFolder) -> Iterator[None]:
    """Hold the unfinished folder for this process; the system lets go of it however the process ends."""
    handle = os.open(folder.partial, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            what = f"another process works on run {folder.name}"
            raise TrainerError("RM555", what=what, where=str(folder.partial)) from None
        except OSError:
            pass  # a file system without locks: then nobody is kept out
        yield
    finally:
        os.close(handle)


def _publish(folder: RunFolder) -> None:
    """Give the folder its name; checkpoints and settings, which only a resume needs, go last."""
    sync_folder(folder.partial)
    folder.partial.rename(folder.final)
    sync_folder(folder.final.parent)
