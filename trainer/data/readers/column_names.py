"""Which column of a file is which: the usual spellings of OHLCV headers."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from trainer.runtime.errors import TrainerError, suggestion

PRICES = ("open", "high", "low", "close")

SPELLINGS = {
    "date": (
        "date", "datetime", "date_time", "candle_date_time_utc", "time_period_start", "time_open", "open_time",
        "timestamp", "time_stamp", "ts", "ts_event", "gmt_time", "utc_time", "utc", "local_time", "time_utc",
        "bar_time", "dtyyyymmdd", "day", "trade_date", "trading_day", "index", "unnamed_0", "unix", "unix_time",
        "unix_timestamp", "epoch", "time", "window_start", "start_time", "begin", "starttime", "index_level_0",
        "quote_date", "datum", "fecha", "data", "tarih", "дата", "日期", "日付", "日付け", "날짜", "t", "",
    ),
    # the last words of each are those of other languages, as investing.com, ariva.de, Stooq and others write them
    "open": (
        "open", "o", "open_price", "px_open", "first", "opening_price", "bid_open", "open_bid", "openbid",
        "start_price", "eröffnung", "eröffn", "eroeffnung", "erster", "ouverture", "ouv", "apertura", "abertura",
        "otwarcie", "açılış", "откр", "开盘", "开盘价", "開盤價", "始値", "시가",  # noqa: RUF001
    ),
    "high": (
        "high", "h", "high_price", "px_high", "max", "highest", "bid_high", "high_bid", "highbid", "max_price",
        "hoch", "tageshoch", "plus_haut", "haut", "máximo", "maximo", "massimo", "máxima", "hoog", "najwyzszy",
        "yüksek", "макс", "高", "最高", "最高价", "最高價", "高値", "고가",
    ),
    "low": (
        "low", "l", "low_price", "px_low", "min", "lowest", "bid_low", "low_bid", "lowbid", "min_price", "tief",
        "tagestief", "plus_bas", "bas", "mínimo", "minimo", "mínima", "laag", "najnizszy", "düşük", "мин", "低", "最低",
        "最低价", "最低價", "安値", "저가",
    ),
    "close": (
        "close", "c", "close_price", "px_last", "px_close", "last", "close_last", "settle", "bid_close", "close_bid",
        "closebid", "closing_price", "end_price", "trade_price", "price", "latest", "schluss", "schlusskurs",
        "zuletzt", "clôture", "cloture", "dernier", "cierre", "último", "ultimo", "chiusura", "laatste", "zamkniecie",
        "ostatnio", "şimdi", "цена", "收盘", "收盘价", "收盤價", "終値", "종가",
    ),
    "volume": (
        "volume", "vol", "v", "px_volume", "total_volume", "totalvolume", "trade_volume", "size", "qty", "quantity",
        "base_volume", "tick_volume", "tick_vol", "tickvol", "ticks", "volumefrom", "no_of_shares",
        "number_of_shares", "shares_traded", "volumen", "stücke",
        "stuecke", "wolumen", "wol", "hac", "объём", "交易量", "成交量", "成交股數", "出来高", "거래량",
    ),
    "vix_close": (
        "vix_close", "vix", "vix_last", "vixclose", "close_vix", "vix_index",
    ),
}  # fmt: skip
# Behind or in front of `date` and `time`: not when a bar begins
OTHER_TIMES = {
    "end", "close", "closing", "closed", "high", "low", "last", "next", "exp", "expiry", "expiration", "expire",
    "maturity", "update", "updated", "settlement", "ex", "dividend", "listing", "report", "created", "modified", "of",
    "first", "delivery",
}  # fmt: skip
# As they begin a word that is glued to `date` or `time`: Closetime, enddatetime, expirationdate
GLUED_TIMES = ("end", "clos", "expir", "maturity", "next", "last", "high", "low", "updat", "settle", "deliver", "life")
# What a column of times names as its zone: abbreviations that stand for one zone alone
ZONES = {"utc": "UTC", "gmt": "UTC", "eet": "Europe/Athens", "kst": "Asia/Seoul", "jst": "Asia/Tokyo"}
OFFSET = re.compile(r"(?:UTC|GMT)\s*([+-])\s*(\d{1,2})(?::?(\d{2}))?(?!\d)", re.IGNORECASE)  # as in Time (GMT+2)
EPOCH = r"^(\d{10}|\d{13}|\d{16}|\d{19})(\.0+)?$"
LETTERS = {"open": "o", "high": "h", "low": "l", "close": "c", "volume": "v"}
MIDNIGHT = r"[ T]0?0:00(:00(\.0+)?)?$"
WHOLE = r"^\s*\d{14}(\d{3})?\s*$|^\s*\d{4}[-/.]\d{2}[-/.]\d{2}[ T]\d"  # a day and its clock
# Of a second column, where the first holds the day alone
CLOCK = ("time", "timestamp", "time_stamp", "hour", "time_of_day")
UP_AND_DOWN = ("up", "down")  # TradeStation's volumes of rising and of falling ticks, which add up
# What quote currencies are called behind `volume`, of which a pair's own coin is wanted
QUOTES = {"usd", "usdt", "usdc", "busd", "eur", "gbp", "jpy", "krw", "currency", "quote", "to"}
# Behind `volume`: figures made of it, and parts of it, which are no volume
DERIVED = {
    "ma", "sma", "ema", "wma", "avg", "average", "mean", "median", "min", "max", "std", "stdev", "var", "volatility",
    "change", "chg", "pct", "percent", "ratio", "delta", "diff", "roc", "z", "zscore", "score", "norm", "normalized",
    "scaled", "log", "rank", "spike", "osc", "oscillator", "trend", "lag", "prev", "previous", "vwap", "weighted",
    "profile", "imbalance", "signal", "flag", "buy", "sell", "bid", "ask", "up", "down",
}  # fmt: skip
# In front of `volume`: money, or figures made of it. `vol` is short for volatility as well, but behind COUNTED
DESCRIBED = {"relative", "rel", "cum", "cumulative", "dollar", "notional", "turnover", "expected", "hist", "historical"}
COUNTED = {"traded", "trade", "tick", "total", "tot", "share", "shares", "base", "contract", "contracts", "real", "acc"}
REQUIRED = ("date", *PRICES, "volume")
NONE = "none"  # --columns volume=none: the file has no volume, as those of an index or a currency pair


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Places of a file's columns: by role, and of the time of day where it has a column of its own.

    spare_volume: a second column of volumes, for where the first is zero throughout. more_volume: one that is added.
    """

    names: tuple[str, ...]
    place: dict[str, int]
    clock: int | None
    spare_volume: int | None = None
    more_volume: int | None = None

    @property
    def zone(self) -> str | None:
        """The IANA zone that the column of times names, as `Gmt time` does; None where it names none."""
        places = [place for place in (self.place.get("date"), self.clock) if place is not None]
        return named_zone([self.names[place] for place in places])

    @property
    def used(self) -> dict[str, str]:
        """The file's own name of each role, for the metadata."""
        chosen = dict(self.place) | ({} if self.clock is None else {"time": self.clock})
        named = {role: self.names[place] for role, place in chosen.items()}
        if self.more_volume is not None:
            named["volume"] += f" + {self.names[self.more_volume]}"
        return named if "volume" in named else {**named, "volume": NONE}


def plain(name: str) -> str:
    """Return a header's name as it is compared: lower case, words joined by `_`, also those of BidOpen, no brackets."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", unicodedata.normalize("NFC", name.strip().strip("<>")))
    return re.sub(r"[\W_]+", "_", words.lower()).strip("_")


def named_zone(names: Sequence[str]) -> str | None:
    """Return the IANA zone that names of columns of times state, None where they state none.

    Args:
        names: as they stand in the header.

    Raises:
        TrainerError: RM513 for an offset from UTC that is not of whole hours.
    """
    for name in names:
        if found := OFFSET.search(name):
            sign, hours, minutes = found.groups()
            if int(minutes or 0) or int(hours) > 12:
                what = f"column {name!r} names an offset that is no IANA zone"
                advice = "Write the offset behind each time, as in 2014-01-03 09:31+05:30, or rename the column and "
                raise TrainerError("RM513", what=what, next=f"{advice}give --time-zone.")
            opposite = "-" if sign == "+" else "+"  # POSIX counts west of Greenwich as positive
            return f"Etc/GMT{opposite}{int(hours)}" if int(hours) else "UTC"
    words = [word for name in names for word in plain(name).split("_")]
    return next((ZONES[word] for word in words if word in ZONES), None)


def find_columns(names: Sequence[str], where: str, chosen: Mapping[str, str] | None = None) -> Columns:
    """Return where each role stands; `vix_close` may be missing. `chosen` names columns of roles, or their numbers.

    Args:
        names: the header's cells.
        where: path of the file, for messages.
        chosen: column of a role, by its name or its number from 0.

    Raises:
        TrainerError: RM512 for a column that is missing or stands twice, RM731 for a chosen one that is not there.
    """
    chosen = dict(chosen or {})
    known = _bare_names([plain(name) for name in names], where, chosen)
    absent = ("volume",) if chosen.get("volume") == NONE and NONE not in names else ()
    given = {role: _chosen(role, column, names, where) for role, column in chosen.items() if role not in absent}
    roles = [role for role in SPELLINGS if role not in given and role not in absent]
    place = {role: found for role in roles if (found := _find(known, SPELLINGS[role], names, where)) is not None}
    place |= {role: found for role, found in given.items() if role != "time"}
    more = None
    if "volume" in roles and "volume" not in place:
        more = _volume_of_parts(known, place)
    if "date" in roles and "date" not in place:
        place |= _called_time(known, place)
    if missing := [role for role in REQUIRED if role not in place and role not in absent]:
        raise _missing(
            missing, [name for at, name in enumerate(names) if at not in place.values() and name], names, where
        )
    clock = next((known.index(word) for word in CLOCK if word in known and known.index(word) != place["date"]), None)
    clock = given.get("time", clock)
    volumes = [known.index(word) for word in SPELLINGS["volume"] if known.count(word) == 1]
    second = next((other for other in volumes if other != place.get("volume") and "volume" in roles), None)
    return Columns(names=tuple(names), place=place, clock=clock, spare_volume=second, more_volume=more)


def with_epochs(columns: Columns, table: pl.DataFrame, chosen: Mapping[str, str]) -> Columns:
    """Return the columns with epochs as time where a column of them stands next to one of dates.

    Epochs name instants; of `2024-03-04 14:30` next to them the zone is unknown.

    Args:
        table: the first rows.
        chosen: columns that were given by role.
    """
    if columns.clock is not None and "time" not in chosen and _are_epochs(table[:, columns.clock]):
        columns = replace(columns, clock=None)
    if columns.clock is not None and not chosen.keys() & {"date", "time"} and _are(WHOLE, table[:, columns.clock]):
        day = table[:, columns.place["date"]]
        own = _are(WHOLE, day) and not _are(MIDNIGHT, day)
        columns = replace(columns, place=columns.place | ({} if own else {"date": columns.clock}), clock=None)
    if columns.zone is not None:
        return columns
    if not chosen.keys() & {"date", "time"} and not _are_epochs(table[:, columns.place["date"]]):
        for at, name in enumerate(columns.names):
            if plain(name) in SPELLINGS["date"] and at not in columns.place.values() and _are_epochs(table[:, at]):
                return replace(columns, place={**columns.place, "date": at}, clock=None)
    return columns


def _are_epochs(cells: pl.Series) -> bool:
    return _are(EPOCH, cells)


def _are(pattern: str, cells: pl.Series) -> bool:
    """Return whether all cells that hold something match.

    Args:
        pattern: regular expression.
        cells: a column.
    """
    known = cells.cast(pl.String).str.strip_chars().drop_nulls()
    return len(known) > 0 and bool(known.str.contains(pattern).all())


def _called_time(known: Sequence[str], place: Mapping[str, int]) -> dict[str, int]:
    """Return the place of the first column that is called a date or a time, such as `trade_date`; none for no such.

    Args:
        known: names of the columns as they are compared.
        place: places that other roles have.
    """
    for at, name in enumerate(known):
        words = name.split("_")
        called = any(word.endswith(("date", "time")) or word in ("timestamp", "datetime") for word in words)
        other = OTHER_TIMES & {*words} or any(word.startswith(GLUED_TIMES) for word in words)
        if at not in place.values() and called and not other:
            return {"date": at}
    ticks = known.index("ticks") if "ticks" in known else None  # Deribit counts the milliseconds in it
    return {"date": ticks} if ticks is not None and ticks not in place.values() else {}


def _bare_names(known: Sequence[str], where: str, chosen: Mapping[str, str]) -> list[str]:
    """Return names without what all four prices share around them, as in `1. open`, `SPY.Open`, `mid.o`; else `known`.

    Args:
        known: names of the columns as they are compared: lower case, words joined by `_`.
        where: path of the file, for messages.
        chosen: columns that were given by role; where the prices are among them nothing has to be found.

    Raises:
        TrainerError: RM512 where several sets of prices are there, such as two instruments, or bid and ask.
    """
    if {*chosen} & {*PRICES} or all({*SPELLINGS[role]} & {*known} for role in PRICES):
        return list(known)
    names = [re.sub(r"^\d+[a-z]?_(?=\D)", "", name) for name in known]
    sets = _shared(names)
    if len(sets) > 1:
        shown = ", ".join("..".join(filter(None, each)) for each in sets)
        what = f"the file holds {len(sets)} sets of open, high, low and close: {shown}"
        advice = "Say which: --columns open=NAME,high=NAME,low=NAME,close=NAME,volume=NAME."
        raise TrainerError("RM512", what=what, where=where, next=advice)
    return [_without(name, sets[0]) for name in names] if sets else list(known)


def _shared(names: Sequence[str]) -> list[tuple[str, str]]:
    """Return each pair of what stands in front of and behind all four prices, in the order of the columns."""
    found = []
    for name in names:
        for word in ("open", "o"):
            match = re.fullmatch(rf"(|.+_){word}(|_.+)", name)
            if match and all({*names} & _spelled(role, match[1], match[2]) for role in PRICES):
                found.append((match[1], match[2]))
    return list(dict.fromkeys(found))


def _spelled(role: str, before: str, behind: str) -> set[str]:
    return {f"{before}{word}{behind}" for word in (role, LETTERS[role])}


def _without(name: str, shared: tuple[str, str]) -> str:
    return next((role for role in LETTERS if name in _spelled(role, *shared)), name)


def _volume_of_parts(known: Sequence[str], place: dict[str, int]) -> int | None:
    """Find a volume that names its unit or stands in two columns; return the place of the second.

    Args:
        known: names of the columns as they are compared.
        place: places by role, to which that of the volume is added.
    """
    if all(known.count(word) == 1 for word in UP_AND_DOWN):
        place["volume"], more = (known.index(word) for word in UP_AND_DOWN)
        return more
    units = {at: match[1] for at, name in enumerate(known) if (match := re.fullmatch(r"vol(?:ume)?_(\w+)", name))}
    named = [at for at, unit in units.items() if "_" not in unit and unit.rstrip("0123456789") not in {"", *DERIVED}]
    own = [at for at in named if known[at].rpartition("_")[2] not in QUOTES]
    if found := own or named or _described_volumes(known):
        place["volume"] = found[0]
    return None


def _described_volumes(known: Sequence[str]) -> list[int]:
    """Return the places of volumes with words in front that make nothing else of them, as in `traded_volume`.

    Args:
        known: names of the columns as they are compared.
    """
    other = DERIVED | DESCRIBED | QUOTES | {"taker", "maker"}
    found = {at: name.split("_") for at, name in enumerate(known)}
    return [
        at
        for at, (*words, last) in found.items()
        if words and not {*words} & other and (last == "volume" or (last == "vol" and {*words} <= COUNTED))
    ]


def _missing(missing: list[str], spare: list[str], names: Sequence[str], where: str) -> TrainerError:
    """Return the error that names all missing columns at once."""
    hint = suggestion(missing[0], spare or list(names))
    which = " and ".join([", ".join(map(repr, missing[:-1]))] * (len(missing) > 1) + [repr(missing[-1])])
    advice = f"Say which column it is: --columns {','.join(f'{role}=NAME' for role in missing)}; "
    advice += "a column may be given by its number, too"
    advice += f", and volume={NONE} states that there is no volume." if "volume" in missing else "."
    if missing == ["volume"]:
        advice = f"State that there is none: --columns volume={NONE}; or say which column it is: --columns volume=NAME."
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
        if (
            count > 1 and len(spelling) == 1 and [*names].count(spelling) == 1
        ):  # t and T are the begin and the end of a bar
            return [*names].index(spelling)
        if count > 1:
            twice = [f"{place + 1} ({names[place]!r})" for place, name in enumerate(known) if name == spelling]
            raise TrainerError("RM512", what=f"one column stands at two places: {' and '.join(twice)}", where=where)
        if count:
            return known.index(spelling)
    return None
