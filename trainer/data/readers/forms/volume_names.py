"""Columns of volumes that are called by more than the word: by a coin, in two parts, with words in front."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import polars as pl

from trainer.data.readers.forms.spellings import COUNTED, DERIVED, DESCRIBED, QUOTES

COUNT = r"^\d{1,3}(,\d{3})+(\.0+)?$|^\d+(\.0+)?$|^\d+([.,]\d+)?[KMBkmb]$"
# Words of names that state what else a column of counts is
NO_VOLUME = {
    "year", "month", "week", "day", "weekday", "hour", "minute", "sno", "no", "id", "rank", "order", "range", "cap",
    "change", "chg", "diff", "spread", "adj", "adjusted", "open", "high", "low", "close", "interest", "oi",
}  # fmt: skip
UP_AND_DOWN = ("up", "down")  # TradeStation's volumes of rising and of falling ticks, which add up


def volume_of_parts(known: Sequence[str], place: dict[str, int]) -> int | None:
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


def is_without_volume(names: Sequence[str], place: Mapping[str, int], table: pl.DataFrame | None) -> bool:
    """Return whether no column that is left over may be a volume: none is called one, and none holds counts.

    Args:
        names: the header's cells.
        place: places by role.
        table: the first rows.
    """
    if table is None or not len(table):
        return False
    left = [at for at in range(len(names)) if at not in place.values()]
    words = {at: {*re.split(r"[^a-z]+", names[at].lower())} for at in left}
    left = [at for at in left if not words[at] & NO_VOLUME or "vol" in names[at].lower()]
    return not any("vol" in names[at].lower() or _counts(table[:, at]) for at in left)


def _counts(cells: pl.Series) -> bool:
    """Return whether cells are whole numbers of zero or more, of which some differ where there are several."""
    text = cells.cast(pl.String).str.strip_chars().drop_nulls()
    text = text.filter(text != "")
    return len(text) > 0 and bool(text.str.contains(COUNT).all()) and (len(text) < 3 or text.n_unique() > 1)
