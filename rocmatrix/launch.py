"""A trainer job on this machine: in the cell's image or natively, decided with a reason.

The trainer is reached through an argument list, a mounted folder and JSON lines on its standard
output; its progress goes to standard error, straight to the terminal.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

from rocmatrix.errors import RocmatrixError

Where = Literal["container", "native"]
Event = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Decision:
    """Where a job runs, and why there."""

    where: Where
    why: str


@dataclass(frozen=True, kw_only=True)
class Finished:
    """A job that has ended: its exit status and the events it sent, in order."""

    status: int
    events: tuple[Event, ...]

    def last(self, name: str) -> Event | None:
        """Return the last event of a name, or None."""
        return next((event for event in reversed(self.events) if event.get("event") == name), None)


def decide(asked: str, *, cards: tuple[str, ...], engine: str | None) -> Decision:
    """Choose where to run. `engine` is what stands in the way of a container, or None if nothing does.

    `auto` takes the container where an AMD card and an engine are found. Raises RM404 for another word.
    """
    if asked == "container":
        return Decision(where="container", why="asked for with --in container")
    if asked == "native":
        return Decision(where="native", why="asked for with --in native")
    if asked != "auto":
        raise RocmatrixError("RM404", what=f"--in takes container, native or auto, not {asked!r}")
    if not cards:
        return Decision(where="native", why="no AMD card was found, so an image would bring nothing")
    if engine is not None:
        return Decision(where="native", why=f"an AMD card ({cards[0]}) is there, but no engine: {engine}")
    return Decision(where="container", why=f"an AMD card ({cards[0]}) and an engine were found")


def native_argv(python: str, arguments: list[str]) -> list[str]:
    """Return the command that runs the trainer with an interpreter of this machine."""
    return [python, "-m", "trainer", *arguments]


def native_environment(root: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with the checkout first on the module path."""
    path = os.pathsep.join(filter(None, [str(root), environment.get("PYTHONPATH", "")]))
    return {**environment, "PYTHONPATH": path}


def run(argv: list[str], *, environment: Mapping[str, str] | None = None, show: Callable[[Event], None]) -> Finished:
    """Run a job to its end, handing each event to `show` as it arrives.

    Lines that are no JSON objects are passed on to standard error: they are words, not events.
    """
    events: list[Event] = []
    with subprocess.Popen(argv, stdout=subprocess.PIPE, env=environment, text=True, errors="replace") as process:
        assert process.stdout is not None
        for event in _events(process.stdout):
            events.append(event)
            show(event)
    return Finished(status=process.returncode, events=tuple(events))


def _events(lines: IO[str]) -> Iterator[Event]:
    for line in lines:
        event = _parsed(line)
        if event is None:
            sys.stderr.write(line)
        else:
            yield event


def _parsed(line: str) -> Event | None:
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) else None
