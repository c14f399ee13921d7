"""A snapshot of the cards as lines for a terminal of any width. Pure; `?` is what the driver does not report."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from rocmatrix.host.watch.snapshot import CardSnapshot, ProcessSnapshot, Snapshot
from rocmatrix.runtime import text_table

UNKNOWN = "?"
GIB = 1 << 30
CARDS = ("Card", "Load %", "GiB", "°C", "W", "MHz", "Link", "Throttled")
PROCESSES = ("Process", "Card", "GiB", "Load %", "Name")
MOST_PROCESSES = 10
LEGEND = "? not reported; GiB, °C and W of their limits; MHz of core and memory; link: lanes, GT/s a lane"


def lines(snapshot: Snapshot, *, width: int, source: str) -> list[str]:
    """Return the lines of one frame.

    Args:
        width: columns of the terminal.
        source: what was read, for the first line.
    """
    head = f"{time.strftime('%H:%M:%S', time.localtime(snapshot.time))}  {source}, {len(snapshot.cards)} card(s)"
    cards = text_table.lines(CARDS, [_row(each) for each in snapshot.cards], width=width)
    return [head, *cards, *_processes(snapshot, width), *text_table.wrapped(LEGEND, width)]


def _row(now: CardSnapshot) -> list[str]:
    seen = now.sensors
    name = now.name if seen.state == "present" else f"{now.name} ({seen.state})"
    hot = seen.hottest
    used, total = seen.memory_used, seen.memory_total
    if now.card.integrated and (seen.shared_total or 0) > (total or 0):  # its memory is the processor's
        used, total = seen.shared_used, seen.shared_total
    return [
        name,
        _number(seen.load_percent),
        _of(used, total, scale=GIB, digits=1),
        _of(hot.degrees if hot else None, hot.limit if hot else None),
        _of(seen.power_w, seen.power_limit_w),
        _of(seen.core_mhz, seen.memory_mhz),
        _link(now),
        UNKNOWN if now.throttled is None else ", ".join(now.throttled) or "no",
    ]


def _link(now: CardSnapshot) -> str:
    link = now.sensors.link
    if link is None or (link.width is None and link.speed is None):
        return UNKNOWN
    return f"x{link.width or UNKNOWN} {link.speed or UNKNOWN}"


def _processes(snapshot: Snapshot, width: int) -> list[str]:
    places = {each.address: each.name.partition(" ")[0] for each in snapshot.cards}
    ranked = sorted(snapshot.processes, key=lambda each: -(each.memory or 0))
    rows = [_process(each, places) for each in ranked[:MOST_PROCESSES]]
    found = text_table.lines(PROCESSES, rows, width=width) if rows else ["no process on a card is seen"]
    more = len(ranked) - MOST_PROCESSES
    found += [f"and {more} more"] if more > 0 else []
    hidden = f"{snapshot.withheld} process(es) of other users cannot be looked into"
    return ["", *found, *(text_table.wrapped(hidden, width) if snapshot.withheld else ())]


def _process(each: ProcessSnapshot, places: dict[str, str]) -> Sequence[str]:
    memory = _of(each.memory, None, scale=GIB, digits=1)
    return [str(each.pid), places.get(each.address, each.address), memory, _number(each.load_percent), each.name]


def _number(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.0f}"


def _of(value: float | None, limit: float | None, *, scale: float = 1, digits: int = 0) -> str:
    """Return "7.5/20.0": a figure and what it is of, each as far as it is known."""
    shown: Iterable[str] = (UNKNOWN if each is None else f"{each / scale:.{digits}f}" for each in (value, limit))
    first, second = shown
    return first if limit is None else f"{first}/{second}"
