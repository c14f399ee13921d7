"""Versions as people and pip spell them, as one number."""

from __future__ import annotations

import re

from rocmatrix.runtime.errors import RocmatrixError

_ROCM = re.compile(r"(?:rocm|hip)?[\s_=-]*v?\s*(\d+(?:\.\d+)*)", re.IGNORECASE)
_TORCH = re.compile(
    r"(?:py)?(?:torch)?[\s_=-]*v?\s*(\d+(?:\.\d+)*)(?:\s*\+\s*(?:rocm[\s-]?(\d+(?:\.\d+)*)|(cpu)))?", re.IGNORECASE
)
_PYTHON = re.compile(r"(?:c?python|cp|py)?[\s_=-]*v?\s*3(?:\.(\d+)(?:\.\d+)?|(\d{1,2}))(t?)", re.IGNORECASE)


def rocm(text: str) -> str:
    """Return the number of "ROCm 6.4" or "rocm-6.4"; any other text unchanged."""
    found = _ROCM.fullmatch(text.strip())
    return found[1] if found else text


def torch(text: str) -> tuple[str, str | None]:
    """Return the torch and the ROCm of "torch 2.8.0+rocm6.4", `cpu` for +cpu; None where no build is named."""
    found = _TORCH.fullmatch(text.strip())
    return (found[1], found[2] or (found[3] and "cpu")) if found else (text, None)


def python(text: str) -> str:
    """Return 3.12 for "py3.12", "cp312", "python 3.12.3" and "312"; any other text unchanged."""
    found = _PYTHON.fullmatch(text.strip())
    return f"3.{found[1] or found[2]}{found[3].lower()}" if found else text


def torch_and_rocm(torch_text: str, rocm_text: str) -> tuple[str | None, str | None]:
    """Return both axes, the ROCm of a torch's build where no other is named. Raises RM011 where the two differ.

    Args:
        torch_text: torch as given, "" for none.
        rocm_text: ROCm as given, "" for none.
    """
    (wanted, built), named = torch(torch_text), rocm(rocm_text)
    if built and named and built != named:
        what = f"torch {torch_text!r} is a build for {_words(built)}, and --rocm names {rocm_text!r}"
        raise RocmatrixError("RM011", what=what, next="leave out one of them")
    return wanted or None, named or built or None


def _words(built: str) -> str:
    return "the CPU" if built == "cpu" else f"ROCm {built}"
