"""Which mark of a file of bars is the decimal one, and prices that are written in fractions of a point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from trainer.data.tables.number_marks import decimal_mark, is_grouped

CURRENCY = r"^([+-]?)\s*[$€£¥]\s*|\s*[$€£¥]$"  # Nasdaq's own pages write $187.15
POINT = r"\.\d*$"
# Bonds are quoted in halves and quarters of 1/32, as in 110'165 for 110 and 16.5/32, grains in eighths, as in 450-2
FRACTIONS = {
    "thirty-seconds": r"^\d{2,3}['’-]([0-2]\d|3[01])[0257+]?$",  # noqa: RUF001
    "eighths": r"^\d{2,4}['’-][0-7]$",  # noqa: RUF001
}


def decimal_of(prices: Sequence[pl.Series], volumes: Sequence[pl.Series], separator: str) -> str:
    """Return `,` where a file writes its numbers so, else `.`; the last mark of a cell is the decimal one.

    Where commas stand between the cells, too, a quoted 2,000 is two thousand: there a comma counts that no group of
    three digits follows, in two columns at least. Points that group digits, as in 124.080 next to a volume of 24.228
    and one of 980, are known by what no decimal point explains.

    Args:
        prices: cells of open, high, low and close, each (rows,).
        volumes: cells of the volume, (rows,); none where there is none.
        separator: the mark between cells.
    """
    prices, volumes = ([cells.drop_nulls().str.strip_chars() for cells in each] for each in (prices, volumes))
    prices = [cells.str.replace(CURRENCY, "${1}") for cells in prices]
    if separator == ",":
        found = [int(cells.str.contains(r",(\d{1,2}|\d{4,})$|\.\d{3},\d+$").sum()) for cells in prices]
        comma = sum(map(bool, found)) > 1 and not any(cells.str.contains(POINT).any() for cells in prices)
    else:
        commas, points = (sum(int(cells.str.contains(mark).sum()) for cells in prices) for mark in (r",\d*$", POINT))
        comma = commas > points
    return "," if comma or _points_group(prices, volumes) else "."


def _points_group(prices: Sequence[pl.Series], volumes: Sequence[pl.Series]) -> bool:
    """Return whether points stand between groups of digits: no price denies it, and a price or a volume shows it."""
    marks = {decimal_mark(cells) for cells in prices if len(cells)}
    pointed = any(cells.str.contains(".", literal=True).any() for cells in (*prices, *volumes))
    if not pointed or not marks <= {"", ","} | ({"."} if all(_bare(cells) for cells in prices) else set()):
        return False
    return "," in marks or any(decimal_mark(cells) == "," or _counts(cells) for cells in volumes)


def _bare(cells: pl.Series) -> bool:
    """Return whether no cell has a mark."""
    return not cells.str.contains("[.,]").any()


def _counts(cells: pl.Series) -> bool:
    """Return whether numbers are counts with points between their groups: 24.228 and 980, but never 4000."""
    bare = cells.filter(cells.str.contains(r"^\d+$"))
    return is_grouped(cells) and len(bare) > 0 and not bare.str.contains(r"\d{4}").any()


def fraction(prices: Mapping[str, pl.Series]) -> tuple[str, str, str] | None:
    """Return column, cell and kind of prices that are all written in fractions; None for other prices.

    Args:
        prices: cells by column, each (rows,).
    """
    texts = {name: cells.drop_nulls().str.strip_chars() for name, cells in prices.items() if cells.dtype == pl.String}
    texts = {name: cells.filter(cells != "") for name, cells in texts.items()}
    if len(texts) < len(prices) or not all(len(cells) for cells in texts.values()):
        return None
    for kind, pattern in FRACTIONS.items():
        if all(bool(cells.str.contains(pattern).all()) for cells in texts.values()):
            name = next(iter(texts))
            return name, str(texts[name][0]), kind
    return None
