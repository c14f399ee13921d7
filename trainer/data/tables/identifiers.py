"""Columns that number or name the rows, or hold free text: nothing that holds for other rows is learned from them."""

from __future__ import annotations

import re

import numpy as np
import polars as pl

from trainer.data.tables.encoding import MOST_CATEGORIES, Flags, Parsed

FEWEST_ROWS = 20  # fewer differ by chance
FEW_WORDS = 20  # are categories, however few the rows
ROWS_A_WORD = 2  # on average, below which words are names or free text
LAST_WORDS = frozenset({"id", "identifier", "uuid", "guid", "rowid"})
WHOLE_NAMES = frozenset({"index", "row", "row number", "unnamed 0", "index level 0", "level 0"})  # pandas has four
NAMELESS = "column 1"  # as the reader calls a first column without a name; Column1 and column_1 are a file's own


def is_identifier(name: str, cells: Parsed, kept: Flags) -> bool:
    """Return whether a column is called like an identifier and has another whole number or word in every row.

    Args:
        name: the column's name in the header.
        kept: True for rows that are used, (rows,).
    """
    rows = int(kept.sum())
    if rows < FEWEST_ROWS or (cells.missing & kept).any() or not called_identifier(name):
        return False
    if not cells.wrong.any() and not (cells.number[kept] == np.floor(cells.number[kept])).all():
        return False
    return cells.text.filter(kept).n_unique() == rows


def unique_words(cells: Parsed, kept: Flags) -> pl.Series | None:
    """Return the different words of a column that has too many of them for categories, None for other columns.

    Args:
        cells: of a column of words.
        kept: True for rows that are used, (rows,).
    """
    known = kept & ~cells.missing
    words = cells.text.filter(pl.Series(known)).unique()
    most = max(FEW_WORDS, min(MOST_CATEGORIES, int(known.sum()) // ROWS_A_WORD))
    return words if len(words) > most else None


def called_identifier(name: str) -> bool:
    """Return whether a name ends in the word id, as PassengerId and customer_id do, or is that of a row's number."""
    words = [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+", name)]
    if not words:  # of letters of another alphabet nothing is known
        return not name.strip()
    return name == NAMELESS or " ".join(words) in WHOLE_NAMES or words[-1] in LAST_WORDS
