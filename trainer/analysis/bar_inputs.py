"""New bars, read and joined by the conventions that a finished run recorded, and their intraday features."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainer.analysis.likeness import require_same_bars
from trainer.data.bar import Dates
from trainer.data.conventions import ProfileConventions, SessionConventions
from trainer.data.features.catalog import CATALOG
from trainer.data.features.daily_features import FEATURES
from trainer.data.features.intraday import Settings, intraday_rows
from trainer.data.profiles.session_blocks import Counts
from trainer.data.readers.bars import CHUNK, Reading, Source, columns_of, open_source
from trainer.data.readers.forms.naming import NONE
from trainer.data.readers.joined_series import KNOWN_OF_DAYS, ROLE, Join, Series
from trainer.runtime.errors import TrainerError
from trainer.runtime.events import say
from trainer.tasks.records.row_schema import Metadata


@dataclass(frozen=True, kw_only=True)
class NewBars:
    """Bars to forecast: their file, perhaps a second one with the VIX, and columns by role where they are named."""

    data: Path
    join: Path | None = None
    columns: tuple[str, ...] = ()


def open_bars(metadata: Metadata, new: NewBars) -> Source:
    """Look at new bars by what the run recorded of its own: conventions, columns, policies and the join.

    Raises:
        TrainerError: RM510 to RM516 for the data, RM511 to RM513 for the second file; RM512 where its values are of
            days and the run's were of minutes, or the other way round, RM519 for bars unlike those of the training.
    """
    config = metadata.config
    named = columns_of(new.columns or config.get("columns", ()))
    own = named if new.join or not config.get("join") else tuple(each for each in named if each[0] != ROLE)
    reading = Reading(
        chunk_size=config.get("chunk_size", CHUNK),
        on_bad_row=config.get("on_bad_row", "error"),
        zone=config.get("time_zone", Reading.zone),
        time_format=config.get("time_format"),
        columns=own,
        join=join_of(metadata, new.join, dict(named).get(ROLE)) if new.join else None,
    )
    source = open_source(new.data, reading)
    before = metadata.data.read
    same = (before.get("columns") or {}).get("date") == source.columns.used["date"]
    if same and source.times.zone == source.columns.zone and before.get("time_zone") == reading.zone:
        source.times = replace(source.times, zone=None)  # earlier trainers did not read `Gmt time` as a zone
    require_alike(source.series, metadata)
    require_volume(source, metadata, named)
    require_same_bars(source, metadata)
    return source


def join_of(metadata: Metadata, second: Path, column: str | None) -> Join:
    """Return how a second file is joined: as the run's was, with the very tolerance that it came to.

    Args:
        second: file with the VIX.
        column: name or number of its column; None where it is to be found.
    """
    config, before = metadata.config, metadata.data.read.get("joined") or {}
    return Join(
        path=second,
        outside=config.get("join_outside", Join.outside),
        tolerance=before.get("tolerance_seconds", config.get("join_tolerance")),
        stamp=config.get("bar_time", Join.stamp),
        own_stamp=config.get("join_time"),
        zone=config.get("time_zone", Join.zone),
        column=column,
    )


def require_alike(series: Series | None, metadata: Metadata) -> None:
    """Raise RM512 where the joined values are of days and those of training were of a shorter time, or reversed."""
    before = metadata.data.read.get("joined")
    if series is None or before is None or series.days == (before["known"] == KNOWN_OF_DAYS):
        return
    kinds = ("values of days", "values with a time of day")
    found, trained = kinds if series.days else reversed(kinds)
    what = f"the joined file has {found}, and the run was trained on {trained}"
    raise TrainerError("RM512", what=what, where=str(series.join.path), next="Give a file like that of training.")


def require_volume(source: Source, metadata: Metadata, named: Iterable[tuple[str, str]]) -> None:
    """Raise RM512 where the run was trained with volumes, and the file has none and no option states so.

    Args:
        source: the new bars.
        metadata: of the run.
        named: columns that were given by role.
    """
    trained = (metadata.data.read.get("columns") or {}).get("volume", NONE)
    if trained != NONE and source.columns.used["volume"] == NONE and "volume" not in dict(named):
        what = f"the file has no volume, and the run was trained with that of column {trained!r}"
        advice = f"Give bars with a volume, or state that there is none: --columns volume={NONE}."
        raise TrainerError("RM512", what=what, where=str(source.path), next=advice)


def require_vix(source: Source, metadata: Metadata, new: NewBars) -> None:
    """Raise RM512 where the model needs the VIX and neither file has it."""
    if not needs_vix(metadata) or source.series is not None or ROLE in source.columns.place:
        return
    trained = ", as the run was trained with" if metadata.config.get("join") else ""
    advice = f"Give its file by --join FILE{trained}, or one file of bars with a column {ROLE}."
    raise TrainerError("RM512", what="the model needs a VIX column", where=str(new.data), next=advice)


def needs_vix(metadata: Metadata) -> bool:
    """Return whether any feature of the model is made of the VIX."""
    made_of_it = {feature.name for feature in CATALOG if feature.needs_vix} | {
        feature.name for feature in FEATURES if feature.needs_vix
    }
    return any(feature.name in made_of_it for feature in metadata.features)


def recorded_features(metadata: Metadata, new: NewBars) -> tuple[Dates, NDArray[Any]]:
    """Return dates (bars,) and features (bars, features) of the in-session bars of new data.

    Raises:
        TrainerError: RM510 to RM516 for the data, RM548 where this trainer has other features.
    """
    require_known(metadata)
    settings = settings_of(metadata)
    source = open_bars(metadata, new)
    require_vix(source, metadata, new)
    counts = Counts()
    parts = list(intraday_rows(source.chunks(), settings, counts=counts))
    if not parts:
        raise _outside(source, settings)
    if counts.outside:
        say(f"{counts.outside:,} of {counts.bars:,} bars have no forecast: they are outside of the {_hours(settings)}")
    names = [feature.name for feature in metadata.features]
    chosen = [settings.names.index(name) for name in names]
    return np.concatenate([part.date for part in parts]), np.concatenate([part.features for part in parts])[:, chosen]


def _outside(source: Source, settings: Settings) -> TrainerError:
    """Return the error for new bars of which none is within the sessions that the model was trained on."""
    what = f"no bar is within the {_hours(settings)}"
    if source.zone is None:
        advice = f"Give intraday bars, {settings.spacing} seconds long as those of the training: these are days."
    else:
        advice = f"Give bars of these hours; their times are taken as {source.zone}, as in the training."
    return TrainerError("RM578", what=what, where=str(source.path), next=advice)


def _hours(settings: Settings) -> str:
    hours = settings.sessions
    return f"model's session, {hours.begin}-{hours.end} {hours.zone}"


def settings_of(metadata: Metadata) -> Settings:
    """Return the conventions as they were recorded."""
    recorded = metadata.feature_set["conventions"]
    profile = {name: value for name, value in recorded["profile"].items() if name != "volume_unit"}
    return Settings(
        profile=ProfileConventions(**profile),
        sessions=SessionConventions(**recorded["session"]),
        spacing=recorded["bar_seconds"],
        vix=needs_vix(metadata),
    )


def require_known(metadata: Metadata) -> None:
    """Raise RM548 where a feature is unknown here or has another formula."""
    known = {feature.name: feature.formula for feature in CATALOG}
    for feature in metadata.features:
        if known.get(feature.name) != feature.formula:
            why = f"the model was trained on {feature.formula}; here it is {known.get(feature.name, 'unknown')}"
            raise TrainerError("RM548", what=f"the feature {feature.name!r} is another one here", why=why)
