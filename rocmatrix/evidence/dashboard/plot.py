"""One figure over time as the coordinates of an SVG polyline; the template draws it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rocmatrix.evidence.level import instant

WIDTH, HEIGHT, MARGIN = 320, 96, 8


@dataclass(frozen=True, kw_only=True)
class Point:
    """A measured value at its time; `x` and `y` are its place in the picture, y downwards."""

    at: str
    value: float
    x: float
    y: float


@dataclass(frozen=True, kw_only=True)
class Plot:
    """A figure by its probe and name, in `unit`, oldest point first. `marked` states what sets it aside."""

    title: str
    unit: str
    points: tuple[Point, ...]
    marked: str

    @property
    def line(self) -> str:
        """The points as SVG's polyline takes them."""
        return " ".join(f"{point.x:g},{point.y:g}" for point in self.points)

    @property
    def summary(self) -> str:
        """What the picture shows, for those who do not see it."""
        values = [point.value for point in self.points]
        last = f"{values[-1]:.4g} {self.unit} on {self.points[-1].at[:10]}"
        if len(values) == 1:
            return f"{self.title}: {last}, measured once"
        return f"{self.title}: {last}; {len(values)} measurements from {min(values):.4g} to {max(values):.4g}"


def plot(title: str, unit: str, measured: Sequence[tuple[str, float]], *, marked: str = "") -> Plot:
    """Lay out (time, value) pairs: time to the right, larger values up; the lowest value is no zero line.

    Equal values lie on one level in the middle. Raises ValueError for no pair.

    Args:
        title: heading of the figure: probe and name of the number.
        unit: unit of the values, such as "rows/s".
        measured: (time in ISO 8601, value) of each point, oldest first.
        marked: reason for which the points are set aside; empty for none.
    """
    if not measured:
        raise ValueError("nothing was measured")
    ordered = sorted(measured)
    times = [instant(at).timestamp() for at, _ in ordered]
    values = [value for _, value in ordered]
    points = tuple(
        Point(
            at=at,
            value=value,
            x=round(_scaled(time, times, WIDTH), 1),
            y=round(HEIGHT - _scaled(value, values, HEIGHT), 1),
        )
        for (at, value), time in zip(ordered, times, strict=True)
    )
    return Plot(title=title, unit=unit, points=points, marked=marked)


def _scaled(value: float, among: Sequence[float], length: int) -> float:
    low, high = min(among), max(among)
    if high == low:
        return length / 2
    return MARGIN + (value - low) / (high - low) * (length - 2 * MARGIN)
