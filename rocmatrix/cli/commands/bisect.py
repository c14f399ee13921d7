"""`./invokew bisect`: find the versions between which a probe broke on a card, from records and further smokes."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rocmatrix.cli.commands import common, jobs
from rocmatrix.cli.options.command import command
from rocmatrix.cli.options.common import BASE, GPU, Kept
from rocmatrix.evidence import recorder
from rocmatrix.jobs.programs import SMOKE
from rocmatrix.nightly.bisection import search
from rocmatrix.nightly.bisection.search import Answer, Found, Span
from rocmatrix.runtime.console import say, table
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.option import option

if TYPE_CHECKING:
    from rocmatrix.matrix.matrix import Matrix
    from rocmatrix.nightly.bisection.history import Step


@dataclass(frozen=True, kw_only=True)
class Bisect(Kept):
    """Options of `bisect`."""

    gpu: str = option(GPU, metavar="GPU")
    probe: str = option("the probe that broke, such as blas", metavar="PROBE")
    good: str = option("a cell that is known to be good, where it is not on record", metavar="CELL")
    bad: str = option("a later cell that is known to be bad", metavar="CELL")
    card: str = option("only records of this card, as `./invokew evidence` names it", metavar="CARD")
    base: str = option(BASE, metavar="IMAGE")
    dry_run: bool = option("print what is known and what would be asked, and run nothing", default=False)


@command(
    Bisect,
    about="Find the versions between which a probe broke on a card: from records, then by building and smoking others.",
)
def bisect(args: Bisect) -> None:
    """Find the step that broke a probe. Raises RM633 where no pair is known, RM634 for several changes."""
    probe = args.probe
    if not args.gpu or not probe:
        raise RocmatrixError("RM404", what="bisect needs a card and a probe", next="--gpu gfx1100 --probe blas")
    matrix = common.known_matrix()
    steps = _steps(matrix, args.gpu, probe, args.card or None)
    known = known_of(steps, good=args.good, bad=args.bad)
    within = search.span(known)
    if within is None:
        raise _nothing(steps)
    _plan(steps, known, within)
    if args.dry_run:
        return
    found = search.search(known, lambda place: _outcome_of(steps[place], probe, args.base or None))
    _print_found(steps, found)


def _steps(matrix: Matrix, gpu: str, probe: str, card: str | None) -> list[Step]:
    from rocmatrix.evidence import store
    from rocmatrix.matrix import card_names as cards
    from rocmatrix.nightly.bisection import history

    architecture = None if gpu == "cpu" else cards.architecture_of(matrix.architectures, gpu)
    path = recorder.evidence_file()
    try:
        records = store.read(path, logs=False)
    except sqlite3.Error as error:
        raise RocmatrixError("RM621", what=str(error), where=str(path)) from error
    return history.steps(history.versions(matrix, architecture), records, probe, card=card)


def known_of(steps: Sequence[Step], *, good: str, bad: str) -> dict[int, Answer]:
    """Return the answers that are known, by place in `steps`. Raises RM010 for a cell that is not among them.

    Args:
        steps: versions for one card, from old to new; a record of the probe gives a step its answer.
        good: name of a cell that the user states as working, in place of a recorded answer; empty for none.
        bad: name of a cell that the user states as broken, likewise.
    """
    known: dict[int, Answer] = {place: step.answer for place, step in enumerate(steps) if step.answer}
    names = [step.cell.name for step in steps]
    vouched: tuple[tuple[str, Answer], ...] = ((good, "good"), (bad, "bad"))
    for name, answer in vouched:
        if name and name not in names:
            raise RocmatrixError("RM010", what=f"{name} is no version for this card", next=", ".join(names))
        if name:
            known[names.index(name)] = answer
    return known


def _nothing(steps: Sequence[Step]) -> RocmatrixError:
    text = "\n".join(step.summary for step in steps) or "no version for this card can be built from checked wheels"
    return RocmatrixError("RM633", what=text, where=str(recorder.evidence_file()))


def _plan(steps: Sequence[Step], known: dict[int, Answer], within: Span) -> None:
    queue = list(search.order(known, within))
    rows = []
    for place, step in enumerate(steps):
        position = f"asked {queue.index(place) + 1}. while all are good" if place in queue else "-"
        edge_of = {within.good: "last good", within.bad: "first bad on record"}.get(place, "")
        rows.append((step.summary, known.get(place, "?"), edge_of or position))
    table(("VERSION", "ANSWER", "PLAN"), rows)
    say(f"at most {search.most_questions(within, known)} versions are built and smoked, more where some give no answer")


def _outcome_of(step: Step, probe: str, base: str | None) -> Answer:
    """Build and smoke one version with the one probe; a version that cannot be asked is skipped, with its reason."""
    from rocmatrix.evidence.level import NOT_APPLICABLE_STATUSES, PASSED
    from rocmatrix.jobs.job import JobRequest
    from rocmatrix.matrix.resolver.request import Request

    release = step.cell.release
    request = Request(gpu=step.cell.architecture or "cpu", rocm=release.rocm, torch=release.torch)
    options = {"probe": [probe], "timeout": None}
    job_request = JobRequest(program=SMOKE, request=request, where="container", options=options, base=base, force=True)
    try:
        done = jobs.run_job(job_request)
    except RocmatrixError as error:
        say(f"{step.cell.name}: skipped, {error.code} {error.what}")
        return "skip"
    verdicts = [
        event
        for event in (done.events if done else ())
        if event.get("probe") == probe and event.get("status") not in (None, *NOT_APPLICABLE_STATUSES)
    ]
    answer: Answer = ("good" if verdicts[-1]["status"] in PASSED else "bad") if verdicts else "skip"
    say(f"{step.cell.name}: {probe} is {answer}")
    return answer


def _print_found(steps: Sequence[Step], found: Found) -> None:
    print(f"good {steps[found.good].cell.name}")
    for place in found.skipped:
        print(f"skip {steps[place].cell.name}")
    print(f"bad {steps[found.bad].cell.name}")
    if not found.monotone:
        lines = [f"{steps[a].cell.name} and {steps[b].cell.name} differ" for a, b in found.changes]
        raise RocmatrixError("RM634", what="\n".join(lines))
