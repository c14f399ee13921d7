"""The GPU allocator's options: under which name this torch reads them, and whether its segments can grow."""

from __future__ import annotations

from rocmatrix.containers.settings import Environment
from rocmatrix.matrix.library import Allocator
from rocmatrix.matrix.matrix import Cell, Matrix
from rocmatrix.runtime.errors import RocmatrixError


def expandable_segments(matrix: Matrix, cell: Cell) -> Environment:
    """Return the variable that lets segments grow, under the name that counts first in the cell's torch.

    Off unless asked for: it is young on ROCm. Raises RM405 where the cell's torch does not have it, or where nothing
    is known of its allocator.
    """
    known = [row for row in matrix.libraries_of(cell).get("allocator", []) if isinstance(row, Allocator)]
    if not known or not known[0].expandable_segments:
        why = known[0].summary(cell.architecture) if known else "nothing is recorded of this torch's GPU allocator"
        what = f"--expandable-segments: {cell.name} does not have them"
        raise RocmatrixError("RM405", what=what, why=why)
    statement = known[0]
    return Environment(
        name=statement.variables[0],
        content="expandable_segments:True",
        reason=f"asked for with --expandable-segments; {statement.note}",
        source=", ".join(statement.evidence.sources),
    )
