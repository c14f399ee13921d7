"""Which column of a file is which: the usual spellings of OHLCV headers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from trainer.runtime.errors import TrainerError, suggestion

PRICES = ("open", "high", "low", "close")

SPELLINGS = {
    "date": (
        "date", "datetime", "date_time", "timestamp", "time_stamp", "ts", "ts_event", "gmt_time", "utc_time", "utc",
        "local_time", "time_utc", "open_time", "bar_time", "dtyyyymmdd", "day", "trade_date", "trading_day", "index",
        "unnamed_0", "unix", "unix_time", "unix_timestamp", "epoch", "time", "",
    ),
    "open": ("open", "o", "open_price", "px_open", "first", "opening_price", "bid_open", "openbid"),
    "high": ("high", "h", "high_price", "px_high", "max", "highest", "bid_high", "highbid"),
    "low": ("low", "l", "low_price", "px_low", "min", "lowest", "bid_low", "lowbid"),
    "close": ("close", "c", "close_price", "px_last", "px_close", "last", "close_last", "settle", "bid_close",
              "closebid", "closing_price"),
    "volume": ("volume", "vol", "v", "px_volume", "total_volume", "totalvolume", "trade_volume", "size", "qty",
               "quantity", "base_volume", "tick_volume", "tickvol", "ticks"),
    "vix_close": ("vix_close", "vix", "vix_last", "vixclose", "close_vix", "vix_index"),
}  # fmt: skip
CLOCK = ("time", "timestamp", "hour", "time_of_day")  # of a second column, where the first holds the day alone
REQUIRED = ("date", *PRICES, "volume")


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Places of a file's columns: by role, and of the time of day where it has a column of its own."""

    names: tuple[str, ...]
    place: dict[str, int]
    clock: int | None

    @property
    def used(self) -> dict[str, str]:
        """The file's own name of each role, for the metadata."""
        chosen = dict(self.place) | ({} if self.clock is None else {"time": self.clock})
        return {role: self.names[place] for role, place in chosen.items()}


def plain(name: str) -> str:
    """Return a header's name as it is compared: lower case, words joined by `_`, no brackets."""
    return re.sub(r"[^a-z0-9]+", "_", name.strip().strip("<>").lower()).strip("_")


def find_columns(names: Sequence[str], where: str) -> Columns:
    """Return where each role stands; `vix_close` may be missing.

    Raises:
        TrainerError: RM512 for a column that is missing or stands twice.
    """
    known = [plain(name) for name in names]
    place = {role: found for role in SPELLINGS if (found := _find(known, SPELLINGS[role], names, where)) is not None}
    missing = [role for role in REQUIRED if role not in place]
    if missing:
        spare = [name for place_, name in enumerate(names) if place_ not in place.values() and name]
        hint = suggestion(missing[0], spare or list(names))
        raise TrainerError("RM512", what=f"no column {missing[0]!r}; {hint}", where=where)
    clock = next((known.index(word) for word in CLOCK if word in known and known.index(word) != place["date"]), None)
    return Columns(names=tuple(names), place=place, clock=clock)


def _find(known: list[str], spellings: tuple[str, ...], names: Sequence[str], where: str) -> int | None:
    """Return the place of the first spelling that is there; the earlier ones are the surer ones."""
    for spelling in spellings:
        count = known.count(spelling)
        if count > 1:
            twice = [f"{place + 1} ({names[place]!r})" for place, name in enumerate(known) if name == spelling]
            raise TrainerError("RM512", what=f"one column stands at two places: {' and '.join(twice)}", where=where)
        if count:
            return known.index(spelling)
    return None
