"""Cells to numbers: decimal marks, thousands, and the letters for thousands and millions that exports write."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from trainer.data.readers.forms.marks import CURRENCY

NOTHING = ("", "-", "--", "null", "none", "n/a", "na")  # how exports write that there is no value
GROUPED = r"^[+-]?\d{1,3}(,\d{3})+(\.\d+)?[KMBTkmbt万萬만亿億억]?$"
SPACED = r"^[+-]?\d{1,3}([ '\u2019\u00a0\u202f]\d{3})+([.,]\d+)?$"  # groups as in Switzerland, France and SI
LETTERS = {"K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12, "万": 1e4, "萬": 1e4, "만": 1e4, "亿": 1e8, "億": 1e8, "억": 1e8}
SCALES = "[KMBTkmbt万萬만亿億억]"


def numbers_of(column: pl.Series, decimal: str) -> tuple[NDArray[Any], NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the numbers of a column (rows,), which cells are empty and which are no number."""
    if column.dtype in (pl.Categorical, pl.Enum):
        column = column.cast(pl.String)
    if column.dtype != pl.String:
        values = column.cast(pl.Float64, strict=False)
        return values.fill_null(np.nan).to_numpy().copy(), column.is_null().to_numpy(), np.zeros(len(column), np.bool_)
    text = column.str.strip_chars()
    values = _plain(text, decimal)
    empty = (text.is_null() | text.str.to_lowercase().is_in(NOTHING)).fill_null(True)
    odd = (values.is_null() & ~empty).to_numpy()
    if odd.any():
        values = values.fill_null(_written(text, decimal))
    wrong = values.is_null().to_numpy() & ~empty.to_numpy()
    return values.fill_null(np.nan).to_numpy().copy(), empty.to_numpy(), wrong


def _plain(text: pl.Series, decimal: str) -> pl.Series:
    if decimal == ",":
        text = text.str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True)
    return text.cast(pl.Float64, strict=False)


def _written(text: pl.Series, decimal: str) -> pl.Series:
    """Return numbers of cells such as 2,000.00, 2'000.00, $2000.00 and 0.05M, null for others."""
    text = text.str.replace(CURRENCY, "${1}")
    spaced = text.str.contains(SPACED).fill_null(False)
    text = text.str.replace_all(r"[ '\u2019\u00a0\u202f]", "").zip_with(spaced, text)
    grouped = text.str.contains(GROUPED).fill_null(False)
    text = text.str.replace_all(",", "", literal=True).zip_with(grouped, text) if decimal == "." else text
    letter = text.str.extract(rf"\d({SCALES})$").str.to_uppercase()
    scale = letter.replace_strict(LETTERS, default=1.0, return_dtype=pl.Float64)
    return _plain(text.str.replace(f"{SCALES}$", ""), decimal) * scale
