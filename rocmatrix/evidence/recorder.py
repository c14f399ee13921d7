"""Where commands hand their outcome to the evidence: nothing here changes that outcome, whatever the store does."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from rocmatrix.runtime.console import say
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.paths import ROOT

if TYPE_CHECKING:
    from rocmatrix.evidence.record import Record
    from rocmatrix.host.hardware import Hardware
    from rocmatrix.images.build import Built
    from rocmatrix.jobs.job import Wanted
    from rocmatrix.jobs.runner import Finished
    from rocmatrix.matrix.matrix import Cell
    from rocmatrix.verify.proof import Proof

NIGHT = "ROCMATRIX_NIGHT"  # the nightly that started this program
RECORDED = ("train", "smoke", "bench")  # the programs of the trainer whose runs are evidence


P = ParamSpec("P")
R = TypeVar("R")


def harmless(keep: Callable[P, R]) -> Callable[P, R | None]:
    """Let nothing that goes wrong with a record change how the job ends: it is said under RM620, and None returned."""

    @functools.wraps(keep)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R | None:
        try:
            return keep(*args, **kwargs)
        except Exception as error:  # an engine that has stopped since, an answer that nobody foresaw
            what = f"its record could not be made: {type(error).__name__}: {str(error).splitlines()[0]}"
            say(RocmatrixError("RM620", what=what, where=str(evidence_file())).render())
            return None

    return guarded


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a job ran: the cell, this machine, and the image's tag and inputs where it ran in one."""

    cell: Cell
    hardware: Hardware
    image: str | None = None
    inputs: str | None = None
    forced: bool = False


def evidence_file(named: str = "") -> Path:
    """Return the file of the evidence: as named, else ROCMATRIX_EVIDENCE, else the checkout's own."""
    from rocmatrix.evidence import schema

    return Path(named).expanduser().resolve() if named else schema.default_file(ROOT)


def use(named: str) -> None:
    """Make the file that a person named this program's, and that of the programs it starts."""
    from rocmatrix.evidence import schema

    if named:
        os.environ[schema.VARIABLE] = str(Path(named).expanduser().resolve())


@harmless
def keep_build(cell: Cell, built: Built, *, base: str | None, forced: bool, log: Path | None = None) -> None:
    """Record a build. One that found its image up to date adds nothing where that is known already."""
    from rocmatrix.evidence import collect, store
    from rocmatrix.images.build import log_file

    if built.image is None or (not built.rebuilt and _known(cell, built)):
        return
    text = _text(log or log_file(cell, ROOT)) if built.rebuilt else ""
    record = collect.of_build(
        cell, inputs=built.inputs, image=built.image.id, seconds=built.seconds, log=text,
        marks=collect.marks_of(cell, base=base, forced=forced), night=os.environ.get(NIGHT),
        numbers=collect.image_numbers(built.image.size),
    )  # fmt: skip
    store.keep(evidence_file(), record)


@contextmanager
def failed_build(cell: Cell, *, base: str | None, forced: tuple[str, ...]) -> Iterator[None]:
    """Let a build run; record it where BuildKit itself failed, for any other error means that nothing was built."""
    try:
        yield
    except RocmatrixError as error:
        if error.code == "RM202":
            keep_failed_build(cell, base=base, forced=forced)
        raise


@harmless
def keep_failed_build(cell: Cell, *, base: str | None, forced: tuple[str, ...], root: Path = ROOT) -> None:
    """Record a build that failed: what it was to be made of, and BuildKit's log."""
    from rocmatrix.evidence import collect, store
    from rocmatrix.images import build

    record = collect.of_build(
        cell, inputs=build.input_hash(cell, root, base=base, forced=forced), image=None, seconds=0.0,
        log=_text(build.log_file(cell, root)), marks=collect.marks_of(cell, base=base, forced=bool(forced)),
        night=os.environ.get(NIGHT),
    )  # fmt: skip
    store.keep(evidence_file(), record)


def _known(cell: Cell, built: Built) -> bool:
    """Whether the newest build of these inputs on record is this very image."""
    return built.image is not None and (built.inputs, built.image.id) in {
        (record.inputs, record.image) for record in _records(cell.name) if record.kind == "build" and record.passed
    }


def _records(cell: str) -> list[Record]:
    import sqlite3

    from rocmatrix.evidence import store

    try:
        return store.read(evidence_file(), cell=cell, logs=False)
    except (sqlite3.Error, OSError, RocmatrixError):
        return []  # writing will say what is wrong with it


def is_evidence(wanted: Wanted, done: Finished) -> bool:
    """Whether a job's end says anything of the cell: not a mistyped flag, nor a bench with nothing to measure here."""
    if wanted.program not in RECORDED or done.misused:
        return False
    return wanted.program != "bench" or not (done.last("error") or done.inapplicable)


@harmless
def keep_job(wanted: Wanted, place: Place, done: Finished) -> Record:
    """Record a smoke suite, a bench or a training run; return the record, kept or not."""
    from rocmatrix.evidence import collect, store
    from rocmatrix.jobs import job

    make = {"smoke": collect.of_smoke, "bench": collect.of_bench, "train": collect.of_train}[wanted.program]
    about: dict[str, Any] = {
        "where": "container" if place.image else "native",
        "image": _digest(place.image),
        "inputs": place.inputs,
        "whole": not (wanted.options.get("probe") or wanted.options.get("only")),
        "marks": collect.marks_of(place.cell, base=wanted.base, forced=place.forced),
        "commit": job.commit(),
        "night": os.environ.get(NIGHT),
    }
    record = make(place.cell, done, place.hardware, **about)
    store.keep(evidence_file(), record)
    return record


@harmless
def keep_proof(cell: Cell, proof: Proof, reference: str, *, base: str | None = None) -> None:
    """Record what the files of an image proved."""
    from rocmatrix.containers import engine
    from rocmatrix.evidence import collect, store
    from rocmatrix.images import build

    with closing(engine.connect()) as client:
        image = engine.image(client, reference)
    labels = image.labels if image else {}
    record = collect.of_proof(
        cell, proof, inputs=labels.get(build.INPUTS_LABEL), image=image.id if image else None,
        night=os.environ.get(NIGHT), marks=collect.marks_of(cell, base=base, forced=build.FORCED_LABEL in labels),
    )  # fmt: skip
    store.keep(evidence_file(), record)


def _digest(image: str | None) -> str | None:
    from rocmatrix.containers import engine

    try:
        return engine.image_id(image) if image else None
    except RocmatrixError:
        return None  # removed, or the engine stopped, since the job began


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
