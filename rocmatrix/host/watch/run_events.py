"""The events of a run as its folder gets them: its measurements, its epochs, and whether it is finished.

A run is written in a hidden folder next to its place (`.NAME.partial`) that is renamed at the end. A file may be
absent, end in half a line, or begin anew where the run is resumed.
"""

from __future__ import annotations

import json
import math
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from rocmatrix.host.watch.processes import printable

LOGS = ("telemetry.jsonl", "batches.jsonl")
MOST_BYTES = 1 << 18  # of a log that are read at once; of a longer one, the newest
SHOWN = (
    *("epoch", "step", "first_step", "rows_per_second", "step_ms", "mfu", "train_loss", "validation_loss"),
    *("joules_per_row", "checkpoint_age_s", "slower", "cause", "what", "words"),
)
PER_BATCH = ("links", "losses", "head")
Event = dict[str, Any]


@dataclass
class _Log:
    """A place in one file: its inode, bytes read, and the half line at their end."""

    inode: int = 0
    read: int = 0
    rest: bytes = b""


@dataclass
class Follower:
    """Follows the run that ends up in `final`."""

    final: Path
    _logs: dict[str, _Log] = field(default_factory=lambda: {name: _Log() for name in LOGS})

    @property
    def partial(self) -> Path:
        """Where the run is while it is unfinished."""
        return self.final.parent / f".{self.final.name}.partial"

    @property
    def state(self) -> Literal["finished", "unfinished", "absent"]:
        """Whether the run is complete; one that was ended before its time stays unfinished."""
        if self.final.is_dir():
            return "finished"
        return "unfinished" if self.partial.is_dir() else "absent"

    def events(self) -> list[Event]:
        """Return the events that were written since the last call, those of one log in their order."""
        folder = self.final if self.final.is_dir() else self.partial
        return [_brief(event) for name, log in self._logs.items() for event in _new(folder / name, log)]

    def words(self, events: list[Event]) -> list[str]:
        """Return the newest of `events` as lines for a person."""
        newest = {kind: event for event in events if (kind := _kind(event))}
        return [f"run {printable(self.final.name)} ({self.state})", *map(_words, newest.values())]


def run_of(folder: Path) -> Follower | None:
    """Return what follows a run, None where `folder` is neither a run nor the hidden twin of one.

    Args:
        folder: TRAINING/NAME, or TRAINING/.NAME.partial.
    """
    place = folder.absolute()
    name = place.name
    if name.startswith(".") and name.endswith(".partial"):
        place = place.parent / name[1 : -len(".partial")]
    follower = Follower(place)
    if follower.state == "finished" and not any((place / log).exists() for log in (*LOGS, "metadata.json")):
        return None
    return None if follower.state == "absent" else follower


def _new(path: Path, log: _Log) -> Iterator[Event]:
    try:
        if not path.is_file():  # a pipe would never open
            return
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            if found.st_ino != log.inode or found.st_size < log.read:
                log.inode, log.read, log.rest = found.st_ino, 0, b""
            if found.st_size - log.read > MOST_BYTES:
                log.read, log.rest = found.st_size - MOST_BYTES, b""
            file.seek(log.read)
            content = file.read(MOST_BYTES)
    except OSError:
        return
    log.read += len(content)
    *lines, log.rest = (log.rest + content).split(b"\n")
    log.rest = log.rest[-MOST_BYTES:]
    yield from filter(None, map(_event, lines))


def _event(line: bytes) -> Event | None:
    """Return a line's event; half a line, and what is no object, is none."""
    try:
        found = json.loads(line, parse_constant=lambda _: None, parse_float=_finite)  # NaN and infinity are no JSON
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _finite(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None  # 1e999


def _brief(event: Event) -> Event:
    """Return an event without what it has for each batch; of an epoch's losses (fp32, big-endian, hex) their mean."""
    brief = {key: value for key, value in event.items() if not isinstance(value, list) and key not in PER_BATCH}
    mean = _mean_loss(event.get("losses"))
    return brief if mean is None else brief | {"train_loss": mean}


def _mean_loss(bits: object) -> float | None:
    try:
        losses = [loss for (loss,) in struct.iter_unpack(">f", bytes.fromhex(bits if isinstance(bits, str) else ""))]
    except (ValueError, struct.error):
        return None
    mean = sum(losses) / len(losses) if losses else math.nan
    return mean if math.isfinite(mean) else None


def _kind(event: Event) -> str:
    return "epoch" if "epoch" in event else str(event.get("event", ""))


def _words(event: Event) -> str:
    """Return one line: "window: step 1200, 22871 rows_per_second, sensors temperature_c 52"."""
    kind = _kind(event)
    parts = [f"{key} {_figure(event[key])}" for key in SHOWN if isinstance(event.get(key), int | float | str)]
    for key in ("waiting", "sensors"):
        inner = event.get(key)
        if isinstance(inner, dict) and inner:
            parts.append(", ".join(f"{key} {name} {_figure(value)}" for name, value in inner.items()))
    return printable(f"  {kind}: {', '.join(parts)}" if parts else f"  {kind}")


def _figure(value: object) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)
