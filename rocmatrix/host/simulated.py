"""A simulated machine: a file tree with its sysfs and device nodes, on which programs do run.

A recording is looked at (`--sysfs`); a simulated machine is worked on. Whatever is built or run while the variable is
set is marked simulated: images by a label and a tag of their own, records by a mark. No level of a cell counts it.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from rocmatrix.host import hardware
from rocmatrix.host.hardware import Hardware
from rocmatrix.host.sysfs import DeviceNode
from rocmatrix.runtime.errors import RocmatrixError

VARIABLE = "ROCMATRIX_SIMULATED"  # the folder in which the machine's tree starts
PREFIX = "simulated-"  # of the tags and volumes that are made on such a machine


def root() -> Path | None:
    """Return where the simulated machine's tree starts, None on a real one."""
    named = os.environ.get(VARIABLE)
    return Path(named).resolve() if named else None


def prefix() -> str:
    """Return what tags begin with: nothing on a real machine."""
    return PREFIX if root() else ""


def here() -> Hardware:
    """Return this machine's hardware, or that of the simulated one, whose nodes are in its tree.

    Raises RM310 where the variable names no folder: an empty machine would be taken for one without a card.
    """
    tree = root()
    if tree is None:
        return hardware.detect()
    if not tree.is_dir():
        advice = f"Give {VARIABLE} the folder that stands for / of the machine, or unset it."
        raise RocmatrixError("RM310", what="there is no such folder", where=f"{VARIABLE}={tree}", next=advice)
    found = hardware.detect(tree)
    cards = tuple(replace(card, render=_placed(card.render, tree)) for card in found.cards)
    return replace(found, simulated=True, cards=cards, kfd=_placed(found.kfd, tree))


def _placed(node: DeviceNode | None, tree: Path) -> DeviceNode | None:
    return replace(node, place=f"{tree}{node.path}") if node else None
