"""Compare an image's labels and settings with the cell that it is proved for."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from rocmatrix.containers import label_integrity
from rocmatrix.images import labels as image_labels
from rocmatrix.images import render
from rocmatrix.matrix.matrix import Cell
from rocmatrix.verify.finding import Check, Finding

NAME = "labels"
USER = "10001:10001"
DESCRIBING = "org.opencontainers.image."
OWN = "org.rocmatrix."
# What a build writes in addition to the recipe, each only where it is so.
OF_BUILDS = (
    image_labels.INPUTS, image_labels.FORCED, image_labels.BASE, image_labels.BASE_ID, image_labels.STAND_IN,
    image_labels.SIMULATED, image_labels.NIGHT, label_integrity.LABEL,
)  # fmt: skip


def check(labels: Mapping[str, str], *, user: str, cell: Cell, inherited: Mapping[str, Any] | None = None) -> Check:
    """Compare an image's labels and default user with the cell's.

    Programs act on labels (devcontainer.metadata gives mounts and commands), so one that neither the recipe nor the
    base writes is refused.

    Args:
        labels: labels of the image by name.
        user: the image's default user, as "uid:gid".
        inherited: labels of the base image by name; None where the engine does not hold it.
    """
    lock = render.requirements_lock(cell)
    expected = {
        "cell": cell.name,
        "torch": cell.release.torch,
        "rocm": cell.release.rocm or "none",
        "architecture": cell.architecture or "none",
        "lock": "unlocked" if cell.unlocked_because else hashlib.sha256(lock.encode()).hexdigest(),
    }
    if cell.companions:
        expected["companions"] = ",".join(cell.companions)
    wrong = [
        f"{name} is {found!r}, not {value!r}"
        for name, value in expected.items()
        if (found := labels.get(f"org.rocmatrix.{name}")) != value
    ]
    wrong += _other_origin(labels, cell)
    wrong += _foreign(labels, {f"{OWN}{name}" for name in expected}, inherited)
    if user != USER:
        wrong.append(f"the default user is {user!r}, not {USER!r}")
    finding = Finding(code="RM219", what="labels that say otherwise than the cell", places=tuple(wrong))
    return Check(name=NAME, summary=f"{len(expected)} labels and the user", findings=(finding,) if wrong else ())


def _other_origin(labels: Mapping[str, str], cell: Cell) -> Iterable[str]:
    """Yield what the labels of the image specification state of the base, where another is recorded."""
    name, _, digest = labels.get(image_labels.BASE, "").partition("@")
    expected = {
        image_labels.BASE_NAME: name or cell.base.image,
        image_labels.BASE_DIGEST: digest if name else cell.base.digest or "",
    }
    for key, value in expected.items():
        if labels.get(key, value) not in (value, ""):
            yield f"{key} is {labels[key]!r}, and the image was made from {value or 'a base of no known digest'}"


def _foreign(labels: Mapping[str, str], recipes: set[str], inherited: Mapping[str, Any] | None) -> Iterable[str]:
    """Yield labels of no recipe, build or base, and those that a build would have left out or written together."""
    for name, value in sorted(labels.items()):
        if name in OF_BUILDS:
            if not value:
                yield f"{name} is empty, and a build leaves such a label out"
        elif name not in recipes and not name.startswith(DESCRIBING) and (inherited or {}).get(name) != value:
            yield f"{name} is {value!r}, which neither the recipe nor its base writes"
    if labels.get(image_labels.BASE_ID) and not labels.get(image_labels.BASE):
        yield f"{image_labels.BASE_ID} is there without {image_labels.BASE}"
