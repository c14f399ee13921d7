"""Names of GPU instruction sets, and the numbers that the kernel reports for them.

The kernel's `gfx_target_version` is decimal MMmmss. LLVM's name writes the major version in decimal,
and minor version and stepping as one hexadecimal digit each (source: llvm-project,
clang/tools/amdgpu-arch/AMDGPUArchByKFD.cpp).
"""

from __future__ import annotations

import re

from pydantic_core import PydanticCustomError

NAME_PATTERN = r"^gfx([1-9]\d?)([0-9a-f])([0-9a-f])$"
ISA_PATTERN = r"^\d+\.\d+\.\d+$"
_NAME = re.compile(NAME_PATTERN)


def from_target_version(number: int) -> str:
    """Return the name for a `gfx_target_version`: 110000 is gfx1100, 90010 is gfx90a, 90402 is gfx942."""
    major, minor, step = number // 10000, number // 100 % 100, number % 100
    if not (0 < major < 100 and minor < 16 and step < 16):
        raise ValueError(f"{number} is not a gfx_target_version")
    return f"gfx{major}{minor:x}{step:x}"


def from_isa_version(version: str) -> str:
    """Return the name for a dotted form: 9.0.10 is gfx90a."""
    major, minor, step = (int(part) for part in version.split("."))
    return from_target_version(major * 10000 + minor * 100 + step)


def is_name(name: str) -> bool:
    """Return whether `name` has the form of a gfx name."""
    return _NAME.match(name) is not None


def checked(name: str) -> str:
    """Return `name` if it has the form of a gfx name; used as a validator of the matrix."""
    if not is_name(name):
        raise PydanticCustomError("gfx", "'{name}' is not a gfx name such as gfx1100", {"name": name})
    return name
