"""Recordings of asciinema as the text that was on the screen: events of JSON, each with a piece of output."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

_HEADER = re.compile(rb'\{"version": ?[23],[^\n]{0,4000}"(?:width|term)"')


def is_recording(head: bytes) -> bool:
    """Return whether a file begins with the header of a recording.

    Args:
        head: its first bytes, as many as a line has.
    """
    return _HEADER.match(head) is not None


def played(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield what the recorded terminal printed; a line that is no event stays out.

    Args:
        blocks: the recording in chunks of whole lines.
    """
    for block in blocks:
        yield "".join(map(_printed, block.splitlines())).encode(errors="replace")


def _printed(line: bytes) -> str:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return ""
    is_output = isinstance(event, list) and len(event) == 3 and event[1] == "o" and isinstance(event[2], str)
    return event[2] if is_output else ""
