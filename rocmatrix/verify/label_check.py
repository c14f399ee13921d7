"""Compare an image's labels and settings with the cell that it is proved for."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from rocmatrix.images import render
from rocmatrix.matrix.matrix import Cell
from rocmatrix.verify.finding import Check, Finding

NAME = "labels"
USER = "10001:10001"


def check(labels: Mapping[str, str], *, user: str, cell: Cell) -> Check:
    """Compare an image's labels and default user with the cell's.

    Args:
        labels: labels of the image by name.
        user: the image's default user, as "uid:gid".
    """
    lock = render.requirements_lock(cell)
    expected = {
        "cell": cell.name,
        "torch": cell.release.torch,
        "rocm": cell.release.rocm or "none",
        "architecture": cell.architecture or "none",
        "lock": "unlocked" if cell.unlocked_because else hashlib.sha256(lock.encode()).hexdigest(),
    }
    wrong = [
        f"{name} is {found!r}, not {value!r}"
        for name, value in expected.items()
        if (found := labels.get(f"org.rocmatrix.{name}")) != value
    ]
    if user != USER:
        wrong.append(f"the default user is {user!r}, not {USER!r}")
    finding = Finding(code="RM219", what="labels that say otherwise than the cell", places=tuple(wrong))
    return Check(name=NAME, summary=f"{len(expected)} labels and the user", findings=(finding,) if wrong else ())
