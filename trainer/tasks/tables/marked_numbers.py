"""Columns whose numbers have commas, groups or signs: which are read as numbers, by which decimal mark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import polars as pl

from trainer.config.sections.table import TableConfig
from trainer.data.tables.encoding import MISSING, is_marked, parse_cells
from trainer.data.tables.number_marks import Decimal, currencies, decimal_mark, is_grouped, unit_of, without_unit
from trainer.runtime.events import say
from trainer.tasks.tables.row_policy import Reading

SHOWN = 4  # currencies of a column that are named
SAMPLE = 10_000  # cells by which a column of numbers is told from one of words
SIGNED = r"[$£¥₹₩₪₱฿]"  # of currencies that are written with commas between groups


def settle_marks(reading: Reading, names: Sequence[str], config: TableConfig) -> None:
    """Find the decimal mark of each column whose numbers are not written plainly, and report them.

    Of cells such as 73,121 the other columns of the file decide, then a currency's sign, then the separator of cells.
    Where nothing decides, the column stays as it is, and is refused later.

    Args:
        names: columns that may be inputs or the target.
    """
    words = [name for name in names if _may_be_words(reading, name, config)]
    found = {name: unit_of(_text(reading, name)) for name in words if not is_plain(reading, name)}
    reading.units |= {name: unit for name, unit in found.items() if unit}
    reading.decimals |= marks_of(reading, words)
    _report(reading)


def marks_of(reading: Reading, words: Sequence[str]) -> dict[str, Decimal]:
    """Return the decimal mark of each column whose numbers are not written plainly and whose mark is known.

    Of numbers that have a unit behind them but are plain otherwise it is the point.

    Args:
        words: columns of text that may be numbers.
    """
    texts = {name: _text(reading, name) for name in words if _is_marked(reading, name)}
    marks = {name: decimal_mark(text) for name, text in texts.items()}
    bare = {name for name in marks if not texts[name].str.contains("[.,]").any()}  # 12 % tells nothing of the others
    shown = {mark for name, mark in marks.items() if mark and name not in bare}
    usual: Decimal = shown.pop() if len(shown) == 1 else ""
    marks |= dict.fromkeys(bare, usual or ".")
    found = {name: mark or usual or _by_sign(texts[name], reading) for name, mark in marks.items() if mark is not None}
    if usual == ",":
        found |= {name: "," for name in words if name not in marks and is_grouped(_text(reading, name))}
    plain: dict[str, Decimal] = dict.fromkeys((name for name in words if name in reading.units), ".")
    return plain | {name: mark for name, mark in found.items() if mark}


def _may_be_words(reading: Reading, name: str, config: TableConfig) -> bool:
    """Return whether a column is text, and holds no names of classes or categories.

    Args:
        name: the column's name in the header.
    """
    if reading.cells.types[name] != pl.String or name in config.columns.categories:
        return False
    return not (name == config.target and config.task == "classification")


def _text(reading: Reading, name: str) -> pl.Series:
    """Return the cells of a column that hold something, without units; words for a missing value have no decimal mark.

    Args:
        name: the column's name in the header.
    """
    text = reading.cells.column(name).str.strip_chars()
    return without_unit(text.filter(~text.str.to_lowercase().is_in(MISSING)), reading.units.get(name, ""))


def _is_marked(reading: Reading, name: str) -> bool:
    """Return whether nearly all cells of the first rows are numbers, and some are not written plainly.

    Args:
        name: the column's name in the header.
    """
    return is_marked(parse_cells(_text(reading, name).head(SAMPLE)))


def is_plain(reading: Reading, name: str) -> bool:
    """Return whether the first cell of a column is a plain number, as most are.

    Args:
        name: the column's name in the header.
    """
    first = _text(reading, name).head(1)
    return bool(first.cast(pl.Float64, strict=False).is_not_null().all())


def _by_sign(text: pl.Series, reading: Reading) -> Literal["", "."]:
    """Return a point where a sign or the separator of cells shows that commas stand between groups.

    Args:
        text: cells that hold something.
    """
    return "." if text.str.contains(SIGNED).all() or reading.cells.read.get("separator") == "," else ""


def _report(reading: Reading) -> None:
    found = {name: mark for name, mark in reading.decimals.items() if name not in reading.units}
    for mark, words in ((",", "with a comma for the point"), (".", "without their signs and commas")):
        names = [name for name, decimal in found.items() if decimal == mark]
        if names:
            say(f"table   read as numbers, {words}: {', '.join(names)} (--categories keeps words)")
    if reading.units:
        shown = ", ".join(f"{name} ({unit})" for name, unit in reading.units.items())
        say(f"table   read as numbers, without the unit behind them: {shown} (--categories keeps words)")
    for name in found:
        signs = currencies(_text(reading, name))
        if len(signs) > 1:
            what = (
                f"column {name!r} has amounts in several currencies, as {' and '.join(map(repr, signs[:SHOWN]))} state"
            )
            say(f"table   {what}; they are read as plain numbers, not converted: write one currency, or a column each")
