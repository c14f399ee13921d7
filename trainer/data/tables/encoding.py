"""Columns of a table as numbers: kinds found from all rows, medians and categories from training rows alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from trainer.config.name_list import as_word
from trainer.data.bar import Floats
from trainer.data.readers.timestamps import find_format
from trainer.data.tables.number_marks import CURRENCY, Decimal, numbers, without_unit
from trainer.runtime.errors import TrainerError

# Words for a missing value, in any case; the later ones are those of pandas, of spreadsheets' errors, of SAS, dashes of
# typesetting, and those of the World Bank, SQL Server, MySQL (\N) and German offices
MISSING = (
    "", "na", "n/a", "nan", "null", "none", "?", "-", "--", "n.a.", ".", "<na>", "#n/a", "#na", "-nan", "1.#ind",
    "1.#qnan", "-1.#ind", "-1.#qnan", "#div/0!", "#value!", "#ref!", "#name?", "#num!", "#null!",
    "\u2013", "\u2014", "..", "...", "(null)", "\\n", "k.a.", "k. a.",
)  # fmt: skip
MOSTLY = 0.9  # share of numbers from which a column is taken for numbers with a few mistakes
# A number with groups of digits, a comma for its point, a currency sign or a per cent sign
SIGN = r"[+\u2212-]?\s*"
MARKED = rf"^\(?{SIGN}({CURRENCY}\s*)?{SIGN}"
MARKED += r"(\d{1,2}(,\d\d)+,\d{3}(\.\d+)?|"
MARKED += rf"\d{{1,3}}([.,'\u2019 \u00a0\u202f]\d{{3}})+([.,]\d+)?|\d+[.,]\d+|\d+)\s*(%|{CURRENCY})?-?\)?$"
DATED = r"^\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}\b"
MOST_CATEGORIES = 10_000
NAMED = "named in --categories"
LARGEST = float(np.finfo(np.float32).max)  # a network computes in 32 bits

Flags = NDArray[np.bool_]
Kind = Literal["number", "category"]


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of a table and what it becomes; all but its kind is known from training rows.

    A number that is missing becomes `fill`, and where training missed some, a further input is 1 (`indicator`).
    A category becomes its place in `categories` from 1, and 0 where it is not among them. decimal: the decimal mark of
    numbers that are not written plainly. unit: what stands behind each number, as kg in 72 kg.
    """

    name: str
    kind: Kind
    why: str
    categories: tuple[str, ...] = ()
    fill: float = 0.0
    indicator: bool = False
    decimal: Decimal = ""
    unit: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the column in JSON's types; a decimal mark and a unit only where there is one."""
        record = asdict(self) | {"categories": list(self.categories)}
        return {name: value for name, value in record.items() if name not in ("decimal", "unit") or value}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Column:
        """Return the column that `as_dict` described."""
        return cls(**(record | {"categories": tuple(record["categories"])}))


@dataclass(frozen=True, kw_only=True)
class Parsed:
    """A column's cells: `missing` (rows,), and `number` with NaN where missing or `wrong`; by which decimal mark."""

    column: pl.Series
    missing: Flags
    number: Floats
    wrong: Flags
    decimal: Decimal = ""
    unit: str = ""

    @cached_property
    def text(self) -> pl.Series:
        """The cells as text, (rows,); made when asked for, as numbers take several times their room as words."""
        return as_words(self.column) if self.column.dtype.is_numeric() else _stripped(self.column)

    @property
    def beyond(self) -> Flags:
        """Which wrong cells are infinite or too large for 32 bits, rather than words, (rows,)."""
        if self.column.dtype.is_numeric() or not self.wrong.any():
            return self.wrong
        return np.asarray(self.wrong & self.text.cast(pl.Float64, strict=False).is_not_null().to_numpy(), np.bool_)

    def repaired(self) -> Parsed:
        """Return the cells with those that are wrong as missing ones."""
        return replace(self, missing=self.missing | self.wrong, wrong=np.zeros_like(self.wrong))


def parse_cells(column: pl.Series, decimal: Decimal = "", words: Sequence[str] = MISSING, unit: str = "") -> Parsed:
    """Return the cells of a column as text and, where they are some, as numbers; spans of time are seconds.

    Args:
        column: cells, (rows,).
        decimal: decimal mark of numbers with groups and signs; "" for numbers that are written plainly.
        words: for a missing value, in lower case. Next to + a - is none: strands of DNA, and yes and no. Among words
            None is none: of None, Mild and Severe, or of kinds of garages.
        unit: what stands behind the numbers.
    """
    if column.dtype == pl.Duration:
        column = column.dt.total_microseconds() / 1e6
    elif column.dtype == pl.Time:
        column = column.cast(pl.Int64) / 1e9
    elif column.dtype.is_decimal():
        column = column.cast(pl.Float64)
    if column.dtype.is_numeric():
        number = column.cast(pl.Float64).fill_null(np.nan).to_numpy().copy()
        return _parsed(column, np.isnan(number), number)
    plain = column.cast(pl.Float64, strict=False) if column.dtype == pl.String and not decimal else None
    if plain is not None and not plain.null_count() and plain.is_between(-LARGEST, LARGEST).all():
        return _parsed(column, np.zeros(len(column), np.bool_), plain.to_numpy().copy())  # most columns, at a fifth
    text = _stripped(column)
    if (text == "+").any():
        words = [word for word in words if word != "-"]
    if not decimal and _is_none_a_word(text):
        words = [word for word in words if word != "none"]
    missing = (text.is_null() | text.str.to_lowercase().is_in(words).fill_null(True)).to_numpy()
    read = numbers(without_unit(text, unit), decimal) if decimal else text.cast(pl.Float64, strict=False)
    return replace(_parsed(column, missing, read.fill_null(np.nan).to_numpy().copy()), decimal=decimal, unit=unit)


def _is_none_a_word(text: pl.Series) -> bool:
    """Return whether the other cells of a column are words, most of them; pandas, R and SQL write no None for missing.

    Args:
        text: cells without blanks around them, (rows,).
    """
    lower = text.str.to_lowercase()
    if not (lower == "none").any():
        return False
    others = text.filter(~lower.is_in(MISSING))
    return bool(2 * others.cast(pl.Float64, strict=False).is_null().sum() > len(others))


def _stripped(column: pl.Series) -> pl.Series:
    return column.cast(pl.String).str.strip_chars()


def _parsed(column: pl.Series, missing: Flags, number: Floats) -> Parsed:
    wrong = ~(np.abs(number) <= LARGEST) & ~missing
    return Parsed(column=column, missing=missing, number=np.where(wrong, np.nan, number), wrong=wrong)


def fault(word: str) -> str:
    """Return what keeps the text of a cell from being used as a number, as the end of a sentence on it."""
    try:
        finite = np.isfinite(float(word))
    except ValueError:
        finite = False
    return f"is beyond the {LARGEST:.1e} that 32 bits hold" if finite else "is no finite number"


def as_words(column: pl.Series) -> pl.Series:
    """Return numbers as text, whole ones without a fraction, so that 3 and 3.0 are one category."""
    if column.dtype.is_integer():
        return column.cast(pl.String)
    whole = column.is_finite() & (column == column.floor()) & (column.abs() < 2**53)
    short, full = column.cast(pl.Int64, strict=False).cast(pl.String), column.cast(pl.String)
    return pl.select(pl.when(whole).then(short).otherwise(full)).to_series()


def is_marked(cells: Parsed) -> bool:
    """Return whether the cells that are no plain numbers are numbers nearly all, written as people do: 1,5 or 12 %."""
    words = cells.wrong & ~cells.beyond
    if not words.any():
        return False
    return int(cells.text.filter(pl.Series(words)).str.contains(MARKED).sum()) >= MOSTLY * int(words.sum())


def kind_of(name: str, cells: Parsed, named: Sequence[str]) -> tuple[Kind, str]:
    """Return what a column is taken for, and why.

    Args:
        name: the column\'s name in the header; in messages and metadata.json.
        named: columns that the configuration names as categorical.
    """
    if name in named:
        return "category", NAMED
    present = int((~cells.missing).sum())
    share = 1 - (cells.wrong & ~cells.beyond).sum() / present if present else 0.0
    if share == 1 and not cells.wrong.any():
        return "number", "every value is a number"
    if share >= MOSTLY:  # infinities and numbers too large are no words, however many
        return "number", f"{share:.1%} of the values are numbers"
    return "category", "values are words" if present else "no value is known"


def fit_column(name: str, kind: Kind, why: str, cells: Parsed, train: NDArray[np.int64]) -> Column:
    """Return the column as training rows alone show it.

    Args:
        name: the column\'s name in the header; in messages and metadata.json.
        why: reason for `kind`, kept in the metadata.
        train: numbers of the training rows, shape (rows,).

    Raises:
        TrainerError: RM582 for more words than MOST_CATEGORIES, which only a column that --categories names may have.
    """
    known = ~cells.missing[train]
    if kind == "number":
        fill = float(np.median(cells.number[train][known]))
        indicator = not known.all()
        number = Column(name=name, kind=kind, why=why, fill=fill, indicator=indicator)
        return replace(number, decimal=cells.decimal, unit=cells.unit)
    values = sorted(cells.text.gather(train[known]).unique().to_list())
    if len(values) > MOST_CATEGORIES:
        what = f"column {name!r} holds {len(values):,} different words in {int(known.sum()):,} training rows"
        advice = f"Leave it out with --ignore {as_word([name])}, or make at most {MOST_CATEGORIES:,} words of it."
        raise TrainerError("RM582", what=what, next=advice)
    return Column(name=name, kind=kind, why=why, categories=tuple(values))


def are_times(text: pl.Series) -> bool:
    """Return whether words read as times, and none of them as a number, which may be anything."""
    if text.cast(pl.Float64, strict=False).is_not_null().any():
        return False
    try:
        find_format(text.head(1000), "")
    except TrainerError:
        return False
    return True


def are_dated(text: pl.Series) -> bool:
    """Return whether most words look like dates, in whatever form, as 3/4/2014 and 2014-04-03 do."""
    return 2 * int(text.str.contains(DATED).sum()) > len(text)


def encode(column: Column, cells: Parsed) -> tuple[list[Floats], Flags]:
    """Return the inputs that a column becomes, (rows,) each, and the rows with a word that the training part lacks."""
    if column.kind == "number":
        missing = cells.missing | cells.wrong
        values = np.where(missing, column.fill, cells.number)
        more = [missing.astype(np.float64)] if column.indicator else []
        return [values, *more], np.zeros(len(values), np.bool_)
    codes = pl.Series(range(1, len(column.categories) + 1), dtype=pl.Float64)
    found = cells.text.replace_strict(pl.Series(column.categories), codes, default=0.0).to_numpy().copy()
    found[cells.missing] = 0.0
    return [found], (found == 0) & ~cells.missing


def features_of(column: Column) -> list[dict[str, Any]]:
    """Return name, formula and unit of each input that a column becomes."""
    base = {"lookback": None}
    if column.kind == "category":
        formula = f"place of the value of {column.name!r} among {len(column.categories)} known ones, 0: none of them"
        return [{"name": column.name, "formula": formula, "unit": "code", **base}]
    value = {"name": column.name, "formula": f"column {column.name!r}", "unit": "the column's own", **base}
    flag = {"name": f"{column.name} is missing", "formula": f"1 if {column.name!r} is missing, else 0", "unit": "flag"}
    return [value, {**flag, **base}] if column.indicator else [value]
