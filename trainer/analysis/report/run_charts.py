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

MOST_DOTS, MOST_BARS, BINS, HEADROOM = 1500, 30, 30, 0.1
PROFILE_HEIGHT = 440


def losses(epochs: Sequence[dict[str, Any]], loss: str) -> str:
    """Return the curves of training and validation loss, with the epoch whose weights were kept."""
    curves = {name: [(e["epoch"], e[f"{name}_loss"]) for e in epochs] for name in ("train", "validation")}
    values = [value for points in curves.values() for _, value in points]
    log = min(values) > 0 and max(values) / min(values) > 20
    best = [each for each in epochs if each["best"]][-1]

    def draw(canvas: svg.Canvas) -> svg.Drawing:
        frame = svg.Frame(
            canvas=canvas,
            x=svg.span([each["epoch"] for each in epochs]),
            y=_with_headroom(*(svg.span(values) if log else svg.span(values, zero=True)), log=log),
            x_label="epoch",
            y_label=f"{loss}{', logarithmic' if log else ''}",
            log=log,
        )
        curve = [svg.path(frame, curves["train"], "one"), svg.path(frame, curves["validation"], "two")]
        kept = svg.dots(frame, [(best["epoch"], best["validation_loss"])], "mark", 5)
        names = svg.legend(canvas, [("one", "training"), ("two", "validation")])
        return [*svg.axes(frame), *curve, *kept, *names], svg.HEIGHT

    words = (
        f"Training ends at {epochs[-1]['train_loss']:.4g}, validation at {epochs[-1]['validation_loss']:.4g}; the "
        f"weights of epoch {best['epoch']} were kept (circle), {best['validation_loss']:.4g} on validation"
    )
    return svg.figure("Loss by epoch", words, draw)


def _with_headroom(low: float, high: float, *, log: bool) -> tuple[float, float]:
    """Return a range of y with a tenth more above it, where the names of curves stand.

    Args:
        low: lower end of the range.
        high: upper end of the range.
        log: whether the axis is logarithmic.
    """
    return low, high * (high / low) ** HEADROOM if log else high + HEADROOM * (high - low)


def reliability(target: Floats, chances: Floats, part: str) -> str:
    """Return how often answers of each probability were right.

    Args:
        target: class of each row, 0 or 1, shape (rows,).
        chances: probability of class 1, shape (rows,).
        part: name of the part, for the caption.
    """
    bins = calibration(target.astype(np.int64), chances)
    points = [(each["confidence"], each["accuracy"]) for each in bins]
    most = max(each["rows"] for each in bins)
    radii = [2 + 6 * (each["rows"] / most) ** 0.5 for each in bins]

    def draw(canvas: svg.Canvas) -> svg.Drawing:
        frame = svg.Frame(
            canvas=canvas, x=(0, 1), y=(0, 1), x_label="probability of the answer", y_label="share of right answers"
        )
        lines = [svg.path(frame, [(0, 0), (1, 1)], "ideal"), svg.path(frame, points, "one")]
        pairs = zip(points, radii, strict=True)
        dots = [dot for point, radius in pairs for dot in svg.dots(frame, [point], "mark", radius)]
        return [*svg.axes(frame), *lines, *dots], svg.HEIGHT

    words = (
        f"On the diagonal predicted probability equals observed frequency; larger circles hold more of the "
        f"{len(target):,} rows. The mean distance is {calibration_error(bins):.3f}"
    )
    return svg.figure(f"Calibration on the {part} part", words, draw)


def scatter(target: Floats, forecast: Floats, unit: str, part: str) -> str:
    """Return forecasts against actual values, at most MOST_DOTS of them.

    Args:
        target: true values, shape (rows,).
        forecast: forecasts, shape (rows,).
        unit: unit of target and forecast, for the axes; empty for none.
        part: name of the part, for the caption.
    """
    both = svg.span([*target.tolist(), *forecast.tolist()])
    chosen = np.linspace(0, len(target) - 1, min(len(target), MOST_DOTS)).astype(np.int64)
    points = list(zip(forecast[chosen].tolist(), target[chosen].tolist(), strict=True))

    def draw(canvas: svg.Canvas) -> svg.Drawing:
        frame = svg.Frame(canvas=canvas, x=both, y=both, x_label=f"forecast, {unit}", y_label="actual")
        ideal = svg.path(frame, [(both[0], both[0]), (both[1], both[1])], "ideal")
        return [*svg.axes(frame), ideal, *svg.dots(frame, points, "dot")], svg.HEIGHT

    shown = "" if len(chosen) == len(target) else f"{len(chosen):,} of {len(target):,} rows, evenly taken. "
    error = float(np.sqrt(np.mean((target - forecast) ** 2)))
    words = f"{shown}On the diagonal a forecast is exact; the root mean squared error is {error:.4g}"
    return svg.figure(f"Forecasts on the {part} part", words, draw)


def errors(target: Floats, forecast: Floats, unit: str, part: str) -> str:
    """Return how often errors of each size occur.

    Args:
        target: true values, shape (rows,).
        forecast: forecasts, shape (rows,).
        unit: unit of target and forecast, for the axes; empty for none.
        part: name of the part, for the caption.
    """
    counts, edges = np.histogram(target - forecast, BINS)

    def draw(canvas: svg.Canvas) -> svg.Drawing:
        frame = svg.Frame(
            canvas=canvas,
            x=(float(edges[0]), float(edges[-1])),
            y=svg.span(counts.tolist(), zero=True),
            x_label=f"actual minus forecast, {unit}",
            y_label="rows",
        )
        bins = zip(counts.tolist(), edges[:-1].tolist(), edges[1:].tolist(), strict=True)
        return [*svg.axes(frame), *(_column(frame, *each) for each in bins)], svg.HEIGHT

    middle, spread = float(np.mean(target - forecast)), float(np.std(target - forecast))
    words = f"Mean {middle:.4g}, standard deviation {spread:.4g}"
    return svg.figure(f"Errors on the {part} part", words, draw)


def _column(frame: svg.Frame, count: int, low: float, high: float) -> str:
    """Return one column of a histogram.

    Args:
        frame: axes.
        count: rows in the bin.
        low: lower edge of the bin.
        high: upper edge of the bin.
    """
    left, right, top = frame.px(low), frame.px(high), frame.py(count)
    return svg.rect(left + 0.5, top, right - left - 1, frame.py(0) - top, "bar")


def importance(found: Sequence[Importance], loss: str, repeats: int, seed: int) -> str:
    """Return the inputs by what the model loses without them.

    Args:
        found: importance of each input, largest first.
        loss: name of the loss.
        repeats: shuffles of each input.
        seed: seeds the shuffles of columns; the same seed repeats the figures.
    """
    shown = found[:MOST_BARS]
    rows = [(each.name, each.mean, each.deviation) for each in shown]
    rest = f"; the {len(found) - len(shown)} smallest are left out" if len(found) > len(shown) else ""
    words = (
        f"How much the loss on the validation part grows where one input is shuffled: mean of {repeats} shuffles from "
        f"seed {seed}, the line is one standard deviation{rest}. Inputs that are redundant share their importance"
    )
    return svg.figure(
        "Importance of each input",
        words,
        lambda canvas: svg.bars_across(canvas, rows, f"growth of the validation {loss}"),
    )


def profile(found: Profile) -> str:
    """Return a session's volume by price, with its point of control and value area."""
    words = (
        f"{found.bars:,} bars. Point of control {found.poc:,.6g}; value area {found.value_low:,.6g} to "
        f"{found.value_high:,.6g}, in the stronger colour; under the conventions below"
    )
    title = f"Volume profile of the session of {found.day}"
    return svg.figure(title, words, lambda canvas: _drawn_profile(found, canvas))


def _drawn_profile(found: Profile, canvas: svg.Canvas) -> svg.Drawing:
    volumes, prices = found.volume.tolist(), found.price.tolist()
    frame = svg.Frame(
        canvas=canvas,
        x=svg.span(volumes, zero=True),
        y=_padded(found.price),
        x_label="volume",
        y_label="price",
        height=PROFILE_HEIGHT,
    )
    step = prices[1] - prices[0] if len(prices) > 1 else 1.0
    thick = max(0.6, frame.py(0) - frame.py(step))
    boxes = [
        svg.rect(
            frame.left,
            frame.py(price) - thick / 2,
            frame.px(volume) - frame.left,
            thick,
            "bar" if found.value_low <= price <= found.value_high else "outside",
        )
        for price, volume in zip(prices, volumes, strict=True)
    ]
    return [*svg.axes(frame), *boxes, *_levels(found, frame)], PROFILE_HEIGHT


def _levels(found: Profile, frame: svg.Frame) -> list[str]:
    """Return the lines of point of control and value area, with their names."""
    levels = [
        ("value area high", found.value_high),
        ("point of control", found.poc),
        ("value area low", found.value_low),
    ]
    left, right = frame.left, frame.canvas.right
    return [
        svg.line(left, frame.py(at), right, frame.py(at), "level")
        + svg.text(right - 4, frame.py(at) - 4, f"{name} {at:,.6g}", "end", "over")
        for name, at in levels
    ]


def _padded(price: Floats) -> tuple[float, float]:
    low, high = svg.span(price.tolist())
    return low - (high - low) * 0.03, high + (high - low) * 0.03


def split(parts: dict[str, Any]) -> str:
    """Return the sizes of the three parts as a bar, with their dates where there are some."""
    rows = {name: int(parts[name]["rows"]) for name in ("train", "validation", "test")}
    how = "by time" if parts["by"] == "time" else f"at random from seed {parts['seed']}"
    if parts["stratified"]:
        how += ", each class in the same shares"
    embargo = f"; {parts['embargo']:,} rows are dropped between parts" if parts["embargo"] else ""
    words = f"{sum(rows.values()):,} rows, split {how}{embargo}. Scaling is fitted on the training part alone"
    return svg.figure("The split", words, lambda canvas: _parts(canvas, rows))


def _parts(canvas: svg.Canvas, rows: dict[str, int]) -> svg.Drawing:
    """Return the parts in one line, or below each other where the small ones have no room for their names."""
    x, body = 10.0, []
    for place, (name, count) in enumerate(rows.items()):
        width, kind = count / sum(rows.values()) * (canvas.width - 20), f"fill-{('one', 'two', 'three')[place]}"
        if canvas.is_narrow:
            body += [svg.text(10, 14 + 44 * place, f"{name}: {count:,}"), svg.rect(x, 20 + 44 * place, width, 14, kind)]
        else:
            body += [svg.rect(x, 22, width - 2, 26, kind), svg.text(x, 16, name if width > 60 else name[:5])]
            body.append(svg.text(x, 64, f"{count:,}"))
        x += width
    return body, 128 if canvas.is_narrow else 76
