"""The events of a job on standard output: as JSON lines for programs, where asked for, else what a person reads.

Progress and the report of a run go to standard error. What is data, forecasts and generated texts, is on standard
output in either case.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable
from typing import Any

from rocmatrix.jobs.runner import Event

TEXTS = ("generated", "answer")  # on standard error, too: printed where that is not the same screen


def printer(*, as_json: bool) -> Callable[[Event], None]:
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
