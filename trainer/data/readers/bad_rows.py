"""Bad rows and their handling: refuse, drop or repair, counted either way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainer.config.choices import BadRowPolicy
from trainer.runtime.errors import TrainerError

SHOWN = 5  # lines of each kind that are named
FEW = 0.01  # of the rows, up to which the policy `few` leaves bad ones out
NO_ROW = ("words", "open_end", "cut_off")  # kinds that are no bad bar

KINDS = {
    "cells": ("RM513", "another number of cells than the header", "dropped: which cell is missing is unknown"),
    "time": ("RM513", "the time cannot be read, or never was (a clock put forward)", "dropped"),
    "zone": ("RM575", "an offset from UTC where other times have none, or the reverse", "read as written"),
    "missing": ("RM513", "a field is empty", "a price or VIX from the bar before, volume 0"),
    "number": ("RM513", "a cell is no number", "like an empty field"),
    "price": ("RM514", "a price or VIX is no finite number above zero", "like an empty field"),
    "volume": ("RM514", "the volume is no finite number of zero or more", "volume 0"),
    "range": ("RM514", "high is below low", "high and low exchanged"),
    "outside": ("RM514", "open or close is outside low to high", "low and high widened"),
    "duplicate": ("RM515", "a time stands twice", "the first one kept"),
    "unsorted": ("RM515", "a time is not later than the one before", "sorted; all bars are then held in memory"),
    "words": ("RM513", "the last line holds words alone", "dropped under every policy"),
    "open_end": ("RM516", "the last line has no line end", "taken under every policy where it has all cells"),
    "cut_off": ("RM516", "the file ends inside a line or inside its compressed data", "what is not whole is dropped"),
}

# Of kinds whose code holds for several causes: why, and the next step
CAUSES = {
    "gap": (
        "",
        "Name the zone of the file's times with --time-zone, such as UTC; if it is the right one, correct the line, or "
        "leave such rows out with --on-bad-row drop.",
    ),
    "price": (
        "returns are logarithms, which prices of zero and below do not have: oil on 2020-04-20, spreads, futures whose "
        "past was shifted down",
        "Correct a wrong price, or leave such bars out with --on-bad-row drop; of futures take a series that is "
        "adjusted by ratios.",
    ),
}


@dataclass(kw_only=True)
class BadRows:
    """The rows of one file that were not as they should be; `where` is the file, `unit` line or row."""

    policy: BadRowPolicy
    where: str
    unit: str = "line"
    dropped: dict[str, int] = field(default_factory=dict)
    repaired: dict[str, int] = field(default_factory=dict)
    first: dict[str, list[int]] = field(default_factory=dict)

    def note(self, kind: str, lines: NDArray[np.int64] | list[int], *, repaired: bool) -> None:
        """Count rows of a kind, and keep the first lines.

        Args:
            kind: name of the kind of bad row.
            lines: line numbers in the file, from 1.
            repaired: the rows were repaired, not dropped.
        """
        if len(lines):
            counts = self.repaired if repaired else self.dropped
            counts[kind] = counts.get(kind, 0) + len(lines)
            known = self.first.setdefault(kind, [])
            known += [int(line) for line in lines[: SHOWN - len(known)]]

    def few(self, rows: int) -> bool:
        """Return whether few enough of `rows` rows were dropped for the policy `few`."""
        return sum(count for kind, count in self.dropped.items() if kind not in NO_ROW) <= FEW * rows

    def refuse(self, kind: str, line: int, what: str, cause: str = "") -> TrainerError:
        """Return the error for a row under the policy `error`.

        Args:
            kind: name of the kind of bad row.
            line: line number in the file, from 1.
            what: what is wrong with the row.
            cause: of several that a kind has; its own name where it has one.
        """
        why, advice = CAUSES.get(cause or kind, ("", ""))
        return TrainerError(KINDS[kind][0], what=what, where=f"{self.where}, {self.unit} {line}", why=why, next=advice)

    def as_dict(self) -> dict[str, Any]:
        """Return policy and counts in JSON's types; empty counts mean that every row was sound."""
        return {"policy": self.policy, "dropped": self.dropped, "repaired": self.repaired, "first_lines": self.first}

    def summary(self) -> str:
        """Return one line a kind for a person, or nothing where every row was sound."""
        rows = [(kind, how, n) for how in ("dropped", "repaired") for kind, n in sorted(getattr(self, how).items())]
        return "\n".join(
            f"{self.where}: {n:,} {how}, {KINDS[kind][1]} (first: {self.unit} {', '.join(map(str, self.first[kind]))})"
            for kind, how, n in rows
        )
