"""Standard streams that were closed by whoever started the program, opened on nothing."""

from __future__ import annotations

import os
import sys


def open_closed_streams() -> None:
    """Open closed ones of the descriptors 0 to 2 on the null device: the next file opened takes its number.

    Python's own streams of them, which are None then, write to nothing, too.
    """
    while (opened := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(opened, True)
    os.close(opened)
    sys.stdin = sys.stdin or open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
