"""The output of a run: JSON lines for programs on stdout, one progress line for people on stderr."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from tqdm import tqdm

WIDE = 110  # columns that bar, figures and ETA take
_ONE_AT_A_TIME = threading.Lock()


def emit(event: str, **fields: Any) -> None:
    """Print one JSON line to stdout at once, so that a reader at the other end of a pipe sees it live.

    Raises ValueError for NaN or infinity: they are not JSON, and every figure is checked before.
    """
    line = json.dumps({"event": event, **fields}, allow_nan=False) + "\n"
    with _ONE_AT_A_TIME, _apart_from_progress(sys.stdout):  # the thread that writes checkpoints emits, too
        sys.stdout.write(line)
        sys.stdout.flush()


def say(text: str) -> None:
    """Print words for a person to stderr; half a surrogate pair, as a foreign file may hold, is printed escaped."""
    printable = text.encode(errors="backslashreplace").decode()
    try:
        with _apart_from_progress(sys.stderr):
            sys.stderr.write(printable + "\n")  # at once: another process may write to the same place
            sys.stderr.flush()
    except BrokenPipeError:
        raise
    except OSError:  # a full disk: lines are lost, the work is not
        with contextlib.suppress(OSError, ValueError):  # Python flushes it at its end, too
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


@contextlib.contextmanager
def _apart_from_progress(stream: TextIO) -> Iterator[None]:
    """Take the progress line off the terminal while a line is written to it, and draw it again below."""
    loaded = sys.modules.get("tqdm")
    if loaded is None or not stream.isatty():
        yield
        return
    with loaded.tqdm.external_write_mode(file=stream):
        yield


class LogLines:
    """A stream for a progress line that ends up in a log: each state of the line is a line of its own."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.encoding = getattr(stream, "encoding", None)  # by which tqdm decides how it draws the bar

    def write(self, text: str) -> None:
        """Write a state of the progress line; the carriage return that begins it and its padding are left out."""
        if line := text.strip():
            self.stream.write(line + "\n")

    def flush(self) -> None:
        """Flush the stream."""
        self.stream.flush()


def progress_line(stream: TextIO, **look: Any) -> tqdm[Any]:
    """Return a progress line: on a terminal it is drawn in place, in a log it is a new line every ten seconds.

    Args:
        stream: where it is written.
        look: further keywords of tqdm, such as total and desc.
    """
    from tqdm import tqdm

    if stream.isatty():
        return tqdm(file=stream, mininterval=0.1, dynamic_ncols=True, **look)
    # maxinterval: tqdm's monitor would write sooner than every ten seconds
    return tqdm(file=LogLines(stream), mininterval=10.0, maxinterval=60.0, **look)


def progress(epochs: int) -> tqdm[Any]:
    """Return the progress line over `epochs` on standard error."""
    return progress_line(sys.stderr, total=epochs, desc="train", bar_format=progress_shape(_columns(sys.stderr)))


def progress_shape(columns: int | None) -> str:
    """Return the parts of the progress line; a narrow terminal, which cuts its end, has neither bar nor ETA there.

    Args:
        columns: of the terminal; None for a log.
    """
    if columns is not None and columns < WIDE:
        return "{desc} {percentage:3.0f}% epoch {n_fmt}/{total_fmt}, ETA {remaining}{postfix}"
    return "{desc} {percentage:3.0f}% |{bar:20}| epoch {n_fmt}/{total_fmt}{postfix}, ETA {remaining}"


def _columns(stream: TextIO) -> int | None:
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except (OSError, ValueError, AttributeError):  # a log, or a stream of a test
        return None
