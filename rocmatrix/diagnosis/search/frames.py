"""Packages named by the frames of a traceback: where an exception was raised, and the callers.

An exception's words seldom name the library; its frames do. Two packages in a row show between which of them an
interface does not fit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

MOST_LINES = 60  # lines before an exception that are read
LONGEST = 600  # bytes of a line that are read
_FRAME = re.compile(rb"File \\?[\"']?([^\"'\n]{1,400}?)\\?[\"']?, line \d")
_RAISED = re.compile(rb"\s*[\w.]*(?:Error|Exception|Exit|Interrupt|Iteration)(?::|\s*$)")
_STARTS = (b"Traceback (most recent call last)", b"During handling of the above", b"The above exception was")
# what stands before a package's folder: an environment, or a checkout that has the package's own name
_INSTALLED = re.compile(rb"(?:site|dist)-packages[/\\]{1,4}(\w{1,60})")
_CHECKOUT = re.compile(rb"[/\\](\w{1,60})[/\\]{1,4}\1[/\\]")
_PLUGIN = re.compile(rb"[/\\]custom_nodes[/\\]{1,4}([\w.-]{1,60})")


def packages(before: Sequence[bytes]) -> dict[str, str]:
    """Return `raised` and `caller`: the package of the last frame, and the last other one that called it.

    Either is absent where the frames do not name it, as in a user's own file.

    Args:
        before: lines before the exception's own, the newest last.
    """
    found = [_package(frame[1]) for frame in map(_FRAME.search, _newest(before)) if frame]
    named = [name for name in found if name]
    if not found or not named or found[-1] is None:
        return {}
    raised = named[-1]
    caller = next((name for name in reversed(named) if name != raised), None)
    return {"raised": raised, **({"caller": caller} if caller else {})}


def is_ignored(before: Sequence[bytes]) -> bool:
    """Return whether Python only reports an exception, as of a `__del__` when a program ends: nothing ends by it.

    Args:
        before: lines before the exception's own, the newest last.
    """
    lines = before[-MOST_LINES:]
    first = next((place for place in range(len(lines) - 1, 0, -1) if _STARTS[0] in lines[place]), None)
    if first is None or b"Exception ignored " not in lines[first - 1]:
        return False
    return not any(_RAISED.match(line) for line in lines[first + 1 :])  # the ignored one has ended: another follows


def _newest(before: Sequence[bytes]) -> list[bytes]:
    """Return the lines of the last traceback among the lines before an exception."""
    kept: list[bytes] = []
    for line in reversed(before[-MOST_LINES:]):
        if any(start in line for start in _STARTS):
            break
        kept.append(line[:LONGEST])
    return kept[::-1]


def _package(path: bytes) -> str | None:
    """Return the package that a file belongs to, or None for a file of no package."""
    for form in (_PLUGIN, _INSTALLED, _CHECKOUT):
        if match := form.search(path):
            return match[1].decode()
    return None
