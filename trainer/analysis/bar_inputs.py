"""Intraday features of new bars, computed by the conventions that a finished run recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainer.data.bar import Dates
from trainer.data.conventions import ProfileConventions, SessionConventions
from trainer.data.features.catalog import CATALOG
from trainer.data.features.intraday import Settings, intraday_rows
from trainer.data.profiles.session_blocks import Counts
from trainer.data.readers.bars import Reading, columns_of, open_source
from trainer.data.readers.joined_series import ROLE
from trainer.runtime.errors import TrainerError
from trainer.storage.metadata_schema import Metadata


def recorded_features(metadata: Metadata, data: Path) -> tuple[Dates, NDArray[Any]]:
    """Return dates (bars,) and features (bars, features) of the in-session bars of `data`.

    Raises:
        TrainerError: RM510 to RM516 for the data, RM548 where this trainer has other features.
    """
    require_known(metadata)
    settings = settings_of(metadata)
    config = metadata.config
    named = columns_of(config.get("columns", ()))
    reading = Reading(
        chunk_size=config["chunk_size"],
        on_bad_row=config["on_bad_row"],
        zone=config["time_zone"],
        time_format=config["time_format"],
        columns=tuple(each for each in named if each[0] != ROLE) if config.get("join") else named,
    )
    source = open_source(data, reading)
    if settings.vix and "vix_close" not in source.columns.place:
        advice = "Give one file of bars with a column vix_close." if config.get("join") else ""
        raise TrainerError("RM512", what="the model needs a VIX column", where=str(data), next=advice)
    parts = list(intraday_rows(source.chunks(), settings, counts=Counts()))
    if not parts:
        raise TrainerError("RM578", what="no bar is within the model's session", where=str(data))
    names = [feature.name for feature in metadata.features]
    chosen = [settings.names.index(name) for name in names]
    return np.concatenate([part.date for part in parts]), np.concatenate([part.features for part in parts])[:, chosen]


def settings_of(metadata: Metadata) -> Settings:
    """Return the conventions as they were recorded."""
    recorded = metadata.feature_set["conventions"]
    profile = {name: value for name, value in recorded["profile"].items() if name != "volume_unit"}
    needs_vix = {feature.name for feature in CATALOG if feature.needs_vix}
    return Settings(
        profile=ProfileConventions(**profile),
        sessions=SessionConventions(**recorded["session"]),
        spacing=recorded["bar_seconds"],
        vix=any(feature.name in needs_vix for feature in metadata.features),
    )


def require_known(metadata: Metadata) -> None:
    """Raise RM548 where a feature is unknown here or has another formula."""
    known = {feature.name: feature.formula for feature in CATALOG}
    for feature in metadata.features:
        if known.get(feature.name) != feature.formula:
            why = f"the model was trained on {feature.formula}; here it is {known.get(feature.name, 'unknown')}"
            raise TrainerError("RM548", what=f"the feature {feature.name!r} is another one here", why=why)
