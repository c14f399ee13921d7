"""Versions as people and pip spell them, as one number."""

from __future__ import annotations

import re

_ROCM = re.compile(r"(?:rocm|hip)?[\s_=-]*v?\s*(\d+(?:\.\d+)*)", re.IGNORECASE)
_TORCH = re.compile(r"(?:(?:py)?torch)?[\s_=-]*v?\s*(\d+(?:\.\d+)*)(?:\s*(\+)\s*(\S+))?", re.IGNORECASE)
_PYTHON = re.compile(r"(?:c?python|cp|py)?[\s_=-]*v?\s*3(?:\.(\d+)(?:\.\d+)?|(\d{1,2}))(t?)", re.IGNORECASE)


def rocm(text: str) -> str:
    """Return the number of "ROCm 6.4" or "rocm-6.4"; any other text unchanged."""
    found = _ROCM.fullmatch(text.strip())
    return found[1] if found else text


def torch(text: str) -> str:
    """Return 2.8.0+rocm6.4 for "torch == 2.8.0+rocm6.4", its build kept; any other text unchanged."""
    found = _TORCH.fullmatch(text.strip())
    return "".join(part.lower() for part in found.groups() if part) if found else text


def python(text: str) -> str:
    """Return 3.12 for "py3.12", "cp312", "python 3.12.3" and "312"; any other text unchanged."""
    found = _PYTHON.fullmatch(text.strip())
    return f"3.{found[1] or found[2]}{found[3].lower()}" if found else text
