"""Bars from CSV, Parquet and Arrow files, in chunks; every bad row is refused, dropped or repaired, and counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from trainer.config.choices import BadRowPolicy
from trainer.data.bar import NUMBERS, Bars, joined
from trainer.data.readers.arrow import is_columnar, open_columnar, read_columnar
from trainer.data.readers.bad_rows import BadRows
from trainer.data.readers.bar_checks import PRICES, Checker, Flags, RawRows
from trainer.data.readers.column_names import MIDNIGHT, Columns, with_epochs
from trainer.data.readers.csv_rows import Dialect, TextRows, find_dialect, read_text
from trainer.data.readers.forms.marks import fraction
from trainer.data.readers.forms.naming import NONE, plain
from trainer.data.readers.joined_series import ROLE, Join, Joining, Series, open_series, usual_step
from trainer.data.readers.numbers import numbers_of
from trainer.data.readers.timestamps import TimeFormat, falls, find_format, parse
from trainer.data.sessions import wall_clock
from trainer.runtime.errors import TrainerError

CHUNK = 100_000  # rows
FIRST_ROWS = 10_000  # that the usual step is taken of
INSTRUMENT = ("symbol", "ticker", "tic", "instrument", "contract", "code", "asset", "pair", "name")
EMPTY = Bars(date=np.zeros(0, "M8[s]"), **{name: np.zeros(0) for name in NUMBERS})


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How to read: rows at a time, the policy for bad rows, the zone of times without one, their format.

    columns: names or numbers of columns by role, where they were given. join: a second file, for the VIX.
    """

    chunk_size: int = CHUNK
    on_bad_row: BadRowPolicy = "error"
    zone: str = "America/New_York"
    time_format: str | None = None
    columns: tuple[tuple[str, str], ...] = ()
    join: Join | None = None


def columns_of(entries: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return role and column of entries such as date=NAME."""
    return tuple((role, name) for role, _, name in (entry.partition("=") for entry in entries))


@dataclass(kw_only=True)
class Source:
    """A file that was looked at; `chunks()` reads it from the beginning, and `bad` counts what it meets."""

    path: Path
    reading: Reading
    columns: Columns
    times: TimeFormat
    dialect: Dialect | None
    bad: BadRows
    newest_first: bool = False
    series: Series | None = None
    joining: Joining | None = None

    @property
    def zone(self) -> str | None:
        """The zone in which times are taken; None for days, which belong to none."""
        if self.times.days:
            return None
        if self.times.pattern.startswith("epoch"):
            return "UTC"
        return "in the data" if self.times.zoned else self.times.zone or self.reading.zone

    def as_dict(self) -> dict[str, Any]:
        """Return how the file was understood, in JSON's types."""
        written: dict[str, Any] = (
            {} if self.dialect is None else {"separator": self.dialect.separator, "decimal": self.dialect.decimal}
        )
        if self.dialect is not None and self.dialect.known_as:
            written["layout"] = self.dialect.known_as
        if self.dialect is not None and not self.dialect.encoding.startswith("utf"):
            written["encoding"] = self.dialect.encoding
        return {
            "columns": self.columns.used,
            "time_format": self.times.pattern,
            "time_zone": self.zone,
            **({"newest_first": True} if self.newest_first else {}),
            **written,
            "bad_rows": self.bad.as_dict(),
            **({} if self.joining is None else {"joined": self.joining.as_dict()}),
        }

    def chunks(self) -> Iterator[Bars]:
        """Yield the bars in order of time, at most `chunk_size` rows at a time.

        Under the policy `repair` the file is read twice: whether a row is out of order must be known before
        the first is handed out. Only then are all bars held and sorted.

        Raises:
            TrainerError: RM510 to RM516, RM575, for the first bad row under the policy `error`; RM581 for a bar
                without a joined value under the same policy of the join.
        """
        if self.series is None:
            yield from self._own_chunks()
            return
        self.joining = Joining(series=self.series, step=self._step())
        yield from (found for bars in self._own_chunks() if len(found := self.joining.of(bars, days=self.times.days)))

    def _step(self) -> np.timedelta64:
        """Return the usual step between the first bars, those of a fixed number of rows."""
        reading = replace(self.reading, chunk_size=FIRST_ROWS, on_bad_row="drop")
        scratch = replace(self, reading=reading, bad=replace(self.bad, policy="drop"), series=None)
        return usual_step(joined(list(islice(scratch.chunks(), 1)) or [EMPTY]).date)

    def _own_chunks(self) -> Iterator[Bars]:
        """Yield the bars of this file alone."""
        if self.bad.policy == "repair" and self._out_of_order():
            yield self._sorted()
            return
        yield from self._in_file_order(self._checker())

    def _checker(self) -> Checker:
        self.bad.dropped, self.bad.repaired, self.bad.first = {}, {}, {}
        return Checker(bad=self.bad)

    def _in_file_order(self, checker: Checker) -> Iterator[Bars]:
        yield from (bars for bars in map(checker.bars, self._rows(checker)) if len(bars))
        checker.finish()

    def _out_of_order(self) -> bool:
        checker = self._checker()
        return any(checker.unsorted for _ in self._in_file_order(checker)) or checker.unsorted

    def _sorted(self) -> Bars:
        bars = joined(list(self._in_file_order(self._checker())))
        order = np.argsort(bars.date, kind="stable")
        ordered = bars.at(order)
        again = np.concatenate([[False], ordered.date[1:] == ordered.date[:-1]])
        if again.any():
            self.bad.dropped["duplicate"] = self.bad.dropped.get("duplicate", 0) + int(again.sum())
            self.bad.first.setdefault("duplicate", [])
        return ordered.where(~again)

    def _rows(self, checker: Checker) -> Iterator[RawRows]:
        texts: Iterator[TextRows]
        if self.dialect is None:
            tables = read_columnar(self.path, self.reading.chunk_size)
            texts = (_table_rows(first, table, self.columns) for first, table in tables)
        else:
            texts = read_text(self.path, self.dialect, self.reading.chunk_size)
        texts = self._without_closing_words(texts)
        if self.newest_first:
            texts = (text.turned() for text in reversed(list(texts)))
        for text in texts:
            if text.cut_off:
                self._cut_off(text)
            if text.open_end:
                self.bad.note("open_end", [int(text.line.max())], repaired=True)
            if len(text.line):
                last = None if checker.last is None else checker.last.date[0]
                yield raw_rows(text, self, last)

    def _without_closing_words(self, texts: Iterator[TextRows]) -> Iterator[TextRows]:
        """Yield the rows without a last line of words alone, such as `Downloaded from ...`, which is counted."""
        before = next(texts, None)
        while before is not None:
            after = next(texts, None)
            if after is None and before.ends_with_remark():
                self.bad.note("words", before.line[-1:], repaired=False)
                before = before.without_last()
            yield before
            before = after

    def _cut_off(self, text: TextRows) -> None:
        what = "the file does not end with a line end, or its compressed data breaks off"
        if self.bad.policy in ("error", "few"):
            raise TrainerError("RM516", what=what, where=str(self.path))
        self.bad.note("cut_off", [int(text.line[-1]) + 1 if len(text.line) else 1], repaired=False)


def open_source(path: Path, reading: Reading) -> Source:
    """Look at the beginning of the file at `path`: separator, columns, how times are written.

    Raises:
        TrainerError: RM510 to RM513, RM574, where it cannot be understood.
    """
    dialect: Dialect | None = None
    own = {role: name for role, name in reading.columns if not (reading.join and role == ROLE)}
    wall_clock(np.zeros(1, "M8[s]"), reading.zone)  # an unknown zone is named even where no time needs one
    if is_columnar(path):
        columns, sample = open_columnar(path, own)
        where, unit = f"{path}, row 1", "row"
    else:
        dialect, text = find_dialect(path, own)
        columns, sample, unit = dialect.columns, text.table, "line"
        where = f"{path}, {unit} {text.line[0] if len(text.line) else dialect.header}"
    if not len(sample):
        cut = dialect is not None and text.cut_off
        raise TrainerError("RM516" if cut else "RM511", what="the file holds no whole bar", where=str(path))
    columns = with_epochs(columns, sample, own)
    stamps = time_text(sample, columns)
    _require_one_instrument(sample, columns, stamps, str(path))
    _require_volume(sample, columns, reading, str(path))
    _require_decimals(sample, columns, where)
    times = find_format(stamps, where, reading.time_format)
    if columns.zone is not None and not times.zoned and times.zone is None and not times.pattern.startswith("epoch"):
        times = replace(times, zone=columns.zone)
    bad = BadRows(policy=reading.on_bad_row, where=str(path), unit=unit)
    if reading.join and ROLE in columns.place:
        what = f"the bars have a column {columns.used[ROLE]!r} of their own, and --join brings another"
        raise TrainerError("RM500", what=what, where=str(path), next="Leave --join out.")
    series = open_series(reading.join) if reading.join else None
    source = Source(path=path, reading=reading, columns=columns, times=times, dialect=dialect, bad=bad, series=series)
    source.newest_first = falls(stamps, times)
    return source


def _require_one_instrument(sample: pl.DataFrame, columns: Columns, stamps: pl.Series, where: str) -> None:
    """Raise RM515 where one time stands at several instruments; contracts that follow each other may stay."""
    place = next((at for at, name in enumerate(columns.names) if plain(name) in INSTRUMENT), None)
    if place is None or place in columns.place.values():
        return
    pairs = pl.DataFrame({"time": stamps, "instrument": _text(sample[:, place])}).drop_nulls()
    found = pairs["instrument"].unique(maintain_order=True).to_list()
    if pairs.unique().height > pairs["time"].n_unique():
        named = ", ".join(found[:4]) + (" ..." if len(found) > 4 else "")
        what = f"column {columns.names[place]!r} names {len(found)} instruments with bars of one time: {named}"
        advice = "Write the rows of one instrument to a file of its own, as with `grep -E '^date|,NAME,' FILE > OTHER`."
        raise TrainerError("RM515", what=what, where=where, next=advice)


def _require_volume(sample: pl.DataFrame, columns: Columns, reading: Reading, where: str) -> None:
    """Raise RM512 where the column of volumes is empty throughout, unless empty cells are to be repaired."""
    if "volume" in columns.place and reading.on_bad_row in ("error", "few"):
        cells = sample[:, columns.place["volume"]]
        _, empty, _ = numbers_of(cells, ".")
        if empty.all():
            what = f"column {columns.used['volume']!r} is empty in the first {len(empty):,} rows"
            raise TrainerError(
                "RM512", what=what, where=where, next=f"State that there is none: --columns volume={NONE}."
            )


def _require_decimals(sample: pl.DataFrame, columns: Columns, where: str) -> None:
    """Raise RM513 for prices in fractions of a point, as of bonds and grains: 110'165 would be read as 110,165."""
    found = fraction({columns.used[role]: sample[:, columns.place[role]] for role in PRICES})
    if found is not None:
        name, cell, kind = found
        what = f"column {name!r} holds prices in {kind} of a point, such as {cell}"
        advice = "Export prices as decimal numbers: 110'165 is 110 + 16.5 / 32 = 110.515625, and 450-2 is 450 + 2 / 8. "
        advice += "Where the mark groups thousands, remove it."
        raise TrainerError("RM513", what=what, where=where, next=advice)


def _table_rows(first: int, table: pl.DataFrame, columns: Columns) -> TextRows:
    width = len(columns.names)
    return TextRows(line=first + np.arange(len(table)), table=table, cells=np.full(len(table), width), cut_off=False)


def time_text(table: pl.DataFrame, columns: Columns) -> pl.Series:
    """Return the times as text, day and time of day joined where they stand in two columns."""
    day = _text(table[:, columns.place["date"]])
    if columns.clock is None:
        return day
    day = day.str.strip_chars().str.replace(MIDNIGHT, "")  # as a spreadsheet writes days
    clock = _text(table[:, columns.clock]).str.strip_chars()
    return day + " " + (clock.str.zfill(columns.clock_digits) if columns.clock_digits else clock)


def _text(column: pl.Series) -> pl.Series:
    if isinstance(column.dtype, pl.Datetime):
        return column.dt.to_string("iso:strict")
    return column.cast(pl.String)


def raw_rows(text: TextRows, source: Source, previous: np.datetime64 | None) -> RawRows:
    """Return the rows of a chunk with what is wrong with each cell.

    Args:
        previous: instant of the last row before these; None for the first chunk.
    """
    columns = source.columns
    stamps = time_text(text.table, columns)
    times = parse(stamps, source.times, source.times.zone or source.reading.zone, previous)
    ragged = text.cells != len(columns.names)
    trouble: dict[str, Flags] = {"cells": ragged, "time": times.unreadable & ~ragged}
    trouble |= {"zone": times.mixed & ~ragged, "missing": np.zeros_like(ragged), "number": np.zeros_like(ragged)}
    shown: dict[str, dict[int, str]] = {kind: {} for kind in trouble}
    _show_cells(text, trouble, shown, stamps, len(columns.names))
    shown["gap"] = {row: _gap(stamps[row], source) for row in shown["time"] if _is_gap(stamps[row : row + 1], source)}
    decimal, scale = (source.dialect.decimal, source.dialect.scale) if source.dialect else (".", 1.0)
    values = {}
    for role in NUMBERS:
        if role in columns.place:
            column = text.table[:, columns.place[role]]
            values[role], empty, wrong = numbers_of(column, decimal)
            if role == "volume" and columns.more_volume is not None:
                more, none, odd = numbers_of(text.table[:, columns.more_volume], decimal)
                values[role], empty, wrong = values[role] + more, empty | none, wrong | odd
            if scale != 1.0 and role in PRICES:
                values[role] = np.round(values[role] * scale, 9)
            for row in np.flatnonzero(empty & ~trouble["missing"])[:1].tolist():
                shown["missing"].setdefault(row, f"{column[row] or ''!r} in column {role} is no number")
            for row in np.flatnonzero(wrong & ~trouble["number"])[:1].tolist():
                shown["number"].setdefault(row, f"{column[row]!r} in column {role} is no number")
            trouble["missing"] |= empty & ~ragged
            trouble["number"] |= wrong & ~ragged
    values.setdefault("volume", np.zeros(len(ragged)))
    return RawRows(line=text.line, date=times.at, values=values, trouble=trouble, shown=shown)


def _show_cells(
    text: TextRows, trouble: dict[str, Flags], shown: dict[str, dict[int, str]], stamps: pl.Series, width: int
) -> None:
    for row in np.flatnonzero(trouble["cells"])[:1].tolist():
        shown["cells"][row] = f"{text.cells[row]} cells where the header has {width}"
    for row in np.flatnonzero(trouble["time"])[:1].tolist():
        shown["time"][row] = f"{stamps[row] or ''!r} is no date as the others are, or no clock ever showed it"


def _is_gap(stamp: pl.Series, source: Source) -> bool:
    """Return whether one time is written as the others are, and only the zone has no such hour."""
    return not parse(stamp, source.times, "UTC", None).unreadable.any()


def _gap(stamp: str, source: Source) -> str:
    zone = source.times.zone or source.reading.zone
    return f"{stamp!r} never was in {zone}, as which such times are taken: clocks were put forward over it"
