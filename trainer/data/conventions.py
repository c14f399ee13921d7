"""Conventions of volume profiles and sessions. Each choice changes values, so each is stored with them."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any, get_args, get_type_hints

from trainer.config import choices
from trainer.runtime.errors import TrainerError

VOLUME_BITS = 20  # whole volumes are counted in 2^-20 contracts: sums of integers do not depend on their order


def _require_choices(conventions: Any) -> None:
    for name, hint in get_type_hints(type(conventions)).items():
        known, value = get_args(hint), getattr(conventions, name)
        if known and value not in known:
            raise TrainerError("RM500", what=f"{name} is one of {', '.join(map(str, known))}, not {value!r}")


@dataclass(frozen=True, kw_only=True)
class ProfileConventions:
    """How volume is spread over price, and how point of control and value area are read from it.

    tick: price step of the instrument; prices are rounded to it.
    row_ticks: height of a row in ticks.
    rounding: how a tick finds its row where rows are higher than one tick.
    row_origin: the tick at which row 0 is anchored; other rows lie above and below it.
    allocation: a bar's volume in equal parts to every row from its low to its high, or all at its close, or
        `proportional`: to each row the part of the bar's range within it, with prices as a line without steps.
    levels: where in its row a level is: its `centre`, its lowest (`low`) or highest (`high`) price, or `outer`: value
        area high at the upper edge, value area low at the lower, POC at the centre.
    rows: `dense` has every row between the lowest and the highest; `occupied` only those with volume.
    poc_tie: of rows with equal volume the lowest, the highest, or the one nearest to the middle (n-1)/2 of
        the n rows, the lower of two; `middle_upper` takes n/2 as the middle.
    expansion: the value area grows by the larger neighbour, or by the larger pair of neighbours (CBOT).
    value_tie: where both sides are equal.
    value_share: the part of the volume that the value area holds, in hundredths of a per cent.
    reach: the area is complete when its volume is at least that part, or when it is more.
    volume_bits: volume is counted in units of 2^-volume_bits; parts of a coin need smaller ones than contracts.
    """

    tick: float = 0.25
    row_ticks: int = 1
    rounding: choices.Rounding = "floor"
    row_origin: int = 0
    allocation: choices.Allocation = "uniform"
    levels: choices.Levels = "centre"
    rows: choices.Rows = "dense"
    poc_tie: choices.PocTie = "middle"
    expansion: choices.Expansion = "one"
    value_tie: choices.ValueTie = "up"
    value_share: int = 7000
    reach: choices.Reach = "at_least"
    volume_bits: int = VOLUME_BITS

    def __post_init__(self) -> None:
        _require_choices(self)
        if not 0 < self.tick < float("inf") or self.row_ticks < 1 or not 0 < self.value_share <= 10_000:
            raise TrainerError("RM500", what="tick and row height must be above zero, the value area above 0 to 100 %")

    def as_dict(self) -> dict[str, Any]:
        """Return the conventions in JSON's types, with the unit in which volume is counted."""
        return {**asdict(self), "volume_unit": f"2^-{self.volume_bits}"}


@dataclass(frozen=True, kw_only=True)
class SessionConventions:
    """Which bars belong to one session.

    begin, end: wall clock in `zone`, which follows its daylight saving time; where end is not after begin
        the session runs over midnight and is named after the day of its end.
    zone: an IANA time zone; times in the data that name no zone are taken to be in `data_zone`.
    stamp: whether a bar's time is its begin or its end.
    half_days: `us`: 13:00 on the day after Thanksgiving, on 24 December and on 3 July, where these are
        trading days by NYSE's published rule, where the zone is New York's or Chicago's; `none`: every session has
        its full length.
    """

    begin: str = "09:30"
    end: str = "16:00"
    zone: str = "America/New_York"
    data_zone: str = "America/New_York"
    stamp: choices.BarTime = "begin"
    half_days: choices.HalfDays = "us"

    def __post_init__(self) -> None:
        _require_choices(self)
        for name in ("begin", "end"):
            if not re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d|24:00", getattr(self, name)):
                raise TrainerError("RM500", what=f"{getattr(self, name)!r} is no time of day such as 09:30")

    @property
    def begin_minute(self) -> int:
        """Minutes from midnight to the begin."""
        return _minutes(self.begin)

    @property
    def minutes(self) -> int:
        """Length of a full session in minutes, 1 to 1440."""
        return (_minutes(self.end) - self.begin_minute - 1) % 1440 + 1

    def as_dict(self) -> dict[str, Any]:
        """Return the conventions in JSON's types."""
        return asdict(self)


def _minutes(text: str) -> int:
    hours, minutes = text.split(":")
    return int(hours) * 60 + int(minutes)
