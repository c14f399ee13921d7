"""A last line without a line end: whole, as many sites and programs write it, or cut off on the way.

investing.com, TradingView, Dukascopy, HistData and MetaTrader end their files so.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence

BEFORE = 20  # lines in front of the last one that show how a line ends
END = re.compile(r"(?:[.,](\d+))?([^\d.,]*)$")


def is_whole(lines: Sequence[str], separator: str, width: int) -> bool:
    """Return whether the last line has all cells and ends as the lines before it do.

    A last number that lost digits is seen where those before it all have the same number of decimals, or a unit or a
    quote behind them.

    Args:
        lines: the last lines of a file, of which the last one has no line end.
        separator: the mark between cells.
        width: number of the header's cells.
    """
    *before, last = [line.rstrip("\r") for line in lines[-BEFORE - 1 :]]
    known = [_end(line, separator) for line in before if _cells(line, separator) == width]
    if not known or _cells(last, separator) != width:
        return False
    decimals, unit = _end(last, separator)
    alike = {count for count, each in known if each == unit}
    return len(alike) > 1 or decimals in alike


def _cells(line: str, separator: str) -> int:
    return len(next(csv.reader([line], delimiter=separator, skipinitialspace=True), []))


def _end(line: str, separator: str) -> tuple[int, str]:
    """Return the number of decimals of a line's last cell, and what stands behind its last digit; a word is that."""
    found = END.search(line.rpartition(separator)[2])
    assert found is not None  # both parts may be empty
    return len(found[1] or ""), found[2]
