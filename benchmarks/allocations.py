"""What of a recorded step was allocated at its largest moment, from the events of torch's allocator."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any


def at_peak(events: list[dict[str, Any]]) -> list[Any]:
    """Return [bytes, count, where] of what the step had allocated at its largest moment, largest first."""
    best = now = place = 0
    for number, event in enumerate(events):
        now += event["size"] * {"alloc": 1, "free_completed": -1}.get(event["action"], 0)
        if now > best:
            best, place = now, number
    live: dict[int, dict[str, Any]] = {}
    for event in events[: place + 1]:
        if event["action"] == "alloc":
            live[event["addr"]] = event
        elif event["action"] == "free_completed":
            live.pop(event["addr"], None)
    found = Counter((event["size"], where_of(event)) for event in live.values())
    listed = [[size, count, where] for (size, where), count in found.items()]
    return sorted(listed, key=lambda each: -each[0] * each[1])[:40]


def where_of(event: dict[str, Any]) -> str:
    """Return the first frames of an allocation that are of this repository."""
    frames = [f"{Path(each['filename']).stem}:{each['line']}" for each in event.get("frames", [])]
    own = [each for each, frame in zip(frames, event.get("frames", []), strict=True) if "trainer/" in frame["filename"]]
    return " < ".join((own or frames)[:3])
