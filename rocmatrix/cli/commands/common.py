"""Helpers of several commands: the matrix, this machine, today's date, and the choice of a cell, printed."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rocmatrix.runtime.console import say
from rocmatrix.runtime.paths import ROOT

if TYPE_CHECKING:
    from rocmatrix.host.hardware import Hardware
    from rocmatrix.jobs.job import JobRequest
    from rocmatrix.jobs.runner import Event
    from rocmatrix.matrix.matrix import Cell, Matrix
    from rocmatrix.matrix.resolver.resolve import Choice, Request

TEXTS = ("generated", "answer")  # on standard error, too: printed where that is not the same screen


def known_matrix() -> Matrix:
    """Return the checkout's matrix."""
    from rocmatrix.matrix.loading import load as matrix_file

    return matrix_file.load(ROOT)


def today() -> str:
    """Return the day on which rules are judged, as YYYY-MM-DD."""
    return date.today().isoformat()


def hardware_here() -> Hardware:
    """Return this machine's cards as in sysfs, or those of a simulated machine where one is named, and report that."""
    from rocmatrix.host import simulated

    found = simulated.here()
    if found.simulated:
        say(f"SIMULATED machine: {simulated.root()} ({simulated.VARIABLE}); what is recorded of it raises no level")
    return found


def choose(
    matrix: Matrix, request: Request, hardware: Hardware, *, force: bool = False, allow_unlocked: bool = False
) -> Choice:
    """Resolve a request, and print the cell, the rules overridden and what was passed over.

    Where cards are there and the CPU is taken all the same, that is printed first, with what a card would need.

    Args:
        force: resolve to a cell that a rule calls broken; each rule overridden is printed.
        allow_unlocked: resolve to a cell without recorded hashes where no other serves this machine's card.
    """
    from rocmatrix.matrix.resolver import resolve

    choice = resolve.resolve(
        matrix,
        request,
        cards=hardware.architectures,
        unusable=hardware.unusable,
        force=force,
        allow_unlocked=allow_unlocked,
    )
    if choice.unserved:
        say(f"NO CARD IS USED: {choice.unserved}")
        if choice.unlocked:
            say(f"  hint: {unlocked_steps(choice.unlocked)}")
    choice = replace(choice, cell=with_companions(matrix, choice.cell, request.companions))
    say(f"cell: {choice.cell.name} ({choice.why})")
    for rule in choice.forced:
        say(f"  FORCED against rule {rule.id}: {rule.summary} ({rule.evidence.summary})")
    for other in choice.passed_over:
        say(f"  passed over {other.cell}: {other.why}")
    return choice


def unlocked_steps(cell: str) -> str:
    """Return how a card is used whose only cell has no recorded hashes."""
    return f"./invokew build --cell {cell} --allow-unlocked takes what its index serves, unchecked; then --cell {cell}"


def with_companions(matrix: Matrix, cell: Cell, packages: Iterable[str]) -> Cell:
    """Return the cell with companions added to those of its name, judged and not resolved. Raises RM010, RM013, RM222.

    A cell without any is returned as it is.

    Args:
        packages: companions to add, each as `--with` takes it; empty for those of the cell's name alone.
    """
    named = [*cell.companions, *packages]
    if not named:
        return cell
    from rocmatrix.images import companion_lock

    return companion_lock.added(matrix, cell, named)


def prepared_cell(matrix: Matrix, cell: Cell, root: Path = ROOT) -> Cell:
    """Return the cell with the wheels of its companions, its files where a build finds them. Raises RM101, RM102.

    Args:
        root: root of the checkout below which locks are read and files are written.
    """
    from rocmatrix.images import companion_lock
    from rocmatrix.images import render as rendering

    locked = companion_lock.locked(matrix, cell, root) if cell.companions else cell
    rendering.make_ready(locked, root)
    return locked


def print_json(data: Any) -> None:
    """Print data for programs on standard output."""
    print(json.dumps(data, indent=2, ensure_ascii=False))


def require_settings(job_request: JobRequest) -> None:
    """End with the trainer's own refusal of a setting, before an image is built, a job is sent or a command printed."""
    from rocmatrix.jobs.programs import settings_status

    if status := settings_status(job_request.program, job_request.options, as_json=job_request.as_json):
        sys.exit(status)


def event_printer(*, as_json: bool) -> Callable[[Event], None]:
    """Return the function that a job's events are handed to.

    Args:
        as_json: print each event as one line of JSON.
    """
    return print_json_line if as_json else Readable()


def print_json_line(event: Event) -> None:
    """Print an event as one line of JSON, at once."""
    print(json.dumps(event), flush=True)


class Readable:
    """Prints forecasts as CSV below their header, and texts; other events are reported on standard error."""

    def __init__(self) -> None:
        self.columns: list[str] = []

    def __call__(self, event: Event) -> None:
        """Print an event that is data."""
        fields = {name: value for name, value in event.items() if name != "event"}
        if event.get("event") == "forecast":
            self._row(fields)
        elif event.get("event") in TEXTS and not sys.stdout.isatty():
            print(fields["text"], flush=True)

    def _row(self, fields: dict[str, Any]) -> None:
        rows = csv.writer(sys.stdout, lineterminator="\n")
        if not self.columns:
            self.columns = [*fields]
            rows.writerow(self.columns)
        rows.writerow([fields.get(name) for name in self.columns])
