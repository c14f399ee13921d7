"""The cells of a text file of a few columns: its header may stand below a title, over three lines, or be missing."""

from __future__ import annotations

import io
from collections.abc import Collection

import polars as pl

from trainer.data.readers.forms.naming import plain
from trainer.data.readers.headers import DATED, PREAMBLE_LINES, SEPARATORS, is_yfinance


def plain_table(text: bytes, known: Collection[str]) -> pl.DataFrame:
    """Return the cells as text, by the header's names, or by `column_1` and so on where there is none.

    Args:
        text: the whole file in UTF-8.
        known: names of columns as they are compared, of which a header has one.

    Raises:
        polars.exceptions.PolarsError: where the text is no table.
    """
    lines = text.split(b"\n")
    first = [line.decode(errors="replace") for line in lines[:PREAMBLE_LINES]]
    begin = next((at for at, line in enumerate(first) if _begins(line, known)), 0)
    separator = max(SEPARATORS, key=first[begin].count)
    rows = [_cells(line, separator) for line in first[begin : begin + 3]]
    named = any(plain(cell) in known for cell in rows[0] if plain(cell))
    names, skipped = None, begin
    if named and len(rows) == 3 and is_yfinance(rows):
        names, skipped, named = ["Date", *rows[0][1:]], begin + 3, False
    elif not named:
        names = [f"column_{number}" for number in range(1, len(rows[0]) + 1)]  # as --columns counts them
    rest = io.BytesIO(b"\n".join(lines[skipped:]))
    return pl.read_csv(
        rest, separator=separator, has_header=named, new_columns=names, infer_schema=False, truncate_ragged_lines=True
    )


def _cells(line: str, separator: str) -> list[str]:
    return [cell.strip().strip('"') for cell in line.lstrip("\ufeff").strip().split(separator)]


def _begins(line: str, known: Collection[str]) -> bool:
    """Return whether a line is a header or a row of several cells.

    Args:
        known: names of columns as they are compared.
    """
    cells = _cells(line, max(SEPARATORS, key=line.count))
    return len(cells) > 1 and any(plain(cell) in known or DATED.fullmatch(cell) for cell in cells if cell)
