"""One condition of a comparison, as people write it: `running_kernel not in dkms_kernels`, `shm_size less than 1G`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from rocmatrix.diagnosis.comparisons.typed import RELATIONS

_NAME = r"[a-z][a-z0-9_]*"
_RELATIONS = "|".join(sorted(RELATIONS, key=len, reverse=True))
_UNARY = re.compile(rf"({_NAME}) is (known|unknown)")
_BINARY = re.compile(rf"({_NAME}) ({_RELATIONS}) (\S(?:.*\S)?)")
_PARTS = re.compile(r"(.*\S) \((\d) parts?\)")


@dataclass(frozen=True, kw_only=True)
class Condition:
    """`left` is a value's name, `right` one or a text; `relation` is of typed.RELATIONS, or known and unknown.

    `parts` is how many numbers of a version are compared, None for all.
    """

    left: str
    relation: str
    right: str = ""
    parts: int | None = None


@cache
def parse(text: str) -> Condition:
    """Return a condition. Raises ValueError with what is wrong with it."""
    if unary := _UNARY.fullmatch(text):
        return Condition(left=unary[1], relation=unary[2])
    binary = _BINARY.fullmatch(text)
    if binary is None:
        raise ValueError(f"it is no `value relation value`; relations are known, unknown, {', '.join(RELATIONS)}")
    parts = _PARTS.fullmatch(binary[3])
    return Condition(
        left=binary[1],
        relation=binary[2],
        right=parts[1] if parts else binary[3],
        parts=int(parts[2]) if parts else None,
    )
