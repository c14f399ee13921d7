"""Versions as people and pip spell them, as one number."""

from __future__ import annotations

import re
from collections.abc import Iterable

from packaging.version import Version

# What stands behind the number is a package's revision, 7.1.1-1, or HIP's build, 6.3.42131-fa1d09cbd.
_ROCM = re.compile(r"(?:rocm|hip)?[\s_=-]*v?\s*(\d+(?:\.\d+)*)(?:-[0-9a-f]+)?", re.IGNORECASE)
_NUMBER = re.compile(r"\d+(?:\.\d+)*")
_TORCH = re.compile(r"(?:(?:py)?torch)?[\s_=-]*v?\s*(\d+(?:\.\d+)*)(?:\s*(\+)\s*(\S+))?", re.IGNORECASE)
_PYTHON = re.compile(r"(?:c?python|cp|py)?[\s_=-]*v?\s*3(?:\.(\d+)(?:\.\d+)?|(\d{1,2}))(t?)", re.IGNORECASE)


def rocm(text: str) -> str:
    """Return the number of "ROCm 6.4" or "rocm-6.4"; any other text unchanged."""
    found = _ROCM.fullmatch(text.strip())
    return found[1] if found else text


def line(text: str, lines: Iterable[str]) -> str:
    """Return the ROCm whose wheels serve a release: 6.4 for 6.4.2, 6.2 for 6.2.2 and 5.4.2 for 5.4.

    A patch release takes the newest of its minor version's lines that is no newer than itself, else the oldest. Any
    other text, and a minor version without wheels, is unchanged.

    Args:
        text: number of a ROCm release.
        lines: ROCm versions that wheels are called by.
    """
    if not _NUMBER.fullmatch(text):
        return text
    minor = _minor(text)
    own = sorted((name for name in set(lines) if _minor(name) == minor), key=Version)
    reached = [name for name in own if Version(name) <= Version(text)]
    return next(iter([*reached[-1:], *own]), text)


def _minor(number: str) -> tuple[int, ...]:
    return (*Version(number).release, 0)[:2]


def torch(text: str) -> str:
    """Return 2.8.0+rocm6.4 for "torch == 2.8.0+rocm6.4", its build kept; any other text unchanged."""
    found = _TORCH.fullmatch(text.strip())
    return "".join(part.lower() for part in found.groups() if part) if found else text


def python(text: str) -> str:
    """Return 3.12 for "py3.12", "cp312", "python 3.12.3" and "312"; any other text unchanged."""
    found = _PYTHON.fullmatch(text.strip())
    return f"3.{found[1] or found[2]}{found[3].lower()}" if found else text
