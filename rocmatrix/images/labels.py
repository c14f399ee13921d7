"""The labels that every build writes into an image, and what they set it aside for.

They are read from the image, or from a container made of it, and never from the options of the command that runs it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rocmatrix.host import simulated

if TYPE_CHECKING:
    from rocmatrix.images.base import OtherBase

INPUTS = "org.rocmatrix.inputs"
FORCED = "org.rocmatrix.forced"
BASE = "org.rocmatrix.base"
BASE_ID = "org.rocmatrix.base.id"
LOCK = "org.rocmatrix.lock"
STAND_IN = "org.rocmatrix.stand-in"
SIMULATED = "org.rocmatrix.simulated"
NIGHT = "org.rocmatrix.night"
UNLOCKED = "unlocked"
STAND_IN_VARIABLE = "ROCMATRIX_STAND_IN"  # says in words what stands in for something real


def written(
    *, inputs: str, base: str | None = None, base_id: str | None = None, forced: Sequence[str] = ()
) -> dict[str, str]:
    """Return the labels of a build, without those that would be empty. `base` and its id are another base's.

    Args:
        inputs: input hash of the image.
        base: reference of another base; None for the cell's own.
        base_id: id of that base.
        forced: ids of the rules that were overridden.
    """
    stand_in = os.environ.get(STAND_IN_VARIABLE, "").replace("\n", " ")
    found = {INPUTS: inputs, FORCED: ",".join(forced), BASE: base, BASE_ID: base_id, STAND_IN: stand_in}
    found[SIMULATED] = "yes" if simulated.root() else None
    return {name: value for name, value in found.items() if value}


def of_build(inputs: str, *, other: OtherBase | None = None, forced: Sequence[str] = ()) -> dict[str, str]:
    """Return the labels of a build on `other`, None for the cell's own base.

    Args:
        inputs: input hash of the image.
        other: base in place of the cell's own; None for that.
        forced: ids of the rules that were overridden.
    """
    base, base_id = (other.name, other.id) if other else (None, None)
    return written(inputs=inputs, base=base, base_id=base_id, forced=forced)


def marks(labels: Mapping[str, str], *, own_digest: str | None) -> dict[str, bool]:
    """Return what an image with these labels is set aside for. `own_digest` is that of the cell's own base.

    The same base from a mirror is no other base.
    """
    base = labels.get(BASE)
    return {
        "stand-in": bool(labels.get(STAND_IN)),
        "simulated": bool(labels.get(SIMULATED)),
        "other-base": bool(base) and not is_own(str(base), own_digest),
        "unlocked": labels.get(LOCK) == UNLOCKED,
        "forced": bool(labels.get(FORCED)),
    }


def is_own(base: str, digest: str | None) -> bool:
    """Whether a base that is named by its digest is the one of `digest`."""
    return digest is not None and base.endswith(f"@{digest}")
