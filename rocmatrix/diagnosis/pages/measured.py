"""How often the first answer is right, as a table for docs/failures.md, from what the benchmark measured."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

LATEST, FROZEN = "diagnose_cases.json", "diagnose_frozen.json"
RESULTS = "benchmarks/results"
# Each set of threads: the file that holds its figures, its name there, and what a reader has to know of it. What was
# measured of earlier sets before they were learned from is in FROZEN, too.
SETS = (
    (LATEST, "learn", "that signatures were written from: no measure of logs that are new"),
    (FROZEN, "fresh43 to fresh48", "of six areas, gathered by who read no signature, asked before one was written"),
    (FROZEN, "fresh49 and fresh50", "of two more areas, likewise"),
    (FROZEN, "fresh51 to fresh55", "of five more, likewise, asked after those 761 had been learned from"),
    (FROZEN, "fresh56 to fresh59", "of four more, likewise, asked after those 1,174"),
    (FROZEN, "fresh60 to fresh63", "of four more, likewise, asked after those 1,330"),
    (LATEST, "kept", "kept to measure with: of each other's areas by three"),
    (LATEST, "fresh29", "kept to measure with: of programs that users live with"),
    (LATEST, "fresh33", "kept to measure with: gathered by breadth"),
    (LATEST, "fresh34", "kept to measure with: gathered by breadth, later"),
    (LATEST, "fresh35", "kept to measure with: older threads of building and packaging"),
    (LATEST, "fresh36", "kept to measure with: the newest of these, by topics"),
)


def table(root: Path) -> str:
    """Return the rows of Markdown, a line each, without the table's head.

    Args:
        root: root of the checkout, whose benchmarks/results holds both files.

    Raises:
        KeyError: a set is in neither file.
    """
    measured = {file: _rows(root / RESULTS / file) for file in (LATEST, FROZEN)}
    return "\n".join(_row(measured[file][name], about) for file, name, about in SETS)


def _rows(path: Path) -> dict[str, Mapping[str, Any]]:
    return {row["set"]: row for row in json.loads(path.read_text(encoding="utf-8"))["rows"]}


def _row(row: Mapping[str, Any], about: str) -> str:
    keys = ("right_first_percent", "first_three_percent", "wrong_first_percent")
    figures = " | ".join(f"{math.floor(row[key] + 0.5)} %" for key in keys)
    return f"| {row['cases']} {about} | {figures} |"
