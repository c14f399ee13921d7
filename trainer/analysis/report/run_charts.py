"""The pictures of a run's page, each from the numbers it shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from trainer.analysis.report import svg
from trainer.analysis.report.importance import Importance
from trainer.analysis.report.session import Profile
from trainer.data.bar import Floats
from trainer.tasks.metrics.classification import calibration, calibration_error

MOST_DOTS, MOST_BARS, BINS = 1500, 30, 30


def losses(epochs: Sequence[dict[str, Any]], loss: str) -> str:
    """Return the curves of training and validation loss, with the epoch whose weights were kept."""
    curves = {name: [(e["epoch"], e[f"{name}_loss"]) for e in epochs] for name in ("train", "validation")}
    values = [value for points in curves.values() for _, value in points]
    log = min(values) > 0 and max(values) / min(values) > 20
    best = [each for each in epochs if each["best"]][-1]
    frame = svg.Frame(
        x=svg.span([each["epoch"] for each in epochs]),
        y=svg.span(values) if log else svg.span(values, zero=True),
        x_label="epoch",
        y_label=f"{loss}{', logarithmic' if log else ''}",
        log=log,
    )
    body = [
        *svg.axes(frame),
        svg.path(frame, curves["train"], "one"),
        svg.path(frame, curves["validation"], "two"),
        *svg.dots(frame, [(best["epoch"], best["validation_loss"])], "mark", 5),
        *svg.legend([("one", "training"), ("two", "validation")]),
    ]
    words = (
        f"Training ends at {epochs[-1]['train_loss']:.4g}, validation at {epochs[-1]['validation_loss']:.4g}; the "
        f"weights of epoch {best['epoch']} were kept (circle), {best['validation_loss']:.4g} on validation"
    )
    return svg.figure("Loss by epoch", words, body)


def reliability(target: Floats, chances: Floats, part: str) -> str:
    """Return how often answers of each probability were right.

    Args:
        target: class of each row, 0 or 1, shape (rows,).
        chances: probability of class 1, shape (rows,).
        part: name of the part, for the caption.
    """
    bins = calibration(target.astype(np.int64), chances)
    frame = svg.Frame(x=(0, 1), y=(0, 1), x_label="probability of the answer", y_label="share of right answers")
    points = [(each["confidence"], each["accuracy"]) for each in bins]
    most = max(each["rows"] for each in bins)
    body = [
        *svg.axes(frame),
        svg.path(frame, [(0, 0), (1, 1)], "ideal"),
        svg.path(frame, points, "one"),
        *(
            dot
            for each, point in zip(bins, points, strict=True)
            for dot in svg.dots(frame, [point], "mark", 2 + 6 * (each["rows"] / most) ** 0.5)
        ),
    ]
    words = (
        f"On the diagonal predicted probability equals observed frequency; larger circles hold more of the "
        f"{len(target):,} rows. The mean distance is {calibration_error(bins):.3f}"
    )
    return svg.figure(f"Calibration on the {part} part", words, body)


def scatter(target: Floats, forecast: Floats, unit: str, part: str) -> str:
    """Return forecasts against what came, at most MOST_DOTS of them.

    Args:
        target: true values, shape (rows,).
        forecast: forecasts, shape (rows,).
        unit: unit of target and forecast, for the axes; empty for none.
        part: name of the part, for the caption.
    """
    both = svg.span([*target.tolist(), *forecast.tolist()])
    frame = svg.Frame(x=both, y=both, x_label=f"forecast, {unit}", y_label="what came")
    chosen = np.linspace(0, len(target) - 1, min(len(target), MOST_DOTS)).astype(np.int64)
    points = list(zip(forecast[chosen].tolist(), target[chosen].tolist(), strict=True))
    body = [*svg.axes(frame), svg.path(frame, [(both[0], both[0]), (both[1], both[1])], "ideal")]
    shown = "" if len(chosen) == len(target) else f"{len(chosen):,} of {len(target):,} rows, evenly taken. "
    error = float(np.sqrt(np.mean((target - forecast) ** 2)))
    words = f"{shown}On the diagonal a forecast is exact; the root mean squared error is {error:.4g}"
    return svg.figure(f"Forecasts on the {part} part", words, [*body, *svg.dots(frame, points, "dot")])


def errors(target: Floats, forecast: Floats, unit: str, part: str) -> str:
    """Return how often errors of each size occur.

    Args:
        target: true values, shape (rows,).
        forecast: forecasts, shape (rows,).
        unit: unit of target and forecast, for the axes; empty for none.
        part: name of the part, for the caption.
    """
    counts, edges = np.histogram(target - forecast, BINS)
    frame = svg.Frame(
        x=(float(edges[0]), float(edges[-1])),
        y=svg.span(counts.tolist(), zero=True),
        x_label=f"what came less the forecast, {unit}",
        y_label="rows",
    )
    boxes = [
        svg.rect(
            frame.px(low) + 0.5,
            frame.py(count),
            frame.px(high) - frame.px(low) - 1,
            frame.py(0) - frame.py(count),
            "bar",
        )
        for count, low, high in zip(counts.tolist(), edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    ]
    middle, spread = float(np.mean(target - forecast)), float(np.std(target - forecast))
    words = f"Mean {middle:.4g}, standard deviation {spread:.4g}"
    return svg.figure(f"Errors on the {part} part", words, [*svg.axes(frame), *boxes])


def importance(found: Sequence[Importance], loss: str, repeats: int, seed: int) -> str:
    """Return the inputs by what the model loses without them.

    Args:
        found: importance of each input, largest first.
        loss: name of the loss.
        repeats: shuffles of each input.
        seed: seeds the shuffles of columns; the same seed repeats the figures.
    """
    shown = found[:MOST_BARS]
    body, height = svg.bars_across(
        [(each.name, each.mean, each.deviation) for each in shown], f"growth of the validation {loss}"
    )
    rest = f"; the {len(found) - len(shown)} smallest are left out" if len(found) > len(shown) else ""
    words = (
        f"How much the loss on the validation part grows where one input is shuffled: mean of {repeats} shuffles from "
        f"seed {seed}, the line is one standard deviation{rest}. Inputs that are redundant share their importance"
    )
    return svg.figure("Importance of each input", words, body, height)


def profile(found: Profile) -> str:
    """Return a session's volume by price, with its point of control and value area."""
    frame = svg.Frame(
        x=svg.span(found.volume.tolist(), zero=True),
        y=_padded(found.price),
        x_label="volume",
        y_label="price",
        height=440,
    )
    step = float(found.price[1] - found.price[0]) if len(found.price) > 1 else 1.0
    thick = max(0.6, frame.py(0) - frame.py(step))
    boxes = [
        svg.rect(
            svg.LEFT,
            frame.py(price) - thick / 2,
            frame.px(volume) - svg.LEFT,
            thick,
            "bar" if found.value_low <= price <= found.value_high else "outside",
        )
        for price, volume in zip(found.price.tolist(), found.volume.tolist(), strict=True)
    ]
    levels = [
        ("value area high", found.value_high),
        ("point of control", found.poc),
        ("value area low", found.value_low),
    ]
    lines = [
        svg.line(svg.LEFT, frame.py(at), svg.WIDTH - svg.RIGHT, frame.py(at), "level")
        + svg.text(svg.WIDTH - svg.RIGHT - 4, frame.py(at) - 4, f"{name} {at:,.6g}", "end", "over")
        for name, at in levels
    ]
    words = (
        f"{found.bars:,} bars. Point of control {found.poc:,.6g}; value area {found.value_low:,.6g} to "
        f"{found.value_high:,.6g}, in the stronger colour; under the conventions below"
    )
    return svg.figure(f"Volume profile of the session of {found.day}", words, [*svg.axes(frame), *boxes, *lines], 440)


def _padded(price: Floats) -> tuple[float, float]:
    low, high = svg.span(price.tolist())
    return low - (high - low) * 0.03, high + (high - low) * 0.03


def split(parts: dict[str, Any]) -> str:
    """Return the sizes of the three parts as a bar, with their dates where there are some."""
    names = ("train", "validation", "test")
    total = sum(parts[name]["rows"] for name in names)
    x, body = 10.0, []
    for name, kind in zip(names, ("one", "two", "three"), strict=True):
        width = parts[name]["rows"] / total * (svg.WIDTH - 20)
        body.append(svg.rect(x, 22, width - 2, 26, f"fill-{kind}"))
        body.append(svg.text(x, 16, name if width > 60 else name[:5]))
        body.append(svg.text(x, 64, f"{parts[name]['rows']:,}"))
        x += width
    how = "by time" if parts["by"] == "time" else f"at random from seed {parts['seed']}"
    if parts["stratified"]:
        how += ", each class in the same shares"
    embargo = f"; {parts['embargo']:,} rows are dropped between parts" if parts["embargo"] else ""
    words = f"{total:,} rows, split {how}{embargo}. Scaling is fitted on the training part alone"
    return svg.figure("The split", words, body, 76)
