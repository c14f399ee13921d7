"""What a matrix must not say although every word of it is well-formed and leads somewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rocmatrix.matrix.matrix import Cell, Matrix

Mistake = tuple[tuple[str | int, ...], str]


def contradictions(matrix: Matrix) -> Iterator[Mistake]:
    """Yield (path, message) for cells that cannot be, and for recommendations that speak against themselves.

    Every reference of the matrix must lead somewhere: cells are resolved for it.
    """
    recommended: dict[str | None, str] = {}
    for index, cell in enumerate(matrix.cells):
        yield from ((("cells", index), message) for message in _impossible(cell))
        if cell.recommended and cell.architecture in recommended:
            first = recommended[cell.architecture]
            yield ("cells", index, "recommended"), f"{first} is the recommended cell of {cell.architecture} already"
        if cell.recommended:
            recommended.setdefault(cell.architecture, cell.name)


def _impossible(cell: Cell) -> Iterator[str]:
    if cell.python not in cell.release.pythons:
        built = ", ".join(cell.release.pythons)
        yield f"its base brings Python {cell.python}, but {cell.release.name} was built for {built}"
    if cell.recommended and cell.broken_by:
        yield f"it is recommended, but rule {cell.broken_by[0].id} calls it broken"
    for name, times in Counter(variable.name for variable in cell.environment).items():
        if times > 1:
            yield f"{name} is set {times} times for it"
