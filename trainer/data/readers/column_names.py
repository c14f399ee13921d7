"""Which column of a file is which: the usual spellings of OHLCV headers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
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
              "closebid", "closing_price", "price"),
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
    spare_volume: int | None = None  # a second column of volumes, for where the first is zero throughout

    @property
    def used(self) -> dict[str, str]:
        """The file's own name of each role, for the metadata."""
        chosen = dict(self.place) | ({} if self.clock is None else {"time": self.clock})
        return {role: self.names[place] for role, place in chosen.items()}


def plain(name: str) -> str:
    """Return a header's name as it is compared: lower case, words joined by `_`, no brackets."""
    return re.sub(r"[^a-z0-9]+", "_", name.strip().strip("<>").lower()).strip("_")


def find_columns(names: Sequence[str], where: str, chosen: Mapping[str, str] | None = None) -> Columns:
    """Return where each role stands; `vix_close` may be missing. `chosen` names columns of roles, or their numbers.

    Args:
        names: the header's cells.
        where: path of the file, for messages.
        chosen: column of a role, by its name or its number from 0.

    Raises:
        TrainerError: RM512 for a column that is missing or stands twice, RM731 for a chosen one that is not there.
    """
    known = [plain(name) for name in names]
    given = {role: _chosen(role, column, names, where) for role, column in (chosen or {}).items()}
    roles = [role for role in SPELLINGS if role not in given]
    place = {role: found for role in roles if (found := _find(known, SPELLINGS[role], names, where)) is not None}
    place |= {role: found for role, found in given.items() if role != "time"}
    missing = [role for role in REQUIRED if role not in place]
    if missing:
        spare = [name for place_, name in enumerate(names) if place_ not in place.values() and name]
        hint = suggestion(missing[0], spare or list(names))
        next_step = f"Say which column it is: --columns {missing[0]}=NAME; a column may be given by its number, too."
        raise TrainerError("RM512", what=f"no column {missing[0]!r}; {hint}", where=where, next=next_step)
    clock = next((known.index(word) for word in CLOCK if word in known and known.index(word) != place["date"]), None)
    clock = given.get("time", clock)
    volumes = [known.index(word) for word in SPELLINGS["volume"] if known.count(word) == 1]
    second = next((other for other in volumes if other != place["volume"] and "volume" not in given), None)
    return Columns(names=tuple(names), place=place, clock=clock, spare_volume=second)


def _chosen(role: str, column: str, names: Sequence[str], where: str) -> int:
    """Return the place of a column that was given by its name or its number, from 1."""
    if column in names:
        return list(names).index(column)
    if column.isdecimal() and 1 <= int(column) <= len(names):
        return int(column) - 1
    hint = suggestion(column, [name for name in names if name])
    raise TrainerError("RM731", what=f"--columns {role}={column}: {hint}", where=where)


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
