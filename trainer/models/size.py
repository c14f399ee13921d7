"""Number of a network's parameters, and widths at which it would have fewer."""

from __future__ import annotations

from collections.abc import Callable, Sequence


def shrunk(widths: Sequence[int], most: int, count: Callable[[Sequence[int]], int]) -> list[int]:
    """Return `widths` with the hidden ones scaled down alike until `count` is at most `most`; each is 1 or more.

    `widths` are those of layers, inputs first and outputs last.

    Args:
        widths: widths of layers, inputs first and outputs last.
        most: largest accepted count.
        count: number of parameters for such widths.
    """
    first, *hidden, last = widths
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        fits = count([first, *(max(1, int(width * middle)) for width in hidden), last]) <= most
        low, high = (middle, high) if fits else (low, middle)
    return [first, *(max(1, int(width * low)) for width in hidden), last]
