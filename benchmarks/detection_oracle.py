"""Compare how cards are detected with AMD's rocm-bootstrap, on recorded trees: no card is needed.

    python -m pip install --no-deps --target FOLDER rocm-bootstrap==0.3.0
    python -m benchmarks.detection_oracle FOLDER TREE [TREE ...]

A TREE is a folder that holds a KFD topology (`topology/nodes` or `nodes`). Prints one row a tree; status 1 where a
difference has no reason that is known here.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rocmatrix.host.hardware import detect
from rocmatrix.host.sysfs import TOPOLOGY_FOLDERS, Files


def main(argv: Sequence[str]) -> int:
    """Compare every tree; return 1 where one differs without a known reason, or where nothing was compared."""
    sys.path.insert(0, argv[0])
    outside, places = (importlib.import_module(f"rocm_bootstrap.{name}") for name in ("detect", "_platform"))
    print("| tree | cards here | cards there | differences |\n| --- | --- | --- | --- |")
    rows = [compared(Path(tree), outside, places) for tree in argv[1:]]
    for name, ours, theirs, differences in rows:
        print(f"| {name} | {ours} | {theirs} | {'; '.join(differences) or 'none'} |")
    unexplained = [words for *_, differences in rows for words in differences if words.startswith("NOT EXPLAINED")]
    return 1 if unexplained or not any(ours for _, ours, *_ in rows) else 0


def compared(tree: Path, outside: Any, places: Any) -> tuple[str, int, int, list[str]]:
    """Return the tree's name, the number of cards on both sides, and their differences as text.

    Args:
        tree: folder that holds a topology.
        outside: module `rocm_bootstrap.detect`.
        places: module `rocm_bootstrap._platform`, whose folder is set to the tree's.
    """
    ours = {card.node: card.gfx for card in detect(tree).cards}
    files = Files(tree)
    folder = next((f"{top}/nodes" for top in TOPOLOGY_FOLDERS if files.numbers(f"{top}/nodes")), None)
    if folder is None:
        sys.exit(f"{tree} holds no topology")
    places.KFD_TOPOLOGY = tree / folder
    found = outside.detect_gpus()
    theirs = {gpu.node_id: gpu.target.name for gpu in found}
    records = {node: files.text(f"{folder}/{node}/properties") or "" for node in ours}
    order = [gpu.node_id for gpu in found]
    return tree.name, len(ours), len(theirs), _differences(ours, theirs, order=order, records=records)


def _differences(
    ours: dict[int, str | None], theirs: dict[int, str], *, order: list[int], records: dict[int, str]
) -> list[str]:
    found = []
    for node in sorted(node for node in {*ours, *theirs} if ours.get(node) != theirs.get(node)):
        record = records.get(node, "gfx_target_version")
        if "gfx_target_version" not in record and node not in theirs:
            found.append(f"node {node}: its kernel names no architecture; by its PCI device it is {ours[node]} here")
        elif "simd_count 0" in record.splitlines() and node not in theirs:
            found.append(f"node {node}: {ours[node]} with no unit that computes, a record made up for a test")
        else:
            found.append(f"NOT EXPLAINED: node {node} is {ours.get(node)} here and {theirs.get(node)} there")
    if order != sorted(order):
        found.append("order: nodes as text there (10 before 2), as numbers here and in ROCr")
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
