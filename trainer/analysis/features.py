"""`python -m trainer features`: list what can be computed, or compute it into an Arrow file."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainer.data.features.catalog import CATALOG
from trainer.runtime.errors import TrainerError
from trainer.runtime.events import emit, say
from trainer.storage.output_file import require_output

if TYPE_CHECKING:
    from trainer.config.sections.bars import FeaturesConfig


WIDEST = 1000  # columns of a pipe: a formula stays in one line
NOTES = (
    "A: mean true range of the 14 sessions before, at least one tick; a session's true range needs the last close of "
    "the one before, so A begins with the 16th session. so far: from the session's first bar.",
    "Levels and value areas follow the options of `features --help`. By default a bar's volume is in equal shares in "
    "all rows of its range, each rounded down to a multiple of 2^-20. A row's centre is the middle of its lowest and "
    "highest tick, its lower and upper edge are these ticks; with --allocation proportional the upper edge is the "
    "next row's lowest tick, and a close on the range's upper edge counts to the row below. With --rows occupied a "
    "profile without any volume is its lowest row.",
    "Nodes' bins are the nearest whole rows high, at least one, and the grid of bins begins at price zero. "
    "nearest_lvn_dist leaves out the close's own bin; nearest_hvn_dist is 0 where there is no such node.",
    "Where no volume was so far, each bar counts once in VWAP and its deviation. vwap_band_z is 0 where that deviation "
    "is. bar_delta_proxy is 0 for a bar without range, and without volume. Standard deviations divide by n.",
    "The first 60 minutes are those of the session's hours, for bars that close within them; where none does, the "
    "three features of balance are 0.",
    "Daily bars have features of their own: see `python -m trainer train` with --features daily.",
)


def print_catalog() -> None:
    """Print name, unit and formula of every feature, in columns, without anything heavy; lines fit a terminal."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDEST
    print("\n".join(catalog_lines(width)))


def catalog_lines(width: int) -> Iterator[str]:
    """Yield the features and what their formulas take for granted.

    Args:
        width: columns of the terminal, of which the last one stays free.
    """
    group = ""
    for place, feature in enumerate(CATALOG, 1):
        if feature.group != group:
            group = feature.group
            yield ""
            yield from _wrapped(
                f"{group}{' (left out where the data has no VIX column)' if feature.needs_vix else ''}", width, ""
            )
        named, unit = f"{place:>3} {feature.name:<22}", f"[{feature.unit}]"
        yield from [f"{named} {unit}"] if len(named) + len(unit) + 1 < width else [named.rstrip(), f"    {unit}"]
        yield from _wrapped(feature.formula, width, "    ")
    yield ""
    for note in NOTES:
        yield from _wrapped(note, width, "")


def _wrapped(text: str, width: int, margin: str) -> list[str]:
    return textwrap.wrap(
        text, width - 1, initial_indent=margin, subsequent_indent=margin, break_long_words=False, break_on_hyphens=False
    )


def run(arguments: dict[str, Any]) -> int:
    """Run the command; return the exit status.

    Raises:
        TrainerError: for everything the user can put right.
    """
    from trainer.config.sections.bars import FeaturesConfig
    from trainer.config.setting import built

    config = built(FeaturesConfig, arguments)
    if config.list:
        print_catalog()
        return 0
    if config.features in ("table", "daily"):
        what = f"features --features {config.features}: only features of intraday bars are written to a file"
        next_step = f"`train --features {config.features}` needs no such file: it makes its inputs by itself."
        raise TrainerError("RM500", what=what, next=next_step)
    if config.data is None or config.out is None:
        raise TrainerError("RM500", what="features needs --data FILE and --out FILE, or --list")
    write(config, config.data, config.out)
    return 0


def write(config: FeaturesConfig, data: Path, out: Path) -> None:
    """Compute the features of a file into `out`, with a progress line and JSON events.

    Args:
        data: bars.
        out: Arrow file to write; its metadata's path is this with ".json".
    """
    from trainer.data.features.build_features import reading_of, start_build
    from trainer.data.features.feature_file import metadata_path
    from trainer.data.features.inspect import inspect_data
    from trainer.data.features.progress import bar_counter
    from trainer.data.readers.bars import open_source
    from trainer.runtime.signals import ends_on_sigterm
    from trainer.tasks.assumptions import of_file, of_sessions

    for made in (out, metadata_path(out)):
        require_output(made, "--out", {"--data": data}, through=False)
    source = open_source(data, reading_of(config.inputs))
    found = inspect_data(source)
    if config.features == "daily" or (config.features == "auto" and found.daily):
        what = f"the bars are {found.spacing / 3600:g} hours apart, and days have no session to compute from"
        raise TrainerError("RM579", what=what, where=str(data))
    build = start_build(config.inputs, source, found)
    for line in of_file(source, weekend=found.weekend):
        say(line)
    with bar_counter(sys.stderr) as counter, ends_on_sigterm():
        build.progress = counter
        record = build.write(out)
    say(of_sessions(record, found.day_ticks))
    if words := source.bad.summary():
        say(words)
    report(record, out)


def report(record: Mapping[str, Any], out: Path) -> None:
    """Report what was written to `out`, as an event and as text; `record` is the content of its metadata."""
    if record["left_out"]:
        say(f"left out, the data has no VIX column: {', '.join(record['left_out'])}")
    emit("features", file=str(out), **{name: record[name] for name in ("key", "rows", "seconds", "bars_per_second")})
    rows = record["rows"]
    say(
        f"{out}: {len(record['features'])} features of {rows['in_sessions']:,} bars in {rows['sessions']:,} sessions, "
        f"{record['bars_per_second']:,} bars/s; {rows['outside_sessions']:,} bars outside sessions, "
        f"{rows['past_too_short']:,} rows whose past is too short"
    )
