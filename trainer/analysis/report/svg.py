"""Charts as SVG text: lines, points, bars and a profile, coloured by the page's own style in light and dark."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from trainer.runtime.short_names import shortened_apart

HEIGHT, RIGHT, TOP, BOTTOM = 300, 16, 14, 46
TURNED, DIGIT = 26, 7.7  # pixels of a y axis' words with their distances, and of a digit
LETTER, LINE = 6.6, 15  # pixels: the usual width of a letter of 12 pixels, and from one line of words to the next

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, kw_only=True)
class Canvas:
    """A drawing's width in pixels, the room left of its axes, and about how many numbers an x axis has."""

    width: int
    left: int
    x_ticks: int
    name: str

    @property
    def right(self) -> int:
        """Where the axes end, pixels from the left."""
        return self.width - RIGHT

    def lines(self, words: str) -> list[str]:
        """Return words in lines that fit into the drawing."""
        return textwrap.wrap(words, int((self.width - 16) / LETTER)) or [""]

    @property
    def is_narrow(self) -> bool:
        """Whether names stand above bars, as there is no room next to them."""
        return self.width < 480


# A phone of 360 pixels has 328 beside the page's margins: there the narrow drawing's text has its own 12 pixels
WIDE = Canvas(width=640, left=76, x_ticks=5, name="wide")
NARROW = Canvas(width=328, left=64, x_ticks=3, name="narrow")
Drawing = tuple[Sequence[str], int]  # elements, and the height in pixels


@dataclass(frozen=True, kw_only=True)
class Frame:
    """Axes of a chart: the ranges of both, perhaps with a logarithmic y axis, and their labels."""

    canvas: Canvas
    x: tuple[float, float]
    y: tuple[float, float]
    x_label: str
    y_label: str
    log: bool = False
    height: int = HEIGHT

    def px(self, value: float) -> float:
        """Return the place of an x value."""
        left = self.left
        return left + (value - self.x[0]) / (self.x[1] - self.x[0]) * (self.canvas.right - left)

    def py(self, value: float) -> float:
        """Return the place of a y value."""
        low, high = (math.log10(each) if self.log else each for each in self.y)
        at = math.log10(value) if self.log else value
        return self.bottom - (at - low) / (high - low) * (self.bottom - TOP)

    @property
    def left(self) -> float:
        """Where the axes begin, pixels from the left: further right for numbers that need more room."""
        return max(self.canvas.left, TURNED + DIGIT * max((len(short(each)) for each in _y_ticks(self)), default=0))

    @property
    def bottom(self) -> float:
        """Place of the x axis, pixels from the top; its words may need more than one line."""
        return self.height - BOTTOM - LINE * (len(self.canvas.lines(self.x_label)) - 1)


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
    for power, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if power <= abs(value) < 1e3 * power:
            return f"{value / power:,.8g}{letter}"
    return f"{value:,.4g}" if abs(value) >= 1e15 else f"{value:,.8g}"


def figure(title: str, caption: str, draw: Callable[[Canvas], Drawing]) -> str:
    """Return a figure with its caption, drawn for wide and for narrow screens; the page's style shows one of them.

    Args:
        title: heading.
        caption: text below the figure, which also describes it to those who do not see it.
        draw: returns the elements and the height of the drawing on a canvas.
    """
    label = f"{escape(title)}. {escape(caption)}"
    drawings = "".join(_drawing(canvas, label, *draw(canvas)) for canvas in (WIDE, NARROW))
    return f"<figure>{drawings}<figcaption><b>{escape(title)}.</b> {escape(caption)}</figcaption></figure>"


def _drawing(canvas: Canvas, label: str, body: Sequence[str], height: int) -> str:
    """Return one SVG picture.

    Args:
        canvas: what it is drawn for; its name is the picture's CSS class.
        label: description, escaped.
        body: SVG elements.
        height: in pixels.
    """
    box = f'class="{canvas.name}" viewBox="0 0 {canvas.width} {height}"'
    return f'<svg {box} role="img" aria-label="{label}">{"".join(body)}</svg>'


def axes(frame: Frame) -> list[str]:
    """Return grid lines with their numbers, and the words of both axes."""
    parts = []
    bottom, left, right = frame.bottom, frame.left, frame.canvas.right
    for value in ticks(*frame.x, frame.canvas.x_ticks):
        at = frame.px(value)
        parts.append(line(at, TOP, at, bottom, "grid") + text(at, bottom + 16, short(value), "middle"))
    for value in _y_ticks(frame):
        at = frame.py(value)
        parts.append(line(left, at, right, at, "grid") + text(left - 6, at + 4, short(value), "end"))
    middle = (TOP + bottom) / 2
    turned = f'<text class="axis" text-anchor="middle" transform="translate(14 {middle:.1f}) rotate(-90)">'
    return [
        *parts,
        *_words_below(frame.canvas, frame.x_label, left, frame.height),
        f"{turned}{escape(frame.y_label)}</text>",
    ]


def _words_below(canvas: Canvas, words: str, left: float, height: float) -> list[str]:
    """Return an axis' words at the foot of a drawing: below the axis, or over the whole width where they need it.

    Args:
        canvas: what it is drawn on.
        words: name and unit of the axis.
        left: where the axis begins, pixels from the left.
        height: height of the drawing in pixels.
    """
    lines = canvas.lines(words)
    fits = len(lines) == 1 and len(words) * LETTER < canvas.right - left
    middle = (left + canvas.right) / 2 if fits else canvas.width / 2
    first = height - 8 - LINE * (len(lines) - 1)
    return [text(middle, first + LINE * place, line, "middle", "axis") for place, line in enumerate(lines)]


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
        height: height in pixels.
        kind: CSS class.
    """
    return f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{max(height, 0):.1f}"/>'


def legend(canvas: Canvas, entries: Sequence[tuple[str, str]]) -> list[str]:
    """Return the names of lines, each after a piece of it, in the upper right corner.

    Args:
        canvas: what it is drawn on.
        entries: CSS class and name of each line.
    """
    parts, x = [], canvas.right - sum(40 + 7 * len(name) for _, name in entries)
    for kind, name in entries:
        parts += [line(x, TOP + 8, x + 22, TOP + 8, kind), text(x + 27, TOP + 12, name)]
        x += 40 + 7 * len(name)
    return parts


def bars_across(canvas: Canvas, rows: Sequence[tuple[str, float, float]], axis_label: str) -> Drawing:
    """Return a bar to the right for each row, its name next to it or, on a narrow canvas, above it.

    Args:
        canvas: what it is drawn on.
        rows: (name, value, deviation) of each bar.
        axis_label: name of the values.
    """
    step, left = (38, 8) if canvas.is_narrow else (20, 200)
    bottom = TOP + step * len(rows)
    height = bottom + BOTTOM + LINE * (len(canvas.lines(axis_label)) - 1)
    low, high = span([v - d for _, v, d in rows] + [v + d for _, v, d in rows] + [0.0], zero=True)

    def at(value: float) -> float:
        return left + (value - low) / (high - low) * (canvas.right - left)

    parts = []
    for value in ticks(low, high, canvas.x_ticks):
        parts.append(line(at(value), TOP, at(value), bottom, "grid"))
        parts.append(text(at(value), bottom + 16, short(value), "middle"))
    names = shortened_apart([name for name, _, _ in rows], 44 if canvas.is_narrow else 26)
    for place, (name, (_, value, deviation)) in enumerate(zip(names, rows, strict=True)):
        foot = TOP + step * (place + 1)
        parts.append(_bar_name(canvas, name, left, foot))
        begin, end = sorted((at(0.0), at(value)))
        parts += [
            rect(begin, foot - 16, end - begin, 12, "bar"),
            line(at(value - deviation), foot - 10, at(value + deviation), foot - 10, "spread"),
        ]
    return [*parts, *_words_below(canvas, axis_label, left, height)], height


def _bar_name(canvas: Canvas, name: str, left: float, foot: float) -> str:
    """Return a bar's name: next to it or, on a narrow canvas, above it.

    Args:
        canvas: what it is drawn on.
        name: name, short enough to fit.
        left: where bars begin, pixels from the left.
        foot: lower edge of the bar's row, pixels from the top.
    """
    return text(left, foot - 21, name, "start", "over") if canvas.is_narrow else text(left - 8, foot - 6, name, "end")
