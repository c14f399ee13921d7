"""Rows to bars: every rule a bar must keep, and what the policy does where one is broken."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainer.data.bar import Bars, Dates, Floats
from trainer.data.readers.bad_rows import BadRows
from trainer.runtime.errors import TrainerError

LARGEST = 1e12  # of a price or a volume: beyond that sums stop being exact, and no market is
ROUNDING = 1e-6  # of a price; the smallest steps of markets are larger
EMPTY = ("missing", "price")  # kinds of rows without trades, which may be many
MOST = (
    "Most rows are bad, so columns or times are probably others than these: compare them with the file, and name them "
    "with --columns and --time-format; times that stand many times may lack their clock."
)
PRICES = ("open", "high", "low", "close")
Flags = NDArray[np.bool_]


@dataclass(kw_only=True)
class RawRows:
    """Rows as they were read. Numbers are NaN where `trouble` holds the reason; `values` (rows,) by column.

    trouble: by kind, which rows have it, in the order in which a row is judged. shown: the cell that is
    named when row i is refused, by kind.
    """

    line: NDArray[np.int64]
    date: Dates
    values: dict[str, Floats]
    trouble: dict[str, Flags]
    shown: dict[str, dict[int, str]]


@dataclass(kw_only=True)
class Checker:
    """Judges rows in order; `last` is the last good bar, which may lie in an earlier chunk.

    rows: number of rows that were judged. first: the first bad row's error under the policies that refuse some.
    """

    bad: BadRows
    last: Bars | None = None
    unsorted: bool = False
    rows: int = 0
    first: TrainerError | None = None

    def bars(self, rows: RawRows) -> Bars:
        """Return the good and the repaired rows as bars.

        Raises:
            TrainerError: for the first bad row, under the policy `error`, and under `few` for one that shows that
                the zone is another one.
        """
        _without_rounding(rows.values)
        self._judge(rows)
        keep = np.ones(len(rows.line), np.bool_)
        for kind in ("cells", "time"):
            keep &= self._dropped(kind, rows, rows.trouble[kind] & keep)
        self._zone(rows, keep)
        self._numbers(rows, keep)
        self._shapes(rows, keep)
        self._order(rows, keep)
        bars = _as_bars(rows, keep)
        if len(bars):
            self.last = bars[-1:]
        return bars

    def finish(self) -> None:
        """Raise the first bad row's error under the policy `few` where more than few were dropped."""
        if self.bad.policy == "few" and self.first is not None and not self.bad.few(self.rows):
            lost = sum(self.bad.dropped.values())
            what = f"{self.first.what} (one of {lost:,} bad rows of {self.rows:,}: too many to be left out unasked)"
            odd = lost - sum(self.bad.dropped.get(kind, 0) for kind in EMPTY)
            advice = MOST if 2 * odd > self.rows else self.first.next
            raise TrainerError(self.first.code, what=what, where=self.first.where, why=self.first.why, next=advice)

    def _judge(self, rows: RawRows) -> None:
        refusal = self._refusal(rows) if self.bad.policy in ("error", "few") else None
        if refusal is None:
            pass
        elif self.bad.policy == "error":
            raise refusal
        elif rows.shown.get("gap") or rows.trouble["zone"].any():
            raise self._refusal(rows, ("time", "zone")) or refusal
        self.first = self.first or refusal
        self.rows += len(rows.line)

    def _refusal(self, rows: RawRows, kinds: tuple[str, ...] = ()) -> TrainerError | None:
        """Return the error for the first bad row of some kinds, of all where none is named; None where all are sound.

        Args:
            kinds: names of kinds of bad rows.
        """
        found = [
            (int(rows.line[flags.argmax()]), kind)
            for kind, flags in self._all_trouble(rows)
            if flags.any() and (not kinds or kind in kinds)
        ]
        if not found:
            return None
        line, kind = min(found, key=lambda pair: pair[0])
        row = int(np.flatnonzero(rows.line == line)[0])
        cause = "gap" if kind == "time" and row in rows.shown.get("gap", {}) else kind
        return self.bad.refuse(kind, line, _complaint(cause, rows, row), cause)

    def _all_trouble(self, rows: RawRows) -> Iterator[tuple[str, Flags]]:
        yield from rows.trouble.items()
        sound = ~np.logical_or.reduce([rows.trouble["cells"], rows.trouble["time"]])
        yield from ((kind, flags & sound) for kind, flags in _rules(rows.values).items())
        yield from self._steps(rows, sound).items()

    def _dropped(self, kind: str, rows: RawRows, flags: Flags) -> Flags:
        self.bad.note(kind, rows.line[flags], repaired=False)
        return ~flags

    def _zone(self, rows: RawRows, keep: Flags) -> None:
        flags = rows.trouble["zone"] & keep
        self._handle("zone", rows, flags, keep)

    def _handle(self, kind: str, rows: RawRows, flags: Flags, keep: Flags) -> bool:
        """Count the rows, drop them unless they are to be repaired; return whether they are."""
        repaired = self.bad.policy == "repair"
        self.bad.note(kind, rows.line[flags], repaired=repaired)
        if not repaired:
            keep &= ~flags
        return repaired

    def _numbers(self, rows: RawRows, keep: Flags) -> None:
        """Handle what is no usable number; a row is counted under the first kind it has."""
        rules = _rules(rows.values)
        broken = np.zeros(len(keep), np.bool_)
        for kind in ("missing", "number", "price", "volume"):
            flags = (rows.trouble[kind] if kind in rows.trouble else rules[kind]) & keep & ~broken
            broken |= flags
            if not self._handle(kind, rows, flags, keep):
                continue
        if broken.any() and self.bad.policy == "repair":
            self._fill(rows, keep)

    def _fill(self, rows: RawRows, keep: Flags) -> None:
        """Take a price from the bar before, where there is one; a row without any is dropped after all."""
        volume = rows.values["volume"]
        volume[~_usable(volume, 0)] = 0.0
        close = _carried(rows.values["close"], keep, None if self.last is None else float(self.last.close[0]))
        for name in PRICES:
            values = rows.values[name]
            values[:] = np.where(_usable(values, 1), values, close)
        if "vix_close" in rows.values:
            before = None if self.last is None or self.last.vix_close is None else float(self.last.vix_close[0])
            rows.values["vix_close"][:] = _carried(rows.values["vix_close"], keep, before)
        lost = keep & ~np.logical_and.reduce([_usable(v, n != "volume") for n, v in rows.values.items()])
        keep &= self._dropped("missing", rows, lost)

    def _shapes(self, rows: RawRows, keep: Flags) -> None:
        values = rows.values
        flags = _rules(values)["range"] & keep
        if self._handle("range", rows, flags, keep):
            values["high"][flags], values["low"][flags] = values["low"][flags], values["high"][flags]
        flags = _rules(values)["outside"] & keep
        if self._handle("outside", rows, flags, keep):
            every = np.stack([values[name] for name in PRICES])
            values["high"][flags], values["low"][flags] = every.max(axis=0)[flags], every.min(axis=0)[flags]

    def _order(self, rows: RawRows, keep: Flags) -> None:
        for kind, flags in self._steps(rows, keep).items():
            if kind == "unsorted" and self.bad.policy == "repair":
                self.bad.note(kind, rows.line[flags], repaired=True)
                self.unsorted |= bool(flags.any())
            else:
                keep &= self._dropped(kind, rows, flags & keep)

    def _steps(self, rows: RawRows, keep: Flags) -> dict[str, Flags]:
        """Return which kept rows are as late as the latest kept one before them, and which are earlier."""
        begin = np.datetime64("NaT", "s") if self.last is None else self.last.date[0]
        places = np.flatnonzero(keep)
        dates = np.concatenate([[begin], rows.date[places]]).astype(np.int64)
        before = np.maximum.accumulate(dates)[:-1]
        found = {kind: np.zeros(len(keep), np.bool_) for kind in ("duplicate", "unsorted")}
        found["duplicate"][places] = dates[1:] == before
        found["unsorted"][places] = dates[1:] < before
        return found


def _rules(values: dict[str, Floats]) -> dict[str, Flags]:
    """Return which rows break which rule; a NaN, whose reason is known already, breaks `price` or `volume`."""
    prices = [values[name] for name in (*PRICES, "vix_close") if name in values]
    usable = np.logical_and.reduce([_usable(price, 1) for price in prices])
    high, low, first, last = values["high"], values["low"], values["open"], values["close"]
    upside_down = usable & (high < low)
    outside = (first < low) | (first > high) | (last < low) | (last > high)
    return {
        "price": ~usable,
        "volume": ~_usable(values["volume"], 0),
        "range": upside_down,
        "outside": usable & ~upside_down & outside,
    }


def _without_rounding(values: dict[str, Floats]) -> None:
    """Widen low to high where open or close is outside by rounding alone, as of prices adjusted for dividends."""
    first, last, high, low = (values[name] for name in ("open", "close", "high", "low"))
    top, bottom = np.maximum(first, last), np.minimum(first, last)
    above = (top > high) & (top <= high * (1 + ROUNDING))
    below = (bottom < low) & (bottom >= low * (1 - ROUNDING))
    high[above], low[below] = top[above], bottom[below]


def _usable(values: Floats, above: bool | int) -> Flags:
    """Return which values are finite, not beyond LARGEST, and above zero, or not below it."""
    return (values > 0 if above else values >= 0) & (values <= LARGEST)


def _carried(values: Floats, keep: Flags, before: float | None) -> Floats:
    """Return usable values, the last kept usable one where there is none."""
    good = _usable(values, 1) & keep
    source = np.maximum.accumulate(np.where(good, np.arange(len(values)), -1))
    carried = np.where(source >= 0, values[np.maximum(source, 0)], np.nan if before is None else before)
    return np.where(_usable(values, 1), values, carried)


def _complaint(kind: str, rows: RawRows, row: int) -> str:
    if row in rows.shown.get(kind, {}):
        return rows.shown[kind][row]
    values = ", ".join([str(rows.date[row]), *(f"{name} {v[row]:g}" for name, v in rows.values.items())])
    what = {
        "price": "a price or VIX is no finite number above zero and up to 1e12",
        "volume": "the volume is no finite number of zero or more and up to 1e12",
        "range": "high is below low",
        "outside": _which_outside(rows.values, row),
        "duplicate": "the time is not later than the one before: it stands twice",
        "unsorted": "the time is not later than the one before",
        "zone": "the time names an offset from UTC where others do not, or the reverse",
    }.get(kind, kind)
    return f"{what}: {values}"


def _which_outside(values: dict[str, Floats], row: int) -> str:
    inside = values["low"][row] <= values["open"][row] <= values["high"][row]
    return f"{'close' if inside else 'open'} is outside low to high"


def _as_bars(rows: RawRows, keep: Flags) -> Bars:
    columns = {name: np.ascontiguousarray(values[keep]) for name, values in rows.values.items()}
    return Bars(date=rows.date[keep], **columns)
