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
        "unnamed_0", "unix", "unix_time", "unix_timestamp", "epoch", "time", "window_start", "start_time", "begin",
        "quote_date", "datum", "fecha", "data", "t", "",
    ),
    # the last words of each are German, French, Spanish and Italian, as investing.com, ariva.de and others write them
    "open": ("open", "o", "open_price", "px_open", "first", "opening_price", "bid_open", "openbid", "er_ffnung",
             "er_ffn", "eroeffnung", "erster", "ouverture", "ouv", "apertura"),
    "high": ("high", "h", "high_price", "px_high", "max", "highest", "bid_high", "highbid", "hoch", "tageshoch",
             "plus_haut", "haut", "m_ximo", "maximo", "massimo"),
    "low": ("low", "l", "low_price", "px_low", "min", "lowest", "bid_low", "lowbid", "tief", "tagestief", "plus_bas",
            "bas", "m_nimo", "minimo"),
    "close": ("close", "c", "close_price", "px_last", "px_close", "last", "close_last", "settle", "bid_close",
              "closebid", "closing_price", "price", "schluss", "schlusskurs", "zuletzt", "cl_ture", "cloture",
              "dernier", "cierre", "ltimo", "ultimo", "chiusura"),
    "volume": ("volume", "vol", "v", "px_volume", "total_volume", "totalvolume", "trade_volume", "size", "qty",
               "quantity", "base_volume", "tick_volume", "tickvol", "ticks", "volumen", "st_cke", "stuecke"),
    "vix_close": ("vix_close", "vix", "vix_last", "vixclose", "close_vix", "vix_index"),
}  # fmt: skip
CLOCK = ("time", "timestamp", "hour", "time_of_day")  # of a second column, where the first holds the day alone
REQUIRED = ("date", *PRICES, "volume")
NONE = "none"  # --columns volume=none: the file has no volume, as those of an index or a currency pair


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
        named = {role: self.names[place] for role, place in chosen.items()}
        return named if "volume" in named else {**named, "volume": NONE}


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
    chosen = dict(chosen or {})
    absent = ("volume",) if chosen.get("volume") == NONE and NONE not in names else ()
    given = {role: _chosen(role, column, names, where) for role, column in chosen.items() if role not in absent}
    roles = [role for role in SPELLINGS if role not in given and role not in absent]
    place = {role: found for role in roles if (found := _find(known, SPELLINGS[role], names, where)) is not None}
    place |= {role: found for role, found in given.items() if role != "time"}
    if missing := [role for role in REQUIRED if role not in place and role not in absent]:
        raise _missing(
            missing, [name for at, name in enumerate(names) if at not in place.values() and name], names, where
        )
    clock = next((known.index(word) for word in CLOCK if word in known and known.index(word) != place["date"]), None)
    clock = given.get("time", clock)
    volumes = [known.index(word) for word in SPELLINGS["volume"] if known.count(word) == 1]
    second = next((other for other in volumes if other != place.get("volume") and "volume" in roles), None)
    return Columns(names=tuple(names), place=place, clock=clock, spare_volume=second)


def _missing(missing: list[str], spare: list[str], names: Sequence[str], where: str) -> TrainerError:
    """Return the error that names all missing columns at once."""
    hint = suggestion(missing[0], spare or list(names))
    which = " and ".join([", ".join(map(repr, missing[:-1]))] * (len(missing) > 1) + [repr(missing[-1])])
    advice = f"Say which column it is: --columns {','.join(f'{role}=NAME' for role in missing)}; "
    advice += "a column may be given by its number, too"
    advice += f", and volume={NONE} states that there is no volume." if "volume" in missing else "."
    if len(names) == 1:
        advice = "The cells of a line stand between one of , ; tab or |: replace what is between them here."
    return TrainerError("RM512", what=f"no column {which}; {hint}", where=where, next=advice)


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
