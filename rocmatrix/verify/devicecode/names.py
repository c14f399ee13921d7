"""The target of a kernel library's file, read from its name.

The libraries find their files by these names, so a name decides what is used even where the bytes agree
with another. Sources: ROCm/rocm-systems shared/kpack/python/rocm_kpack/database_handlers.py (layouts of
all four); ROCm/MIOpen@2d1fd997 src/include/miopen/handle.hpp, GetDbBasename (the count of compute units:
`_36` up to 64, beyond that hexadecimal with nothing between); ROCm/aotriton python/gpu_targets.py (folders).
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from rocmatrix.host.processors import GENERIC, NUMBERS
from rocmatrix.verify.devicecode.target import Target, parse

TENSILE = ("rocblas", "hipblaslt", "hipsparselt")
_IN_NAME = re.compile(r"(?<![a-z0-9])gfx[0-9a-f]+(?:-strict)?(?:-(?:xnack|sramecc)[+-])*")
_IN_FOLDER = re.compile(r"amd-(?P<target>gfx[0-9a-f]+x{0,2})")
_COMPUTE_UNITS = re.compile(r"(?:_\d+|[0-9a-f]{2,3})?(?=[._]|$)")
_LONGEST_FIRST = sorted(set(NUMBERS.values()) - set(GENERIC), key=len, reverse=True)


def target_of(path: str) -> Target | None:
    """Return the target that the name of a kernel library's file gives; None where it is for all, or no such file."""
    parts = PurePosixPath(path).parts
    if "aotriton.images" in parts[:-1]:
        return _aotriton(parts)
    if parts[-3:-1] == ("miopen", "db"):
        return _miopen(parts[-1])
    if "library" in parts[:-1] and any(name in parts for name in TENSILE):
        return _tensile(parts)
    return None


def _tensile(parts: tuple[str, ...]) -> Target | None:
    """Newer layouts have a folder for each processor below `library`; in older ones the file's name ends in it."""
    below = parts[parts.index("library") + 1 :]
    for part in below[:-1]:
        if (target := parse(part)) is not None:
            return target
    found = _IN_NAME.findall(below[-1])
    return parse(found[-1]) if found else None


def _aotriton(parts: tuple[str, ...]) -> Target | None:
    folder = parts[parts.index("aotriton.images") + 1]
    match = _IN_FOLDER.fullmatch(folder)
    return parse(match["target"]) if match else None


def _miopen(name: str) -> Target | None:
    """A processor's name runs into the count of compute units: gfx90a68 is gfx90a with 104 of them."""
    for processor in _LONGEST_FIRST:
        if name.startswith(processor) and _COMPUTE_UNITS.match(name, len(processor)):
            return Target(processor=processor)
    return None
