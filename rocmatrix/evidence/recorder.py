"""Records written by commands: the outcome of a command stays what it is, whatever the store does."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar

from rocmatrix.jobs import runner
from rocmatrix.runtime.console import say
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.input.named_path import expanded
from rocmatrix.runtime.paths import ROOT

if TYPE_CHECKING:
    from rocmatrix.containers.engine import Image
    from rocmatrix.evidence.record import Record
    from rocmatrix.host.hardware import Hardware
    from rocmatrix.images.build import BuildFailedError, Built
    from rocmatrix.jobs.job import JobRequest
    from rocmatrix.jobs.runner import Finished
    from rocmatrix.matrix.matrix import Cell
    from rocmatrix.verify.proof import Proof

NIGHT = "ROCMATRIX_NIGHT"  # the nightly that started this program
LOST = "The program that ran it ended without a word: it was killed, or the machine went down."
TEXT_LIMIT = 4000  # of the host's trouble, as many as a record takes


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
    """Place of a job: the cell, this machine, and in a container the image's id, labels and probes.

    What a record names is read from the container itself; this is what stands where it was lost.
    """

    cell: Cell
    hardware: Hardware
    where: Literal["container", "native"] = "native"
    image: str | None = None
    labels: Mapping[str, str] | None = None
    forced: bool = False
    requested_probes: tuple[str, ...] = ()


def _night() -> str | None:
    """Return the night that this program belongs to; None for a name that no record can bear, which would be lost."""
    from rocmatrix.evidence.record import is_name

    named = os.environ.get(NIGHT)
    return named if named and is_name(named) else None


def evidence_file(named: str = "") -> Path:
    """Return the file of the evidence: as named, else ROCMATRIX_EVIDENCE, else the checkout's own."""
    from rocmatrix.evidence import schema

    return expanded(named).resolve() if named else schema.default_file(ROOT)


def use(named: str) -> None:
    """Make the file that a person named this program's, and that of the programs it starts."""
    from rocmatrix.evidence import schema

    if named:
        os.environ[schema.VARIABLE] = str(expanded(named).resolve())


@harmless
def record_build(cell: Cell, built: Built, *, log: Path | None = None) -> None:
    """Record a build. One that found its image up to date adds nothing where that is known already.

    Args:
        log: file with BuildKit's output; None records none.
    """
    from rocmatrix.evidence import from_events, store
    from rocmatrix.images.build import log_file

    if built.image is None or (not built.rebuilt and _known(cell, built.inputs, built.image)):
        return
    text = _text(log or log_file(cell, ROOT)) if built.rebuilt else ""
    record = from_events.of_build(
        cell, inputs=built.inputs, image=built.image.id, seconds=built.seconds, log=text,
        marks=from_events.marks_of(cell, labels=built.image.labels), night=_night(),
        numbers=from_events.image_numbers(built.image.size),
    )  # fmt: skip
    store.save(evidence_file(), record)


@contextmanager
def failed_build(cell: Cell) -> Iterator[None]:
    """Let a build run; record it where BuildKit itself failed, or the host did once all was planned."""
    from rocmatrix.images.build import BuildFailedError

    try:
        yield
    except BuildFailedError as error:
        record_failed_build(cell, error)
        raise


@harmless
def record_failed_build(cell: Cell, error: BuildFailedError, *, root: Path = ROOT) -> None:
    """Record a build that failed: what it was to be made of, and BuildKit's log.

    Args:
        root: folder of the checkout.
    """
    from rocmatrix.evidence import from_events, store
    from rocmatrix.evidence.record import Trouble
    from rocmatrix.images import build

    trouble = error.trouble
    record = from_events.of_build(
        cell, inputs=error.planned.inputs, image=None, seconds=0.0,
        log=error.render() if trouble else _text(build.log_file(cell, root)),
        marks=from_events.marks_of(cell, labels=error.planned.labels), night=_night(),
        trouble=Trouble(stage=trouble.stage, words=trouble.detail[:TEXT_LIMIT]) if trouble else None,
    )  # fmt: skip
    store.save(evidence_file(), record)


def _known(cell: Cell, inputs: str, image: Image) -> bool:
    """Return whether the newest build on record is this very image: the level is that of the newest.

    One on a simulated machine is none of a real one, and the other way round: their levels are apart.
    """
    from rocmatrix.evidence import from_events
    from rocmatrix.evidence.level import SIMULATED

    simulated = SIMULATED in from_events.marks_of(cell, labels=image.labels)
    made = [record for record in _records(cell.name) if record.kind == "build" and record.trouble is None]
    made = [record for record in made if (SIMULATED in record.marks) == simulated]
    return [(r.inputs, r.image) for r in made[-1:]] == [(inputs, image.id)]


def _records(cell: str) -> list[Record]:
    import sqlite3

    from rocmatrix.evidence import store

    try:
        return store.read(evidence_file(), cell=cell, logs=False)
    except (sqlite3.Error, OSError, RocmatrixError):
        return []  # writing will say what is wrong with it


def is_evidence(job_request: JobRequest, done: Finished) -> bool:
    """Return whether a job's end is evidence on the cell: no mistyped flag, no bench with nothing to measure here.

    A training that found its run complete is none either: it took no step.
    """
    program = job_request.program
    if not program.recorded or done.has_usage_error or done.was_complete:
        return False
    if program.refuses_input and done.has_input_error:
        return False
    return not (program.may_be_inapplicable and done.inapplicable)


@contextmanager
def watched(job_request: JobRequest, place: Place) -> Iterator[Callable[[Finished], Record | None]]:
    """Note a run before it starts; what is yielded records its end. A run of which no end comes has failed."""
    token = _begin(job_request, place) if job_request.program.recorded else None
    try:
        yield lambda done: _end(job_request, place, done, token)
    except (KeyboardInterrupt, BrokenPipeError) as stopped:  # the second: whoever read the output went away
        finished = stopped.finished if isinstance(stopped, runner.Interrupted) else runner.stopped_by_signal()
        _end(job_request, place, finished, token)
        raise
    except RocmatrixError:  # nothing was started
        _forget(token)
        raise


@harmless
def _begin(job_request: JobRequest, place: Place) -> int | None:
    import sqlite3

    from rocmatrix.evidence import store, unfinished_runs

    lost = _record(job_request, place, runner.Finished(status=-1, events=(), stderr_tail=LOST.encode()))
    try:
        return unfinished_runs.begin(evidence_file(), lost)
    except (sqlite3.Error, OSError, RocmatrixError) as error:
        store.report_unsaved(evidence_file(), lost, error)
        return None


def _end(job_request: JobRequest, place: Place, done: Finished, token: int | None) -> Record | None:
    if is_evidence(job_request, done):
        return record_job(job_request, place, done, token)
    _forget(token)
    return None


@harmless
def _forget(token: int | None) -> None:
    from rocmatrix.evidence import unfinished_runs

    if token is not None:
        unfinished_runs.forget(evidence_file(), token)


@harmless
def settle() -> None:
    """Make records of runs that were started and lost, before anything is read."""
    from rocmatrix.evidence import unfinished_runs

    try:
        unfinished_runs.settle(evidence_file())
    except RocmatrixError as error:
        if error.code != "RM621":  # that the file is no evidence is stated by whoever reads or writes it next
            raise


@harmless
def record_job(job_request: JobRequest, place: Place, done: Finished, token: int | None = None) -> Record:
    """Record a smoke suite, a bench or a training run; return the record, kept or not.

    Output of which no record can be made is no verdict: what was asked for has failed.

    Args:
        token: number of the note that was written before the start; None where there is none.
    """
    from rocmatrix.evidence import store

    try:
        record = _record(job_request, place, done)
    except Exception as error:
        reason = f"what it said is no record: {type(error).__name__}: {error}".encode(errors="replace")
        ended = runner.Finished(status=done.status or -1, events=(), stderr_tail=reason, container=done.container)
        record = _record(job_request, place, ended)
    if token is None:
        store.save(evidence_file(), record)
    else:
        _replace(token, record)
    return record


def _replace(token: int, record: Record) -> None:
    import sqlite3

    from rocmatrix.evidence import store, unfinished_runs

    try:
        unfinished_runs.end(evidence_file(), token, record)
    except (sqlite3.Error, OSError, RocmatrixError) as error:
        store.report_unsaved(evidence_file(), record, error)


def _record(job_request: JobRequest, place: Place, done: Finished) -> Record:
    from rocmatrix.evidence import from_events
    from rocmatrix.images import labels as image_labels
    from rocmatrix.jobs import programs

    make = from_events.OF_PROGRAM[job_request.program.name]
    labels = done.container.labels if done.container else place.labels
    about: dict[str, Any] = {
        "where": place.where,
        "image": done.container.image if done.container else place.image,
        "inputs": (labels or {}).get(image_labels.INPUTS),
        "whole": job_request.whole,
        "marks": from_events.marks_of(
            place.cell, labels=labels, base=job_request.base, forced=place.forced, host=place.hardware
        ),
        "commit": programs.commit(),
        "night": _night(),
        "requested": place.requested_probes,
    }
    record = make(place.cell, done, place.hardware, **about)
    derived = done.container is not None and not done.container.sealed
    # What passed in an image that somebody made of the cell's own does not show that the cell's own passes.
    return record.model_copy(update={"inputs": None}) if derived and record.passed else record


@contextmanager
def proving(cell: Cell, image: Image) -> Iterator[Callable[[Proof], None]]:
    """Let an image be proven; what is yielded records the proof. One that ends before its verdict is recorded, too."""
    try:
        yield lambda proof: record_proof(cell, proof, image)
    except BaseException as error:
        _record_lost_proof(cell, error, image)
        raise


@harmless
def record_proof(cell: Cell, proof: Proof, image: Image) -> None:
    """Record what the files of an image proved."""
    from rocmatrix.evidence import from_events, store

    store.save(evidence_file(), from_events.of_proof(cell, proof, **_of_image(cell, image)))


@harmless
def _record_lost_proof(cell: Cell, error: BaseException, image: Image) -> None:
    from rocmatrix.evidence import from_events, host_failure, store

    met = host_failure.of(error)
    store.save(evidence_file(), from_events.of_lost_proof(cell, error, trouble=met, **_of_image(cell, image)))


def _of_image(cell: Cell, image: Image) -> dict[str, Any]:
    from rocmatrix.evidence import from_events
    from rocmatrix.images import labels

    return {
        "inputs": image.labels.get(labels.INPUTS),
        "image": image.id,
        "night": _night(),
        "marks": from_events.marks_of(cell, labels=image.labels),
    }


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
