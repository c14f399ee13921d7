"""A short explanation after a job has failed. It decides nothing: a defect here costs one line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rocmatrix.runtime.console import say
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.paths import ROOT

if TYPE_CHECKING:
    from rocmatrix.diagnosis.ranking import HostContext
    from rocmatrix.host.hardware import Hardware
    from rocmatrix.jobs.runner import Finished
    from rocmatrix.matrix.matrix import Cell

LINES_SHOWN = 12
_BUILD_FAILED = "RM202"
_PASSED = b'"status": "pass"'


def explain(log: bytes | Path, *, cell: Cell | None = None, hardware: Hardware | None = None) -> None:
    """Report the best match in the log of a failed job, where there is one, ranked for cell and host. Never raises.

    Args:
        log: the log as bytes, or the path of a file that holds it.
    """
    try:
        for line in _lines(log, cell, hardware):
            say(line)
    except Exception as error:
        say(f"diagnosis failed and changes nothing ({type(error).__name__}: {error})")


@contextmanager
def explained(log: Path, *, cell: Cell) -> Iterator[None]:
    """Let a build run; where BuildKit fails, explain its log and let the failure go on as it is."""
    try:
        yield
    except RocmatrixError as error:
        if error.code == _BUILD_FAILED:
            explain(log, cell=cell)
        raise


def reported(done: Finished) -> bytes | Path:
    """Return what a job reported of its failure: its log, else its last lines and its events other than success."""
    if done.log is not None:
        return done.log
    failed = (event for event in done.events if event.get("status") != "pass")
    return done.stderr_tail + b"\n" + b"".join(json.dumps(event).encode() + b"\n" for event in failed)


def host_context(cell: Cell | None, architecture: str | None = None, hardware: Hardware | None = None) -> HostContext:
    """Return what a cell, or a card, and the host say of where a log comes from.

    Args:
        architecture: gfx name of the card, where no cell names it.
    """
    from rocmatrix.diagnosis.ranking import HostContext

    if cell is None:
        return HostContext(architecture=architecture)
    own, release = architecture or cell.architecture, cell.release
    others = tuple(dict.fromkeys(gfx for gfx in (hardware.architectures if hardware else ()) if gfx != own))
    return HostContext(architecture=own, torch=release.torch, rocm=release.rocm, others=others)


def _lines(log: bytes | Path, cell: Cell | None, hardware: Hardware | None) -> Iterator[str]:
    from rocmatrix.diagnosis import answer, diagnosis, log_reader, signature
    from rocmatrix.diagnosis.comparisons import forms
    from rocmatrix.matrix.loading import load as matrix_file

    blocks = [log] if isinstance(log, bytes) else log_reader.chunks(log_reader.opened(log), name=str(log))
    name = "its last words" if isinstance(log, bytes) else str(log)
    found = diagnosis.diagnose(
        without_successes(blocks),
        name=name,
        signatures=signature.load(ROOT),
        here=host_context(cell, hardware=hardware),
        matrix=matrix_file.load(ROOT),
        comparisons=forms.load(ROOT),
    )
    if isinstance(log, Path):
        yield f"log: {log}"
    where = _where(cell, hardware)
    if found.best is None:
        yield f"diagnosis{where}: no known failure in its words (this changes no verdict)"
        return
    yield f"diagnosis{where}, from its words alone (this changes no verdict):"
    yield from answer.text_lines(found)[:LINES_SHOWN]


def without_successes(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Blank the verdicts that passed: what they quote is no failure. Every line keeps its number."""
    for block in blocks:
        quoted = _PASSED in block
        yield b"\n".join(b"" if _is_success(line) else line for line in block.split(b"\n")) if quoted else block


def _is_success(line: bytes) -> bool:
    """Return whether a line is an event that passed; one that failed may hold checks that did."""
    if _PASSED not in line or not line.startswith(b"{"):
        return False
    try:
        return bool(json.loads(line)["status"] == "pass")
    except (ValueError, KeyError, TypeError):
        return False


def _where(cell: Cell | None, hardware: Hardware | None) -> str:
    """Return for which cell and host matches were ranked."""
    if cell is None:
        return ""
    if hardware is None:
        return f" for {cell.name}"
    cards = ", ".join(hardware.architectures) or hardware.unusable or "no AMD card"
    return f" for {cell.name} on {cards}, Linux {hardware.kernel or 'unknown'}"
