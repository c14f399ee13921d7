"""Processors that device code may be for, by LLVM: their numbers, and which of them are integrated.

What `matrix/architectures.yaml` has stands in `processors.json`, which `./invokew render` writes. The processors below
are LLVM's others: they are read in wheels, and no torch was built for them. Sources: llvm-project
llvm/include/llvm/BinaryFormat/ELF.h (EF_AMDGPU_MACH), llvm/docs/AMDGPUUsage.rst ("APU", and the generic processors with
the ones each runs on), Linux' amdgpu_discovery.c (AMD_IS_APU). gfx942 is discrete, for MI300X and MI300A share it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from rocmatrix.runtime.paths import PROCESSORS_TABLE

OTHERS: Mapping[int, str] = {
    0x28: "gfx801", 0x29: "gfx802", 0x2B: "gfx810", 0x2D: "gfx902", 0x2E: "gfx904", 0x31: "gfx909", 0x3C: "gfx805",
    0x42: "gfx1013", 0x50: "gfx1310", 0x5A: "gfx1251", 0x5D: "gfx1170",
}  # fmt: skip
OTHERS_GENERIC: Mapping[str, str] = {
    "gfx902": "gfx9-generic", "gfx904": "gfx9-generic", "gfx909": "gfx9-generic", "gfx1013": "gfx10-1-generic",
}  # fmt: skip
OTHERS_INTEGRATED = frozenset({"gfx1013", "gfx1154", "gfx1170", "gfx700", "gfx801", "gfx810", "gfx902", "gfx909"})
GENERIC_NUMBERS: Mapping[int, str] = {
    0x51: "gfx9-generic", 0x52: "gfx10-1-generic", 0x53: "gfx10-3-generic", 0x54: "gfx11-generic",
    0x59: "gfx12-generic", 0x5B: "gfx12-5-generic", 0x5F: "gfx9-4-generic",
}  # fmt: skip


def _joined(generic: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    kinds = dict.fromkeys(generic.values())
    return {kind: tuple(sorted(name for name, own in generic.items() if own == kind)) for kind in kinds}


_TABLE = json.loads(PROCESSORS_TABLE.read_text(encoding="utf-8"))
NUMBERS: Mapping[int, str] = {**{row["elf"]: row["name"] for row in _TABLE}, **OTHERS, **GENERIC_NUMBERS}
GENERIC: Mapping[str, tuple[str, ...]] = _joined(
    {**{row["name"]: row["generic"] for row in _TABLE if row["generic"]}, **OTHERS_GENERIC}
)
INTEGRATED = frozenset(row["name"] for row in _TABLE if row["integrated"]) | OTHERS_INTEGRATED
