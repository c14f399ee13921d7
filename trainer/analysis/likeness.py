"""New data next to those of the training: bars of another spacing or price step are refused, far values are named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainer.data.bar import Bars
from trainer.data.features.inspect import ROWS, TICKS
from trainer.data.readers.bars import Source
from trainer.data.ticks import off_tick
from trainer.runtime.errors import TrainerError
from trainer.runtime.events import say
from trainer.tasks.records.row_schema import Metadata

FEW_STEPS = 20  # between bars, below which a weekend or a gap decides what is most frequent
ALIKE = 1.25  # times: months have 28 to 31 days, and stay alike
MANY_OFF = 0.5  # of the bars, from which prices move in another step
MANY_PRICES = 100  # different ones, from which a coarser step that fits them all is no chance
FAR = 8.0  # standard deviations of the training rows, from which the middle of the new rows is another level
FEW_ROWS = 5  # below which the middle row says nothing of the others
SHOWN = 5  # features that are named


def require_same_bars(source: Source, metadata: Metadata) -> None:
    """Compare the first new bars with what the run recorded of its own.

    Args:
        source: the new bars.
        metadata: of the finished run.

    Raises:
        TrainerError: RM519 for bars of another spacing, or whose prices mostly lie between the run's price steps.
    """
    bars = first_bars(source)
    if bars is None:
        return
    _require_spacing(bars, metadata, source)
    conventions = metadata.feature_set.get("conventions")
    if conventions:
        _require_tick(bars, float(conventions["profile"]["tick"]), metadata, source)


def first_bars(source: Source) -> Bars | None:
    """Return the sound bars among the first rows, None where there is none; what `source` counts stays as it is."""
    reading = replace(source.reading, chunk_size=ROWS, on_bad_row="drop")
    scratch = replace(source, reading=reading, bad=replace(source.bad, policy="drop"), series=None, joining=None)
    return next(islice(scratch.chunks(), 1), None)


def _require_spacing(bars: Bars, metadata: Metadata, source: Source) -> None:
    trained = trained_spacing(metadata)
    steps, counts = np.unique(np.diff(bars.date).astype(np.int64), return_counts=True)
    if trained is None or counts.sum() < FEW_STEPS:
        return
    found = int(steps[counts.argmax()])
    if found > 0 and not 1 / ALIKE < found / trained < ALIKE:
        what = f"most bars are {spoken(found)} apart, and {metadata.run} was trained on bars of {spoken(trained)}"
        advice = f"Give bars of {spoken(trained)}, or train a model on bars like these."
        raise TrainerError("RM519", what=what, where=str(source.path), next=advice)


def trained_spacing(metadata: Metadata) -> int | None:
    """Return the seconds between the bars of a run, None where an earlier trainer did not record them."""
    made = metadata.feature_set
    recorded = made["conventions"]["bar_seconds"] if "conventions" in made else made.get("bar_seconds")
    return int(recorded) if recorded else None


def _require_tick(bars: Bars, tick: float, metadata: Metadata, source: Source) -> None:
    prices = np.stack([bars.open, bars.high, bars.low, bars.close])
    off = float(off_tick(prices, tick).any(axis=0).mean())
    rows = metadata.feature_set.get("rows") or {}
    before = rows.get("prices_rounded_to_tick", 0) / max(1, rows.get("bars", 1))
    if off >= MANY_OFF > before:
        what = f"{off:.0%} of the bars have prices between the steps of {tick:g} that {metadata.run} was trained with"
        advice = "Give bars of the same instrument, or train a model on bars like these."
        raise TrainerError("RM519", what=what, where=str(source.path), next=advice)
    coarser = [step for step in TICKS if step > tick * ALIKE and not off_tick(prices, step).any()]
    found = metadata.config.get("tick") is None  # one that was given may be finer than the training's prices, too
    if coarser and found and len(np.unique(prices)) >= MANY_PRICES:
        say(
            f"RM519 all prices move in steps of {max(coarser):g}, and {metadata.run} was trained on steps of {tick:g}: "
            "see that this is the same instrument"
        )


def report_far(features: NDArray[Any], metadata: Metadata, names: Sequence[str]) -> None:
    """Name the inputs whose level is far from that of the training rows, since the model has seen none there.

    Args:
        features: inputs before scaling of the rows that are forecast, shape (rows, features).
        metadata: of the finished run.
        names: names of the inputs, in their order.
    """
    if len(features) < FEW_ROWS:
        return
    mean, std = (np.array(values, dtype=np.float64) for values in (metadata.scaler.mean, metadata.scaler.std))
    away = np.abs(np.median(features, axis=0) - mean) / std
    coded = {embedding["column"] for embedding in metadata.model.embeddings}
    far = [place for place in np.argsort(-away).tolist() if away[place] > FAR and place not in coded]
    if far:
        more = f" and {len(far) - SHOWN} more" if len(far) > SHOWN else ""
        shown = ", ".join(f"{names[place]} ({away[place]:,.0f})" for place in far[:SHOWN])
        say(f"RM519 half of the rows or more lie far from all training rows, in standard deviations: {shown}{more}")


def spoken(seconds: int) -> str:
    """Return a span of time in the largest unit that it is a whole number of."""
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds % size == 0:
            return f"{seconds // size:,} {unit}{'' if seconds == size else 's'}"
    return f"{seconds:,} s"
