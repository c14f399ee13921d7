"""The output of a run: JSON lines for programs on stdout, one progress line for people on stderr."""

from __future__ import annotations

import json
import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tqdm import tqdm

_ONE_AT_A_TIME = threading.Lock()


def emit(event: str, **fields: Any) -> None:
    """Print one JSON line to stdout at once, so that a reader at the other end of a pipe sees it live.

    Raises ValueError for NaN or infinity: they are not JSON, and every figure is checked before.
    """
    line = json.dumps({"event": event, **fields}, allow_nan=False) + "\n"
    with _ONE_AT_A_TIME:  # the thread that writes checkpoints speaks, too
        sys.stdout.write(line)
        sys.stdout.flush()


def say(text: str) -> None:
    """Print words for a person to stderr; half a surrogate pair, as a foreign file may hold, is printed escaped."""
    printable = text.encode(errors="backslashreplace").decode()
    sys.stderr.write(printable + "\n")  # at once: another process may write to the same place
    sys.stderr.flush()


def progress(epochs: int) -> tqdm[Any]:
    """Return the progress line over `epochs`; in a log file it moves every ten seconds instead of live."""
    from tqdm import tqdm

    live = sys.stderr.isatty()
    return tqdm(
        total=epochs,
        desc="train",
        file=sys.stderr,
        mininterval=0.1 if live else 10.0,
        dynamic_ncols=live,
        bar_format="{desc} {percentage:3.0f}% |{bar:20}| epoch {n_fmt}/{total_fmt}{postfix}, ETA {remaining}",
    )
