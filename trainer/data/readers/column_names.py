"""Which column of a file is which: the usual spellings of OHLCV headers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from trainer.data.readers.forms.by_content import counts_rows, in_parts, is_other_time, time_column, within_range
from trainer.data.readers.forms.clocks import clock_digits
from trainer.data.readers.forms.naming import NONE, chosen_column, missing_columns, plain
from trainer.data.readers.forms.spellings import CLOCK, SPELLINGS, ZONES
from trainer.data.readers.forms.volume_names import is_without_volume, volume_of_parts
from trainer.runtime.errors import TrainerError

PRICES = ("open", "high", "low", "close")

OFFSET = re.compile(r"(?:UTC|GMT)\s*([+-])\s*(\d{1,2})(?::?(\d{2}))?(?!\d)", re.IGNORECASE)  # as in Time (GMT+2)
EPOCH = r"^(\d{10}|\d{13}|\d{16}|\d{19})(\.0+)?$"
LETTERS = {"open": "o", "high": "h", "low": "l", "close": "c", "volume": "v"}
MIDNIGHT = r"[ T]0?0:00(:00(\.0+)?)?$"
WHOLE = r"^\s*\d{14}(\d{3})?\s*$|^\s*\d{4}[-/.]\d{2}[-/.]\d{2}[ T]\d"  # a day and its clock
BRACKETS = re.compile(r"\s*[(（\[].*?[)）\]]")  # units, as in 开盘价(元)  # noqa: RUF001
INDEX = ("index", "unnamed_0", "index_level_0", "")
REQUIRED = ("date", *PRICES, "volume")


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Places of a file's columns: by role, and of the time of day where it has a column of its own.

    spare_volume: a second column of volumes, for where the first is zero throughout. more_volume: one that is added.
    clock_digits: of a time of day in digits alone, with the zeros that some programs leave out: 930 is 0930.
    """

    names: tuple[str, ...]
    place: dict[str, int]
    clock: int | None
    spare_volume: int | None = None
    more_volume: int | None = None
    clock_digits: int = 0

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


def find_columns(
    names: Sequence[str], where: str, chosen: Mapping[str, str] | None = None, table: pl.DataFrame | None = None
) -> Columns:
    """Return where each role stands; `vix_close` may be missing. `chosen` names columns of roles, or their numbers.

    Args:
        names: the header's cells.
        where: path of the file, for messages.
        chosen: column of a role, by its name or its number from 1.
        table: the first rows, by which a column of times is known where no name states it.

    Raises:
        TrainerError: RM512 for a column that is missing or stands twice, RM731 for a chosen one that is not there.
    """
    chosen = dict(chosen or {})
    known = _bare_names([plain(name) for name in names], where, chosen)
    absent = ("volume",) if chosen.get("volume") == NONE and NONE not in names else ()
    given = {role: chosen_column(role, column, names, where) for role, column in chosen.items() if role not in absent}
    roles = [role for role in SPELLINGS if role not in given and role not in absent]
    place = {role: found for role in roles if (found := _find(known, SPELLINGS[role], names, where, table)) is not None}
    place |= {role: found for role, found in given.items() if role != "time"}
    more = None
    if "volume" in roles and "volume" not in place:
        more = volume_of_parts(known, place)
    place |= _without_units(names, [role for role in roles if role not in place])
    if "date" in roles and "date" in place and known[place["date"]] in INDEX and counts_rows(table, place["date"]):
        del place["date"]  # pandas' index of rows, next to the times or without any
    if "date" in roles and "date" not in place:
        place |= _called_time(known, place) or _by_cells(known, place, table)
    missing = [role for role in REQUIRED if role not in place and role not in absent]
    if missing == ["volume"] and is_without_volume(names, place, table):
        missing = []
    if missing:
        spare = [name for at, name in enumerate(names) if at not in place.values() and name]
        likely = within_range(names, place, table) if missing in (["open"], ["close"]) else None
        raise missing_columns(missing, spare, names, where, likely)
    if "date" in roles and in_parts(known) and place["date"] == known.index("day"):
        what = "year, month and day stand in columns of their own"
        raise TrainerError("RM512", what=what, where=where, next="Join them to one column, as in 2024-03-04.")
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
    if columns.clock is not None:
        columns = replace(columns, clock_digits=clock_digits(table[:, columns.clock]))
    if columns.zone is not None:
        return columns
    if not chosen.keys() & {"date", "time"} and not _are_epochs(table[:, columns.place["date"]]):
        for at, name in enumerate(columns.names):
            if _names_time(plain(name)) and at not in columns.place.values() and _are_epochs(table[:, at]):
                return replace(columns, place={**columns.place, "date": at}, clock=None)
    return columns


def _names_time(name: str) -> bool:
    """Return whether a name is that of the times, such as `unix` or `datetime_nano`.

    Args:
        name: as names are compared.
    """
    words = name.split("_")
    return name in SPELLINGS["date"] or (bool({"datetime", "timestamp"} & {*words}) and not is_other_time(name))


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
        if at not in place.values() and called and not is_other_time(name):
            return {"date": at}
    ticks = known.index("ticks") if "ticks" in known else None  # Deribit counts the milliseconds in it
    return {"date": ticks} if ticks is not None and ticks not in place.values() else {}


def _by_cells(known: Sequence[str], place: Mapping[str, int], table: pl.DataFrame | None) -> dict[str, int]:
    """Return the place of the column whose cells are times, where all prices are known by their names.

    Args:
        known: names of the columns as they are compared.
        place: places that other roles have.
        table: the first rows.
    """
    if table is None or not {*place} >= {*PRICES}:
        return {}
    clocks = [at for at, name in enumerate(known) if name in CLOCK]
    found = time_column(known, table, {*place.values(), *clocks}, clock=bool(clocks))
    return {} if found is None else {"date": found}


def _without_units(names: Sequence[str], roles: Sequence[str]) -> dict[str, int]:
    """Return the places of roles that one name alone spells where what stands in its brackets is left out.

    Args:
        names: the header's cells.
        roles: roles without a column.
    """
    bare = [plain(BRACKETS.sub("", name)) if BRACKETS.search(name) else "" for name in names]
    found = {role: [at for at, name in enumerate(bare) if name and name in SPELLINGS[role]] for role in roles}
    return {role: places[0] for role, places in found.items() if len(places) == 1 and role != "date"}


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


def _alike(known: Sequence[str], name: str, table: pl.DataFrame | None) -> bool:
    """Return whether all columns of one name hold the same cells."""
    if table is None or not len(table):
        return False
    first, *others = (table[:, place] for place, each in enumerate(known) if each == name)
    return all(first.equals(each) for each in others)


def _find(
    known: list[str], spellings: tuple[str, ...], names: Sequence[str], where: str, table: pl.DataFrame | None
) -> int | None:
    """Return the place of the first spelling that is there; the earlier ones are the surer ones."""
    for spelling in spellings:
        count = known.count(spelling)
        if (
            count > 1 and len(spelling) == 1 and [*names].count(spelling) == 1
        ):  # t and T are the begin and the end of a bar
            return [*names].index(spelling)
        if count > 1 and not _alike(known, spelling, table):
            twice = [f"{place + 1} ({names[place]!r})" for place, name in enumerate(known) if name == spelling]
            raise TrainerError("RM512", what=f"one column stands at two places: {' and '.join(twice)}", where=where)
        if count:
            return known.index(spelling)
    return None
