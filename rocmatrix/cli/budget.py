"""Budgets of findings that were there before a check: counted per room in a JSON file, and only ever lowered."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol


class Place(Protocol):
    """One finding of a check; `str()` of it is the line that is printed."""

    @property
    def room(self) -> str:
        """The room that the finding counts for."""
        ...


def room_of(path: str) -> str:
    """Return the first two folders of a module, one folder of a document, or the name of a file in the root."""
    *folders, name = path.split("/")
    return "/".join(folders[:2]) if folders else name


def judge(found: Sequence[Place], budget: dict[str, int], *, what: str, command: str) -> list[str]:
    """Return what is wrong, one line each: every place of a room over its budget, and every budget that is stale.

    Args:
        found: all findings, in the order in which they are printed.
        budget: allowed findings by room; a room that is not listed has 0.
        what: plural noun for the findings, such as "banned terms".
        command: command line that lowers a stale budget.
    """
    counts = Counter(place.room for place in found)
    wrong: list[str] = []
    for room in sorted(counts.keys() | budget.keys()):
        have, may = counts[room], budget.get(room, 0)
        if have > may:
            wrong.append(f"{room}: {have} {what}, budget {may}; the new ones are among:")
            wrong += [f"  {place}" for place in found if place.room == room]
        elif have < may:
            wrong.append(f"{room}: budget {may} is stale, {have} found; run {command} --shrink")
    return wrong


def shrunk(found: Sequence[Place], budget: dict[str, int]) -> dict[str, int]:
    """Return the budget with every count lowered to what is found; none grows, and a room without any is left out."""
    counts = Counter(place.room for place in found)
    return {room: lowest for room in sorted(budget) if (lowest := min(budget[room], counts[room]))}


def check(found: Sequence[Place], file: Path, *, shrink: bool, what: str, command: str) -> int:
    """Compare findings with the budget in `file` and print the result to standard error; return the exit status.

    Args:
        found: all findings, in the order in which they are printed.
        file: JSON object of room to count.
        shrink: lower the counts in `file` to what was found first.
        what: plural noun for the findings, such as "banned terms".
        command: command line of the check, named where a budget is stale.
    """
    budget: dict[str, int] = json.loads(file.read_text(encoding="utf-8"))
    if shrink:
        budget = shrunk(found, budget)
        file.write_text(json.dumps(budget, indent=2) + "\n", encoding="utf-8")
    wrong = judge(found, budget, what=what, command=command)
    print("\n".join(wrong) or f"{len(found)} old {what} left in {len(budget)} rooms", file=sys.stderr)
    return 1 if wrong else 0
