"""Result of a reader: code for one target, its size, and the evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rocmatrix.verify.devicecode.target import Target

Evidence = Literal["ELF flags", "bundle entry ID", "archive contents", "file name"]


@dataclass(frozen=True, kw_only=True)
class CodeObject:
    """Device code for one target. `size` is in bytes as it is loaded; a file may hold it compressed."""

    target: Target
    size: int
    evidence: Evidence
