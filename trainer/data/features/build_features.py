"""From a file of bars to a file of features: surveyed, computed, kept under a name made of all that decides it."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import trainer
from trainer.config.sections.bars import FeatureConfig
from trainer.config.sections.rows import ReadingConfig
from trainer.data.bar import Bars, Dates
from trainer.data.conventions import ProfileConventions, SessionConventions
from trainer.data.features.catalog import CATALOG
from trainer.data.features.feature_file import read_record, write_table
from trainer.data.features.inspect import DataSummary
from trainer.data.features.intraday import Rows, Settings, intraday_rows
from trainer.data.profiles.session_blocks import Counts
from trainer.data.readers.bars import Reading, Source, columns_of
from trainer.data.readers.data_file import DataFile, data_file, digest_of
from trainer.data.readers.joined_series import ROLE, Join
from trainer.data.sessions import DAY, session_clock, wall_clock
from trainer.data.ticks import off_tick
from trainer.runtime.errors import TrainerError
from trainer.runtime.paths import PACKAGE

DAY_AND_NIGHT = "18:00-17:00"  # of the futures of CME, in New York's time
MANY = 400_000  # bars of a file from which starting worker processes pays
BYTES_A_BAR = 60  # about, in a CSV file
# The modules of data/ that decide what a feature's value is: reading, profiles, features. A test holds the list equal
# to what this module imports from data/, so that none is left out and none that only trains makes features anew.
DECIDING = (
    "data/bar.py",
    "data/conventions.py",
    "data/features/bar_features.py",
    "data/features/build_features.py",
    "data/features/catalog.py",
    "data/features/feature_file.py",
    "data/features/history_features.py",
    "data/features/inspect.py",
    "data/features/intraday.py",
    "data/features/profile_features.py",
    "data/features/session_features.py",
    "data/features/workers.py",
    "data/profiles/compiled/levels.c",
    "data/profiles/compiled/levels.py",
    "data/profiles/compiled/library.py",
    "data/profiles/developing.py",
    "data/profiles/finished.py",
    "data/profiles/moments.py",
    "data/profiles/profile.py",
    "data/profiles/rolling.py",
    "data/profiles/segments.py",
    "data/profiles/session_blocks.py",
    "data/profiles/session_grid.py",
    "data/profiles/value_area.py",
    "data/profiles/value_search.py",
    "data/profiles/volume_nodes.py",
    "data/profiles/zones.py",
    "data/readers/arrow.py",
    "data/readers/bad_rows.py",
    "data/readers/bar_checks.py",
    "data/readers/bars.py",
    "data/readers/column_names.py",
    "data/readers/csv_rows.py",
    "data/readers/data_file.py",
    "data/readers/forms/by_content.py",
    "data/readers/forms/clocks.py",
    "data/readers/forms/last_line.py",
    "data/readers/forms/marks.py",
    "data/readers/forms/naming.py",
    "data/readers/forms/other_files.py",
    "data/readers/forms/plain_table.py",
    "data/readers/forms/spellings.py",
    "data/readers/forms/volume_names.py",
    "data/readers/headers.py",
    "data/readers/joined_series.py",
    "data/readers/numbers.py",
    "data/readers/stream.py",
    "data/readers/timestamps.py",
    "data/sessions.py",
    "data/tables/number_marks.py",
    "data/ticks.py",
)


def reading_of(config: FeatureConfig) -> Reading:
    """Return how the configuration wants the bars read, and joined."""
    columns = columns_of(config.reading.columns)
    second = config.second
    join = None
    if second.join is not None:
        join = Join(
            path=second.join,
            outside=second.join_outside,
            tolerance=second.join_tolerance,
            stamp=config.sessions.bar_time,
            own_stamp=second.join_time,
            zone=config.reading.time_zone,
            column=dict(columns).get(ROLE),
        )
    return replace(_reading_of(config.reading), join=join)


def _reading_of(config: ReadingConfig) -> Reading:
    return Reading(
        chunk_size=config.chunk_size,
        on_bad_row=config.on_bad_row,
        zone=config.time_zone,
        time_format=config.time_format,
        columns=columns_of(config.columns),
    )


def settings_of(config: FeatureConfig, found: DataSummary, where: Path) -> Settings:
    """Return the conventions, with what was found in the data where the configuration has auto.

    Args:
        where: path of the data, for messages.

    Raises:
        TrainerError: RM577 where no usual price step fits the prices and none was given.
    """
    chosen, hours = config.profile, config.sessions
    tick = chosen.tick or found.tick
    if tick is None:
        raise TrainerError("RM577", what="no usual price step fits all prices of the first bars", where=str(where))
    begin, end = hours.session.split("-")
    profile = ProfileConventions(
        tick=tick,
        row_ticks=chosen.row_ticks,
        row_origin=chosen.row_origin,
        rounding=chosen.rounding,
        allocation=chosen.allocation,
        levels=chosen.levels,
        rows=chosen.rows,
        poc_tie=chosen.poc_tie,
        expansion=chosen.expansion,
        value_tie=chosen.value_tie,
        value_share=round(chosen.value_area * 10_000),
        reach=chosen.reach,
        volume_bits=found.volume_bits,
    )
    sessions = SessionConventions(
        begin=begin,
        end=end,
        zone=hours.session_zone,
        data_zone=config.reading.time_zone,
        stamp=hours.bar_time,
        half_days=hours.half_days,
    )
    return Settings(profile=profile, sessions=sessions, spacing=found.spacing, vix=found.vix)


@dataclass(kw_only=True)
class Build:
    """One computation of features: from `source`, under `settings`, with its progress passed to `progress` in bars."""

    source: Source
    settings: Settings
    workers: int
    sha256: str
    progress: Callable[[int], None] = lambda bars: None
    counts: Counts = field(default_factory=Counts)
    off_tick: int = 0
    unknown: int = 0
    day_and_night: int = 0
    at_begin: int = 0
    at_end: int = 0

    @property
    def key(self) -> str:
        """The hash of all that decides the values: the input's bytes, the reading, the conventions, the code."""
        reading = self.source.reading
        decisive: dict[str, Any] = {
            "input": self.sha256,
            "reading": [reading.zone, reading.time_format, reading.on_bad_row, reading.columns],
            "conventions": conventions_of(self.settings),
            "code": code_version(),
        }
        if (series := self.source.series) is not None:
            decisive["joined"] = [series.sha256, *series.join.as_list()]
        return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()

    def write(self, path: Path) -> dict[str, Any]:
        """Compute all features into `path`; return the metadata written next to it."""
        began = time.perf_counter()

        def record() -> dict[str, Any]:
            if not self.counts.sessions:
                where, what = str(self.source.path), f"none of {self.counts.bars:,} bars is within a session"
                hours = self.settings.sessions
                what += f", {hours.begin}-{hours.end} {hours.zone}"
                advice = "Take all hours with --session 00:00-24:00, or name the market's own with --session and "
                advice += "--session-zone, and the zone of the file's times with --time-zone."
                raise TrainerError("RM578", what=what, where=where, next=advice)
            return self.record(time.perf_counter() - began)

        return write_table(path, self._rows(), self.settings.names, record)

    def _rows(self) -> Generator[Rows, None, None]:
        for rows in intraday_rows(self._bars(), self.settings, counts=self.counts, workers=self.workers):
            self.unknown += int((~np.isfinite(rows.features).all(axis=1)).sum())
            self.progress(len(rows.date))
            yield rows

    def _bars(self) -> Iterator[Bars]:
        for bars in self.source.chunks():
            prices = np.stack([bars.open, bars.high, bars.low, bars.close])
            self.off_tick += int(off_tick(prices, self.settings.profile.tick).any(axis=0).sum())
            self.day_and_night += kept_by(bars.date, DAY_AND_NIGHT, self.settings)
            begin, end = at_bounds(bars.date, self.settings.sessions)
            self.at_begin, self.at_end = self.at_begin + begin, self.at_end + end
            yield bars

    def record(self, seconds: float) -> dict[str, Any]:
        """Return everything about the features but the values; only `seconds` differs between equal builds."""
        inside = self.counts.bars - self.counts.outside
        file: DataFile = data_file(self.source, self.sha256)
        return {
            "schema_version": 1,
            "key": self.key,
            "input": vars(file),
            "conventions": conventions_of(self.settings),
            "features": [
                {"name": f.name, "formula": f.formula, "unit": f.unit} for f in CATALOG if f.name in self.settings.names
            ],
            "left_out": dict.fromkeys(self.settings.left_out, "the data has no VIX column"),
            "rows": {
                "bars": self.counts.bars,
                "outside_sessions": self.counts.outside,
                "in_sessions": inside,
                "in_day_and_night": self.day_and_night,
                "at_session_begin": self.at_begin,
                "at_session_end": self.at_end,
                "sessions": self.counts.sessions,
                "past_too_short": self.unknown,
                "prices_rounded_to_tick": self.off_tick,
            },
            "code": code_version(),
            "versions": {"trainer": trainer.__version__, "numpy": np.__version__, "polars": pl.__version__},
            "seconds": round(seconds, 3),
            "bars_per_second": round(inside / seconds),
        }


def kept_by(date: Dates, hours: str, settings: Settings) -> int:
    """Return how many bars other hours of a session would keep.

    Args:
        date: times in UTC, shape (bars,).
        hours: as `--session` takes them.
    """
    begin, end = hours.split("-")
    other = replace(settings.sessions, begin=begin, end=end, half_days="none")
    return int(session_clock(date, other, settings.spacing).inside.sum())


def at_bounds(date: Dates, sessions: SessionConventions) -> tuple[int, int]:
    """Return how many bars bear the time at which sessions begin, and the one at which they end.

    Args:
        date: times in UTC, shape (bars,).
    """
    minute = wall_clock(date, sessions.zone).astype(np.int64) % DAY / 60
    begin = sessions.begin_minute
    return int((minute == begin).sum()), int((minute == (begin + sessions.minutes) % (DAY // 60)).sum())


def conventions_of(settings: Settings) -> dict[str, Any]:
    """Return everything that was chosen, in JSON's types."""
    return {
        "profile": settings.profile.as_dict(),
        "session": settings.sessions.as_dict(),
        "bar_seconds": settings.spacing,
        "stored_as": "float32, computed as float64",
        "return_windows": "over session bounds",
    }


@cache
def code_version() -> str:
    """Return a hash of the modules that decide the values, and of the version of numpy they run on."""
    digest = hashlib.sha256(np.__version__.encode())
    for name in DECIDING:
        digest.update(name.encode() + b"\0" + (PACKAGE / name).read_bytes())
    return digest.hexdigest()[:16]


def workers_for(config: FeatureConfig, path: Path) -> int:
    """Return how many processes compute: as asked, else one for small files and one a processor for large ones."""
    if config.workers is not None:
        return config.workers
    return len(os.sched_getaffinity(0)) if path.stat().st_size > MANY * BYTES_A_BAR else 1


def start_build(config: FeatureConfig, source: Source, found: DataSummary) -> Build:
    """Return a computation that is ready to write; the input is hashed for it."""
    settings = settings_of(config, found, source.path)
    workers = workers_for(config, source.path)
    return Build(source=source, settings=settings, workers=workers, sha256=digest_of(source.path))


def cached(build: Build, folder: Path) -> tuple[Path, bool]:
    """Return the feature file of a build in `folder`, computing it where it is not there; and whether it was."""
    path = folder / f"{build.key[:32]}.arrow"
    try:
        if read_record(path)["key"] == build.key:
            return path, True
    except TrainerError:
        path.unlink(missing_ok=True)
    build.write(path)
    return path, False
