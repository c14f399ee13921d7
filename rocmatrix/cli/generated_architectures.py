"""Tables of matrix/architectures.yaml: processors for the host, and for the trainer what it computes in and at most."""

from __future__ import annotations

import json
from typing import Any

from rocmatrix.matrix.architecture import Architecture
from rocmatrix.matrix.library import Attention
from rocmatrix.matrix.matrix import Matrix
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.paths import PROCESSORS_TABLE, ROOT, TRAINER_ARCHITECTURES


def files(matrix: Matrix) -> dict[str, str]:
    """Return both tables as {path: text}. Raises RM001 where two architectures have one number."""
    _require_own_numbers(matrix)
    rows = matrix.architectures.items()
    tables = {
        PROCESSORS_TABLE: [_processor(name, each) for name, each in rows],
        TRAINER_ARCHITECTURES: [_for_trainer(name, each, matrix.libraries.attention[-1]) for name, each in rows],
    }
    return {path.relative_to(ROOT).as_posix(): _lines(table) for path, table in tables.items()}


def _require_own_numbers(matrix: Matrix) -> None:
    owners: dict[int, list[str]] = {}
    for name, each in matrix.architectures.items():
        owners.setdefault(each.elf, []).append(name)
    shared = [f"{' and '.join(names)}: elf {number:#04x}" for number, names in owners.items() if len(names) > 1]
    if shared:
        raise RocmatrixError("RM001", what="\n".join(shared), where="matrix/architectures.yaml")


def _processor(name: str, each: Architecture) -> dict[str, Any]:
    return {"name": name, "elf": each.elf, "generic": each.generic, "integrated": each.integrated}


def _for_trainer(name: str, each: Architecture, attention: Attention) -> dict[str, Any]:
    """Return a row; `attention` is the newest statement: yes, flag (with the experimental flag) or no."""
    fused = "yes" if name in attention.supported else "flag" if name in attention.experimental else "no"
    return {
        "name": name,
        "autocast": each.autocast.model_dump() if each.autocast else None,
        "per_clock": each.per_clock,
        "integrated": each.integrated,
        "attention": fused,
        "memory_gib": each.memory_gib,
        "memory_bandwidth": each.memory_bandwidth,
        "peaks": [peak.model_dump() for peak in each.peaks],
    }


def _lines(rows: list[dict[str, Any]]) -> str:
    """Return a row a line, so that a change of one architecture is a change of one line."""
    return "[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]\n"
