"""A pasted screen: which lines are commands, and which lines a command printed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rocmatrix.diagnosis.log_prefixes import views

MOST_PRINTED = 400  # lines after a command that count as its output
LONGEST = 4000  # bytes of a line that are read
# what stands before a command: an environment's name, user, host and folder, and the sign of a shell or of Python
_PROMPT = re.compile(
    r"\s{0,8}`{0,3}(?:\([\w.+-]{1,40}\) ?)?(?:PS )?(?:\[[^\]]{1,80}\]|[\w.@:~/\\+,-]{0,90})(?: ~?[\w/.-]{0,60})?"
    r" ?(?:[$#%\u276f\u279c\u03bb\xbb>]|>>>) {0,3}(?P<command>[^\s#$>].{0,600})"
)
_BEFORE = re.compile(r"(?:(?:sudo|time|env)(?: -\w)? |[A-Z_]\w{1,60}=\S{0,200} )")  # of a command


def plain(line: bytes) -> str:
    """Return a line without colours and what programs put before it."""
    return views(line)[0].decode(errors="replace").strip("\r\n")


def command_of(line: str) -> str | None:
    """Return the command that a line of a screen was typed as, None for any other line."""
    found = _PROMPT.fullmatch(line.rstrip())
    return bare(found["command"]) if found else None


def bare(command: str) -> str:
    """Return a command without sudo, variables before it, and quotes of the text around it."""
    text = command.strip().strip("`").strip()
    while (before := _BEFORE.match(text)) is not None:
        text = text[before.end() :]
    return text


def line_at(block: bytes, start: int) -> bytes:
    """Return the line that begins at a place, without its end; of a long one its first `LONGEST` bytes."""
    end = block.find(b"\n", start, start + LONGEST)
    return block[start : end if end >= 0 else start + LONGEST]


def printed(block: bytes, start: int) -> Iterator[tuple[int, bytes]]:
    """Yield the lines from a place on with their places, up to the next command.

    Args:
        block: the text.
        start: where the line after the command begins.
    """
    for _ in range(MOST_PRINTED):
        if start >= len(block):
            return
        line = line_at(block, start)
        if command_of(plain(line)) is not None:
            return
        yield start, line
        start = block.find(b"\n", start) + 1 or len(block)
