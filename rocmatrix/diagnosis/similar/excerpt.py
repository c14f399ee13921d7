"""The part of a log that is compared with known failures: its end, and lines that report trouble."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from rocmatrix.diagnosis.log_prefixes import views

KEPT = 32 << 10  # bytes of the end
WHOLE = 25  # lines that are compared as they are
MOST = 60
LONGEST = 600
_TROUBLE = re.compile(
    r"(?i)error|fail|fatal|exception|abort|segfault|segmentation|killed|cannot|can't|could not|unable|not found|no such"
    r"|invalid|unsupported|not supported|denied|refused|timed? ?out|missing|undefined|unknown|warning|panic\b(?!=)"
)
# What people write of a failure that no line reports: "no GPU is found", "the second card stays idle", "black images".
_COMPLAINT = re.compile(
    r"(?i)\bnot\b|\bno (?!name!)[a-z]|n't\b|\b(?:never|none|nothing|hangs?|hung|stuck|wrong|slow(?:er)?|lacks?|still"
    r"|stays?|dies|died|black|blank|noise|garbage|broken|breaks|bad|without|instead of|crash\w*|freez\w*|frozen?"
    r"|ignor(?:es|ed)|corrupt\w*|artifacts?|mismatch\w*|stops|regress\w*|disappear\w*|unexpected|refuses|unusable|worked|nan"
    r"|too (?:old|new|small|large|long|few|many)|more than|less than)\b|\b0 (?:gpus?|devices?|cards?)\b"
)
_FLAGS = re.compile(r"(?<!\S)-[DWfm]\S+")  # -Werror=format, -Wno-unknown-pragmas: how a program was compiled
_ORDINARY = re.compile(r"(?m)^.{0,60}\b(?:INFO|DEBUG)\b.*$")


class End:
    """Passes the chunks of a log on, and keeps its last bytes."""

    def __init__(self) -> None:
        self.kept = b""

    def watched(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the chunks as they come."""
        for block in blocks:
            self.kept = block[-KEPT:] if len(block) >= KEPT else (self.kept + block)[-KEPT:]
            yield block


def excerpt(end: bytes, around: Iterable[str] = ()) -> str:
    """Return the lines to compare: all of a short log, of others those that report trouble, and the one before each.

    Args:
        end: the last bytes of the log.
        around: texts of the lines that signatures matched, which may stand before the end.
    """
    lines = [views(line[:LONGEST])[0].decode(errors="replace") for line in end.split(b"\n")]
    found = [line for line in lines if line.strip()]
    if len(found) > WHOLE:
        found = list(_troubled(found)) or found
    return "\n".join([*around, *found[-MOST:]])


def reports_trouble(text: str) -> bool:
    """Return whether a text has a word by which programs report trouble, or people describe it.

    What a program logs at the level of INFO or DEBUG is no person's description.
    """
    text = _FLAGS.sub("", text)
    return _TROUBLE.search(text) is not None or _COMPLAINT.search(_ORDINARY.sub("", text)) is not None


def _troubled(lines: list[str]) -> Iterator[str]:
    before, taken = "", True
    for line in lines:
        if _TROUBLE.search(line):
            yield from (line,) if taken else (before, line)
            taken = True
        else:
            before, taken = line, False
