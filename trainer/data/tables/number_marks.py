"""Numbers as people write them in tables: 1.234,56 and $1,234.56 and 12 %, each column by one decimal mark."""

from __future__ import annotations

from typing import Literal

import polars as pl

Decimal = Literal["", ",", "."]

SPACES = "'\u2019 \u00a0\u202f"  # between groups of digits; none of them is ever a decimal mark
CODES = "EUR|USD|GBP|CHF|JPY|CNY|INR|AUD|CAD|NZD|SGD|HKD|KRW|BRL|MXN|ZAR|RUB|TRY|PLN|CZK|HUF|SEK|NOK|DKK|ILS|THB"
CURRENCY = rf"([A-Z]{{0,2}}\p{{Sc}}|{CODES}|Fr\.|Kč|kr\.?|zł|Rs\.?)"  # also US$ and R$
FRONT, BACK = rf"^([+-]?)\s*{CURRENCY}\s*", rf"\s*(%|{CURRENCY})$"
BEHIND = r"^(\d[\d.,'\u2019 \u00a0\u202f]*)-$"  # SAP writes -5.80 as 5.80-
MINUS = "\u2212"  # of typesetting, which spreadsheets of some languages write
UNIT = rf"^({CURRENCY}\s*)?[+-]?[\d.,]*\d(?P<unit>\s*[^\d\s.,][^\d]{{0,11}})$"
NEARLY, MOST_UNITS = 0.9, 3  # 12.5K and 3M have two
UNIT_GROUP = 3  # behind those of the currency
FEW_WORDS = 10  # up to which words such as 2 doors and 4 doors are as good as numbers
LOSS = r"^\(([^()]*\d[^()]*)\)$"  # (1,234) is how accounts write -1,234
NUMBERS = {
    ",": rf"^[+-]?(\d{{1,3}}([.{SPACES}]\d{{3}})+|\d+)(,\d+)?$",
    ".": rf"^[+-]?(\d{{1,3}}([,{SPACES}]\d{{3}})+|\d{{1,2}}(,\d\d)+,\d{{3}}|\d+)(\.\d+)?$",  # 12,34,567.5 in India
}
# What only one of the two marks explains: no group of three digits behind it, both marks in one number, 0 in front
EVIDENCE = {
    ",": r",(\d{1,2}|\d{4,})$|\.\d{3},\d|\.\d{3}\.\d{3}|\d{4,},\d|^[+-]?0\d*,\d",
    ".": r"\.(\d{1,2}|\d{4,})$|,\d{3}\.\d|,\d{3},\d{3}|\d{4,}\.\d|^[+-]?0\d*\.\d",
}


def bare(text: pl.Series) -> pl.Series:
    """Return cells without signs of currencies and per cent; a minus is in front, also where accounts have brackets."""
    text = text.str.strip_chars().str.replace_all(MINUS, "-", literal=True).str.replace(LOSS, "-${1}")
    return text.str.replace(FRONT, "${1}").str.replace(BACK, "").str.replace(BEHIND, "-${1}")


def units(text: pl.Series) -> list[str]:
    """Return what stands behind the number of nearly every cell, as kg in 72 kg; [] for cells of another form.

    Args:
        text: cells that hold something, (cells,).
    """
    behind = text.str.extract(UNIT, UNIT_GROUP).drop_nulls()
    found = sorted(behind.str.strip_chars().unique().to_list())
    return found if len(behind) > NEARLY * len(text) and len(found) <= MOST_UNITS else []


def unit_of(text: pl.Series) -> str:
    """Return the unit behind the numbers of more than a few different cells, as kg in 72 kg; "" for none, or several.

    Args:
        text: cells that hold something, (cells,).
    """
    found = units(text) if text.n_unique() > FEW_WORDS else []
    return found[0] if len(found) == 1 and not pl.Series(found).str.contains(BACK).any() else ""


def without_unit(text: pl.Series, unit: str) -> pl.Series:
    """Return cells without the unit behind their numbers.

    Args:
        text: cells without blanks around them, (rows,).
        unit: of the column; "" leaves the cells as they are.
    """
    return text.str.strip_suffix(unit).str.strip_chars_end() if unit else text


def currencies(text: pl.Series) -> list[str]:
    """Return the signs and codes of currencies in front of numbers and behind them, in their order.

    Args:
        text: cells that hold something, (cells,).
    """
    found = [text.str.extract(FRONT, 2), text.str.extract(rf"\s*{CURRENCY}$", 1)]
    return sorted(pl.concat(found).drop_nulls().unique().to_list())


def decimal_mark(text: pl.Series) -> Decimal | None:
    """Return the decimal mark that the cells of a column show, "" where either would do, None where both are shown.

    Args:
        text: cells that hold something, (cells,).
    """
    cells = bare(text)
    shown = {mark: bool(cells.str.contains(pattern).any()) for mark, pattern in EVIDENCE.items()}
    if all(shown.values()):
        return None
    if any(shown.values()):
        return "," if shown[","] else "."
    return "" if cells.str.contains("[.,]").any() else "."


def is_grouped(text: pl.Series) -> bool:
    """Return whether the points of a column may all be between groups of digits, as in 1.234; some cell has one.

    Args:
        text: cells that hold something, (cells,).
    """
    pointed = text.filter(text.str.contains(".", literal=True))
    return len(pointed) > 0 and bool(pointed.str.contains(r"^[+-]?[1-9]\d{0,2}(\.\d{3})+$").all())


def numbers(text: pl.Series, decimal: Literal[",", "."]) -> pl.Series:
    """Return the numbers of cells that are written with a decimal mark, null for others.

    Args:
        text: cells, (rows,).
        decimal: the decimal mark.
    """
    cells = bare(text)
    group = "." if decimal == "," else ","
    plain = cells.str.replace_all(f"[{SPACES}{group}]", "").str.replace(decimal, ".", literal=True)
    known = cells.str.contains(NUMBERS[decimal]).fill_null(False)
    return plain.cast(pl.Float64, strict=False).zip_with(known, pl.Series([None], dtype=pl.Float64))
