"""Many cells in one build: a bake file for buildx, in which BuildKit makes every layer that cells share once.

Targets become candidates, `rocmatrix:night-<cell>`: the tag that people use moves only after the smoke suite.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rocmatrix.containers.label_integrity import EPOCH
from rocmatrix.host import simulated
from rocmatrix.images import build, buildkit
from rocmatrix.images import labels as image_labels
from rocmatrix.images.disk_space import Room
from rocmatrix.images.labels import OtherBase
from rocmatrix.matrix.matrix import Cell
from rocmatrix.runtime.errors import RocmatrixError

# Newer buildx asks before it reads a folder outside the working one; all of these are named in a file of ours.
ENVIRONMENT = {"BUILDX_BAKE_ENTITLEMENTS_FS": "0"}
COMMON = "_cell"


def candidate(cell: Cell) -> str:
    """Return the tag under which a night builds a cell."""
    return f"rocmatrix:night-{simulated.prefix()}{cell.image_name}"


def target(cell: Cell) -> str:
    """Return the cell's name as buildx takes it: without dots."""
    return cell.image_name.replace(".", "_")


def bake_file(
    cells: Sequence[Cell],
    *,
    root: Path,
    wheelhouses: Mapping[str, Path],
    night: str,
    base: str | None = None,
    base_id: str | None = None,
    describes: frozenset[str] = frozenset(),
) -> dict[str, Any]:
    """Return the bake file of `cells`, ready for JSON.

    Raises RM631 where two names are one to buildx, RM101 for a cell that is not rendered.

    Args:
        cells: cells to build, each a target and all of them one group.
        root: root of the checkout, where rendered files and the trainer are.
        wheelhouses: folder of the wheels, by name of the cell.
        night: name of the night, for a label of each image.
        base: image to use in place of every cell's base; None for their own.
        base_id: id of `base`, which labels hold and inputs count; None where it is not known.
        describes: names of the labels that `base` carries.
    """
    names = [target(cell) for cell in cells]
    if len(set(names)) != len(names):
        raise RocmatrixError("RM631", what=f"these cells have the same name for buildx: {', '.join(sorted(names))}")
    dated = {"SOURCE_DATE_EPOCH": str(EPOCH)}
    common = {"output": [buildkit.OUTPUT], "args": dated, "labels": {image_labels.NIGHT: night}}
    other = OtherBase(name=base, id=base_id, describes=describes) if base else None
    targets = {target(c): _target(c, root=root, wheels=wheelhouses[c.name], base=other, night=night) for c in cells}
    return {"group": {"default": {"targets": names}}, "target": {COMMON: common, **targets}}


def _target(cell: Cell, *, root: Path, wheels: Path, base: OtherBase | None, night: str) -> dict[str, Any]:
    contexts = {"wheelhouse": str(wheels), "trainer": str(root / "trainer")}
    contexts |= {"pruner": str(build.PRUNER)} if cell.prune else {}
    contexts |= {"base": f"docker-image://{base.name}"} if base else {}
    inputs = build.input_hash(cell, root, base=base.counted if base else None)
    return {
        "inherits": [COMMON],
        "context": str(build.recipe(cell, root)),
        "contexts": contexts,
        "tags": [candidate(cell)],
        "labels": {
            **image_labels.describing(cell.base, root, base),
            **image_labels.of_build(inputs, other=base),
            image_labels.NIGHT: night,
        },
    }


def argv(file: Path, targets: Sequence[str] = (), *, builder: str | None = None) -> list[str]:
    """Return the command that builds targets of a bake file.

    Args:
        file: path of the bake file.
        targets: names of targets; empty for all of the default group.
        builder: name of a buildx builder; None for buildx's default.
    """
    own = [f"--builder={builder}"] if builder else []
    return ["docker", "buildx", "bake", *own, "--provenance=false", "--progress=plain", f"--file={file}", *targets]


def write(file: Path, content: Mapping[str, Any]) -> None:
    """Write a bake file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def run(command: Sequence[str], *, log: Path, watched: Room | None = None) -> None:
    """Run a bake; its whole output is kept in `log`. Raises RM202.

    Args:
        command: the whole command, see `argv`.
        log: file that is overwritten with the output.
    """
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    buildkit.run(command, log=log, watched=watched)
