"""Versions as people and pip spell them, as one number."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from packaging.version import InvalidVersion, Version

_PYTHON_WITHIN = re.compile(r"(?<![\d.])3\.(\d{1,2})(?!\d|\w)")
# What stands behind the number is a package's revision, 7.1.1-1, or HIP's build, 6.3.42131-fa1d09cbd.
_ROCM = re.compile(r"(?:rocm|hip)?[\s_=-]*v?\s*(\d+(?:\.\d+)*)(?:-[0-9a-f]+)?", re.IGNORECASE)
_NUMBER = re.compile(r"\d+(?:\.\d+)*")
# Within other words a number counts where it is the only one: behind a word for ROCm, else the only one with a dot.
_NAMED = re.compile(r"(?:rocm|hip(?:[\s_-]?sdk)?|therock|amdgpu-install)[\s/_=:-]*v?(\d+(?:\.\d+)*)", re.IGNORECASE)
_NAMED_TORCH = re.compile(r"torch(?:[_\s-]?(?:release|rocm))?[\s/_=:-]*v?(\d+(?:\.\d+)+)", re.IGNORECASE)
_DOTTED = re.compile(r"(?<![\w.])v?(\d+(?:\.\d+)+)(?![\d.])")
_ANY_PATCH = re.compile(r"(?<=\d)\.(?:x\b|\*)", re.IGNORECASE)
_ANY_MINOR = re.compile(r"(?<![\d.])\d+\.(?:x\b|\*)", re.IGNORECASE)  # 6.x is a range, not 6.0
_SERIES = re.compile(r"(?:rocm|hip|(?:py)?torch)?[\s_=-]*v?\s*(\d{1,3})(?:\.(?:x|\*))?", re.IGNORECASE)
_RANGE = re.compile(r"[<>!~]=?\s*\d|\d\+(?!\w)|\bor\b")
_PACKAGE = re.compile(r"(?:\d+:)?(\d+(?:\.\d{1,4})*)(?:\.\d{5,})?[-~]\S+")  # 6.0.2.60002-115~22.04, 6.4.0-1.fc42
_ROCM_BUILD = re.compile(r"(\d+(?:\.\d+)+)\s*[-+_]\s*(rocm\d\S*)", re.IGNORECASE)
# Technology previews of TheRock's, without wheels that are recorded here. Source: ROCm/TheRock:RELEASES.md.
PREVIEWS = ("7.9", "7.10", "7.11", "7.12", "7.13")
_TORCH = re.compile(r"(?:(?:py)?torch)?[\s_=-]*v?\s*(\d+(?:\.\d+)*)(?:\s*(\+)\s*(\S+))?", re.IGNORECASE)
_PYTHON = re.compile(r"(?:c?python|cp|py)?[\s_=-]*v?\s*3(?:\.(\d+)(?:\.\d+)?|(\d{1,2}))(t?)", re.IGNORECASE)


def rocm(text: str) -> str:
    """Return the number of "ROCm 6.4", "rocm-6.4", "HIP SDK 6.2", "6.4.x", 7.14.0a20260601 or of a package's version.

    Any other text is unchanged, a range of versions among it.
    """
    bare = _ANY_PATCH.sub("", _ascii(text))
    if _ANY_MINOR.search(_ascii(text)):
        return text
    if found := _ROCM.fullmatch(bare) or _PACKAGE.fullmatch(bare):
        return found[1]
    return before_release(bare) or _only_number(bare, _NAMED) or text


def series(text: str) -> str | None:
    """Return the one number of "6", "6.x" and "ROCm 7.*", which name every version of it; None for any other text."""
    found = _SERIES.fullmatch(_ascii(text))
    return found[1] if found else None


def _ascii(text: str) -> str:
    """Return a text without space around it, with the digits of every script and width as 0 to 9."""
    one = unicodedata.normalize("NFKC", text.strip())
    return "".join(str(unicodedata.decimal(each)) if each.isdecimal() else each for each in one)


def before_release(text: str) -> str | None:
    """Return the release that a nightly, an alpha or a candidate is built before: 2.12.0 of 2.12.0.dev20260408.

    None for a release, and for what is no version.
    """
    try:
        version = Version(text)
    except InvalidVersion:
        return None
    return version.base_version if version.is_prerelease else None


def precedes(text: str, known: Iterable[str]) -> bool:
    """Return whether a version of 1 or later is older than all of these.

    Args:
        text: version as typed.
        known: versions that are recorded.
    """
    return bool(_NUMBER.fullmatch(text)) and Version("1") <= Version(text) < min(map(Version, known))


def _only_number(text: str, named: re.Pattern[str]) -> str | None:
    """Return the one number of a text that is not a range, None for none or several."""
    if _RANGE.search(text):
        return None
    found = set(named.findall(text)) or set(_DOTTED.findall(text))
    return found.pop() if len(found) == 1 else None


def line(text: str, lines: Iterable[str]) -> str:
    """Return the ROCm whose wheels serve a release: 6.4 for 6.4.2, 6.2 for 6.2.2 and 5.4.2 for 5.4.

    A patch release takes the newest of its minor version's lines that is no newer than itself, else the oldest. Any
    other text, and a minor version without wheels, is unchanged; so is a series of several lines: 6 is any ROCm 6.

    Args:
        text: number of a ROCm release.
        lines: ROCm versions that wheels are called by.
    """
    if not _NUMBER.fullmatch(text):
        return text
    minor, known = _minor(text), set(lines)
    if series(text) and sum(Version(name).major == minor[0] for name in known) > 1:
        return text
    own = sorted((name for name in known if _minor(name) == minor), key=Version)
    reached = [name for name in own if Version(name) <= Version(text)]
    return next(iter([*reached[-1:], *own]), text)


def _minor(number: str) -> tuple[int, ...]:
    return (*Version(number).release, 0)[:2]


def torch(text: str) -> str:
    """Return 2.8.0+rocm6.4 for "torch == 2.8.0+rocm6.4" or "2.8.0-rocm6.4", its build kept.

    Any other text is unchanged, a range of versions and a nightly build's among it.
    """
    bare = _ANY_PATCH.sub("", _ROCM_BUILD.sub(r"\1+\2", _ascii(text)))
    if _ANY_MINOR.search(_ascii(text)):
        return text
    if found := _TORCH.fullmatch(bare):
        return "".join(part.lower() for part in found.groups() if part)
    if "+" in bare or before_release(bare) or "cuda" in bare.lower():
        return text
    return _only_number(bare, _NAMED_TORCH) or text


def python(text: str) -> str:
    """Return 3.12 for "py3.12", "cp312", "python 3.12.3", "312" and "conda, 3.12"; any other text unchanged."""
    text = _ascii(text) if _PYTHON.fullmatch(_ascii(text)) else text
    if found := _PYTHON.fullmatch(text):
        return f"3.{found[1] or found[2]}{found[3].lower()}"
    within = set(_PYTHON_WITHIN.findall(text))
    return f"3.{within.pop()}" if len(within) == 1 and not _RANGE.search(text) else text
