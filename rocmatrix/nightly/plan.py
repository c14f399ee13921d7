"""Plan of a night: its cells in order, each with the hash of its inputs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from rocmatrix.matrix.matrix import Cell, Matrix
from rocmatrix.runtime.errors import RocmatrixError, suggestion

Stage = Literal["build", "prove", "smoke", "promote"]
STAGES: tuple[Stage, ...] = ("build", "prove", "smoke", "promote")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The cells of a night in the order of building, with their inputs. `base` replaces their base images.

    A night on a `simulated` machine is another one than that of the same cells on this.
    """

    cells: tuple[str, ...]
    inputs: tuple[str, ...]
    base: str | None = None
    simulated: bool = False

    def encoded(self) -> str:
        """Return it as the journal keeps it; equal plans give equal text."""
        content = {"cells": dict(zip(self.cells, self.inputs, strict=True)), "base": self.base}
        return json.dumps(content | ({"simulated": True} if self.simulated else {}), sort_keys=True)


def choose(matrix: Matrix, selection: Sequence[str]) -> tuple[list[Cell], list[str]]:
    """Return the cells that `selection` names (cells or architectures; none: all), and what was left out, with reasons.

    A derived cell, or one with companions, is taken where it is named. Raises RM010 for an unknown name, RM631
    where no cell is left.
    """
    architectures = {cell.architecture for cell in matrix.cells if cell.architecture}
    names = [cell.name for cell in matrix.cells]
    others = [_named(matrix, word) for word in selection if word not in (*names, *architectures, "cpu")]
    selected = [
        c for c in matrix.cells if not selection or c.name in selection or (c.architecture or "cpu") in selection
    ]
    selected += {cell.name: cell for cell in others}.values()
    chosen = [cell for cell in selected if not cell.unlocked_because and not cell.broken_by]
    left_out = [f"{c.name}: {c.unlocked_because or c.broken_by[0].summary}" for c in selected if c not in chosen]
    if not chosen:
        raise RocmatrixError("RM631", what="no cell is left to build", why="\n".join(left_out))
    return in_order(chosen), left_out


def _named(matrix: Matrix, word: str) -> Cell:
    try:
        return matrix.cell(word)
    except RocmatrixError:
        architectures = [str(cell.architecture) for cell in matrix.cells if cell.architecture]
        hint = suggestion(word, [*matrix.cell_names, *architectures, "cpu"])
        raise RocmatrixError(
            "RM010", what=f"no cell or architecture is called {word!r}", where="--cells", next=hint
        ) from None


def in_order(cells: Iterable[Cell]) -> list[Cell]:
    """Return cells that share layers and wheels side by side: by base, then by release."""
    return sorted(cells, key=lambda cell: (cell.base.reference, cell.release.name, cell.name))


def waves(cells: Sequence[Cell], size: int) -> list[Sequence[Cell]]:
    """Return the cells in groups of at most `size`, which are built side by side."""
    return [cells[start : start + size] for start in range(0, len(cells), size)]
