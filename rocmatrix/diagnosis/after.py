"""A few lines on why a job failed, after it has. Nothing here decides anything: a defect of it is one line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rocmatrix.console import ROOT, say
from rocmatrix.errors import RocmatrixError

if TYPE_CHECKING:
    from rocmatrix.diagnosis.ranking import Surroundings
    from rocmatrix.launch import Finished
    from rocmatrix.matrix import Cell

LINES_SAID = 10
_BUILD_FAILED = "RM202"


def explain(log: bytes | Path, *, cell: Cell | None = None) -> None:
    """Say the best match in the log of a failed job, where there is one. Never raises."""
    try:
        for line in _lines(log, cell):
            say(line)
    except Exception as error:
        say(f"diagnosis: it failed itself and changes nothing ({type(error).__name__}: {error})")


@contextmanager
def explained(log: Path, *, cell: Cell) -> Iterator[None]:
    """Let a build run; where BuildKit fails, explain its log and let the failure go on as it is."""
    try:
        yield
    except RocmatrixError as error:
        if error.code == _BUILD_FAILED:
            explain(log, cell=cell)
        raise


def told(done: Finished) -> bytes:
    """Return what a job has told of its failure: the end of its standard error, and its events that were no success."""
    failed = (event for event in done.events if event.get("status") != "pass")
    return done.last_words + b"\n" + b"".join(json.dumps(event).encode() + b"\n" for event in failed)


def surroundings(cell: Cell | None, architecture: str | None = None) -> Surroundings:
    """Return what a cell, or a card, says of where a log comes from."""
    from rocmatrix.diagnosis.ranking import Surroundings

    if cell is None:
        return Surroundings(architecture=architecture)
    release = cell.release
    return Surroundings(architecture=architecture or cell.architecture, torch=release.torch, rocm=release.rocm)


def _lines(log: bytes | Path, cell: Cell | None) -> Iterator[str]:
    from rocmatrix.diagnosis import diagnosis, reading, signature

    blocks = [log] if isinstance(log, bytes) else reading.chunks(reading.opened(log), name=str(log))
    name = "its last words" if isinstance(log, bytes) else str(log)
    found = diagnosis.diagnose(blocks, name=name, signatures=signature.load(ROOT), here=surroundings(cell))
    if found.best is None:
        yield "diagnosis: no known failure in its words (this changes no verdict)"
        return
    yield "diagnosis, from its words alone (this changes no verdict):"
    yield from diagnosis.words(found)[:LINES_SAID]
