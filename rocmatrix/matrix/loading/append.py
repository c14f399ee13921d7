"""Append a derived cell to matrix.yaml as text, so that comments and the order of the file stay."""

from __future__ import annotations

import json
from pathlib import Path

from rocmatrix.matrix.cells.cell import Cell
from rocmatrix.matrix.loading.load import MAIN_FILE
from rocmatrix.matrix.matrix import Matrix
from rocmatrix.runtime.errors import RocmatrixError

HEAD = "cells:\n"


def add(matrix: Matrix, cell: Cell, root: Path, *, today: str) -> None:
    """Append `cell` to the cells of matrix.yaml below `root`. Raises RM015 where it is written already.

    Args:
        root: folder of the checkout.
        today: date of the entry's evidence, such as 2026-11-22.
    """
    if cell.written:
        raise RocmatrixError("RM015", what=cell.name, where=MAIN_FILE)
    path = root / MAIN_FILE
    head, mark, cells = path.read_text(encoding="utf-8").partition(f"\n{HEAD}")
    lines = cells.splitlines(keepends=True)
    end = next((number for number, line in enumerate(lines) if line[0] not in " #\n-"), len(lines))
    body = "".join(lines[:end]).rstrip("\n") + "\n"
    path.write_text(head + mark + body + entry(matrix, cell, today=today) + "".join(lines[end:]), encoding="utf-8")


def entry(matrix: Matrix, cell: Cell, *, today: str) -> str:
    """Return the entry of a cell as the file has it.

    Args:
        today: date of the entry's evidence, such as 2026-11-22.
    """
    base = next(name for name, base in matrix.bases.items() if base == cell.base)
    lines = [
        f"  - release: {cell.release.name}",
        f"    architecture: {cell.architecture or 'null'}",
        f"    base: {base}",
        *(["    prune: true"] if cell.prune else []),
        f"    why: {cell.why}",
        "    evidence:",
        f"      sources: {json.dumps(['releases and rules of this file'])}",
        "      confidence: derived",
        f'      date: "{today}"',
    ]
    return "\n".join(lines) + "\n"
