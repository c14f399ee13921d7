"""Charts as SVG text: lines, points, bars and a profile, coloured by the page's own style in light and dark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 300, 76, 16, 14, 46

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, kw_only=True)
class Frame:
    """From data to the picture: the ranges of both axes, perhaps with a logarithmic y axis, and their words."""

    x: tuple[float, float]
    y: tuple[float, float]
    x_label: str
    y_label: str
    log: bool = False
    height: int = HEIGHT

    def px(self, value: float) -> float:
        """Return the place of an x value."""
        return LEFT + (value - self.x[0]) / (self.x[1] - self.x[0]) * (WIDTH - LEFT - RIGHT)

    def py(self, value: float) -> float:
        """Return the place of a y value."""
        low, high = (math.log10(each) if self.log else each for each in self.y)
        at = math.log10(value) if self.log else value
        return self.height - BOTTOM - (at - low) / (high - low) * (self.height - TOP - BOTTOM)


def span(values: Sequence[float], *, zero: bool = False) -> tuple[float, float]:
    """Return a range that holds all finite values, wider than nothing; with `zero` it begins there."""
    finite = [value for value in values if math.isfinite(value)] or [0.0]
    low, high = min([0.0, *finite] if zero else finite), max(finite)
    return (low, high) if high > low else (low - 0.5 * abs(low) - 0.5, high + 0.5 * abs(high) + 0.5)


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Return round values within a range, about `count`.

    Args:
        low: lower end of the range.
        high: upper end of the range.
        count: number of values aimed at.
    """
    raw = (high - low) / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [place * step for place in range(first, math.floor(high / step + 1e-9) + 1)]


def short(value: float) -> str:
    """Return a number as an axis shows it."""
    return f"{value:,.0f}" if abs(value) >= 1000 and value == round(value) else f"{value:.4g}"


def figure(title: str, caption: str, body: Sequence[str], height: int = HEIGHT) -> str:
    """Return a figure with its caption; `caption` also describes it to those who do not see it.

    Args:
        title: heading.
        caption: text below the figure, which also describes the figure to those who do not see it.
        body: SVG elements.
        height: in pixels of the viewBox, which is WIDTH wide.
    """
    return (
        '<figure><div class="chart" tabindex="0">'  # a narrow screen scrolls the picture, whose text stays legible
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}. {escape(caption)}">'
        + "".join(body)
        + f"</svg></div><figcaption><b>{escape(title)}.</b> {escape(caption)}</figcaption></figure>"
    )


def axes(frame: Frame) -> list[str]:
    """Return grid lines with their numbers, and the words of both axes."""
    parts = []
    bottom = frame.height - BOTTOM
    for value in ticks(*frame.x):
        at = frame.px(value)
        parts.append(line(at, TOP, at, bottom, "grid") + text(at, bottom + 16, short(value), "middle"))
    for value in _y_ticks(frame):
        at = frame.py(value)
        parts.append(line(LEFT, at, WIDTH - RIGHT, at, "grid") + text(LEFT - 6, at + 4, short(value), "end"))
    middle = (TOP + bottom) / 2
    turned = f'<text class="axis" text-anchor="middle" transform="translate(14 {middle:.1f}) rotate(-90)">'
    return [
        *parts,
        text((LEFT + WIDTH - RIGHT) / 2, frame.height - 8, frame.x_label, "middle", "axis"),
        f"{turned}{escape(frame.y_label)}</text>",
    ]


def _y_ticks(frame: Frame) -> list[float]:
    if not frame.log:
        return ticks(*frame.y)
    low, high = (math.log10(each) for each in frame.y)
    powers = [10.0**power for power in range(math.ceil(low - 1e-9), math.floor(high + 1e-9) + 1)]
    return powers if len(powers) >= 2 else [10**each for each in ticks(low, high)]


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """Return a straight line of a class.

    Args:
        x1: start, pixels from the left.
        y1: start, pixels from the top.
        x2: end, pixels from the left.
        y2: end, pixels from the top.
        kind: CSS class.
    """
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def text(x: float, y: float, content: str, anchor: str = "start", kind: str = "") -> str:
    """Return a text element.

    Args:
        x: pixels from the left.
        y: baseline, pixels from the top.
        content: text, not yet escaped.
        anchor: SVG's text-anchor: start, middle or end.
        kind: CSS class; empty for none.
    """
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(content)}</text>'


def path(frame: Frame, points: Points, kind: str) -> str:
    """Return a line through points.

    Args:
        points: (x, y) in the units of `frame`.
        kind: CSS class.
    """
    steps = " ".join(
        f"{'L' if place else 'M'}{frame.px(x):.1f} {frame.py(y):.1f}" for place, (x, y) in enumerate(points)
    )
    return f'<path class="{kind}" d="{steps}"/>'


def dots(frame: Frame, points: Points, kind: str, radius: float = 2.2) -> list[str]:
    """Return a dot for each point.

    Args:
        points: (x, y) in the units of `frame`.
        kind: CSS class.
        radius: radius of a dot in pixels.
    """
    return [
        f'<circle class="{kind}" cx="{frame.px(x):.1f}" cy="{frame.py(y):.1f}" r="{radius:.1f}"/>' for x, y in points
    ]


def rect(x: float, y: float, width: float, height: float, kind: str) -> str:
    """Return a box of a class.

    Args:
        x: left edge, pixels from the left.
        y: upper edge, pixels from the top.
        width: width in pixels.
        height: in pixels of the viewBox, which is WIDTH wide.
        kind: CSS class.
    """
    return f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{max(height, 0):.1f}"/>'


def legend(entries: Sequence[tuple[str, str]]) -> list[str]:
    """Return the names of lines, each after a piece of it, in the upper right corner."""
    parts, x = [], WIDTH - RIGHT - sum(40 + 7 * len(name) for _, name in entries)
    for kind, name in entries:
        parts += [line(x, TOP + 8, x + 22, TOP + 8, kind), text(x + 27, TOP + 12, name)]
        x += 40 + 7 * len(name)
    return parts


def bars_across(rows: Sequence[tuple[str, float, float]], axis_label: str) -> tuple[list[str], int]:
    """Return a bar to the right for each (name, value, deviation), and the picture's height."""
    height = TOP + BOTTOM + 20 * len(rows)
    left = 200
    low, high = span([v - d for _, v, d in rows] + [v + d for _, v, d in rows] + [0.0], zero=True)

    def at(value: float) -> float:
        return left + (value - low) / (high - low) * (WIDTH - left - RIGHT)

    parts = []
    for value in ticks(low, high):
        parts.append(line(at(value), TOP, at(value), height - BOTTOM, "grid"))
        parts.append(text(at(value), height - BOTTOM + 16, short(value), "middle"))
    for place, (name, value, deviation) in enumerate(rows):
        y = TOP + 20 * place
        begin, end = sorted((at(0.0), at(value)))
        parts += [
            text(left - 8, y + 14, name if len(name) <= 26 else name[:25] + "…", "end"),
            rect(begin, y + 4, end - begin, 12, "bar"),
            line(at(value - deviation), y + 10, at(value + deviation), y + 10, "spread"),
        ]
    return [*parts, text((left + WIDTH) / 2, height - 8, axis_label, "middle", "axis")], height
