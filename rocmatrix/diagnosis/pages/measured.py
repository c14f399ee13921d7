"""How often the first answer is right, as a table for docs/failures.md, from what the benchmark measured."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

LATEST, FROZEN = "diagnose_cases.json", "diagnose_frozen.json"
RESULTS = "benchmarks/results"
# Each set of threads: the file that holds its figures, its name there, and what a reader has to know of it.
SETS = (
    (LATEST, "learn", "that signatures were written from: no measure of logs that are new"),
    (LATEST, "held_out", "set aside by a hash, read while gathering, not while writing"),
    (FROZEN, "fresh", "gathered after a first freeze; four were shown again while others were gathered"),
    (FROZEN, "fresh2", "gathered after a second freeze, before anything was written from them"),
    (FROZEN, "fresh3", "gathered after a third freeze, before anything was written from them"),
    (FROZEN, "fresh4", "gathered at a fourth freeze, before anything was written from them"),
    (FROZEN, "fresh5", "asked once at a fifth freeze, before any signature was written against it"),
    (FROZEN, "fresh6", "gathered by others, asked once at a sixth freeze"),
    (FROZEN, "fresh7", "gathered by others who read no signature, asked at a seventh freeze"),
    (FROZEN, "fresh8", "gathered by others who read no signature, asked at an eighth freeze"),
    (FROZEN, "aside", "put aside by the writer before 61 signatures were written, asked once after them"),
    (FROZEN, "fresh9", "gathered by others who read no signature, asked at a ninth freeze"),
    (FROZEN, "fresh10", "gathered by others who read no signature, asked at a tenth freeze"),
    (FROZEN, "fresh11", "gathered by the writer before the mends of an eleventh freeze, asked once"),
    (FROZEN, "fresh12", "gathered by the writer after those mends, asked once"),
    (FROZEN, "fresh13", "one half of 189 gathered at once, asked before anything was written from them"),
    (FROZEN, "fresh14", "the other half, asked once after what the first half taught; five misses learned from since"),
    (FROZEN, "fresh15", "one half of 44 gathered before a signature was read, asked once before the mends"),
    (FROZEN, "fresh16", "the other half, asked at once with it; three of its misses learned from since"),
    (FROZEN, "fresh17", "one half of 49 gathered by topics, asked before its signatures were read"),
    (FROZEN, "fresh18", "the other half, asked at the same time; what the first half taught changed no answer"),
    (FROZEN, "fresh19", "with lines as pasted, frozen before the program was asked; 16 of them learned from since"),
    (FROZEN, "fresh20", "by topics that were thin, as far as a search shows a thread; 22 of them learned from since"),
    (FROZEN, "fresh21", "of drivers, packages, containers and machines; half of them learned from since"),
    (FROZEN, "fresh22", "of frameworks and libraries, frozen before the signatures were read; all learned from since"),
    (FROZEN, "fresh22, later", "of the same topics, asked once after what those taught; learned from since"),
    (FROZEN, "kept, before", "gathered by three for each other's domain, asked before the mends of that day"),
    (LATEST, "kept", "the same, after them; never learned from"),
    (FROZEN, "fresh28", "of programs that users live with, two in five with a complaint; learned from since"),
    (FROZEN, "fresh29, before", "of the same programs, labelled by the writer, asked before what those taught"),
    (FROZEN, "fresh29, after", "the same, after it; never learned from"),
    (FROZEN, "fresh30, before", "by breadth, of areas taken little from, asked before the mends; learned from since"),
    (FROZEN, "fresh31, before", "by breadth, of frameworks, servers and libraries, likewise"),
    (FROZEN, "fresh32, before", "by breadth, of programs, asked in batches between the mends; learned from since"),
    (FROZEN, "fresh33, before", "gathered by one who read no signature, asked before what those 758 taught"),
    (FROZEN, "fresh33, after", "the same, after it; never learned from"),
    (FROZEN, "fresh34, before", "gathered by one who read no signature, asked before what sources taught"),
    (FROZEN, "fresh34, after", "the same, after it; never learned from"),
    (LATEST, "fresh34", "the same, after tables of names and similar failures; never learned from"),
    (FROZEN, "fresh35, before", "older threads of building and packaging, asked before these; never learned from"),
    (LATEST, "fresh35", "the same, after them"),
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
