"""A figure is the median of its samples, with the spread of their middle half."""

from __future__ import annotations

from trainer.diagnostics.bench import timing


def test_figure_is_the_median_and_its_spread_the_middle_half() -> None:
    figure, spread = timing.rate("copy", "GB/s", 8.0, [1.0, 2.0, 2.0, 2.5, 90.0])
    assert (figure.value, figure.unit) == (4.0, "GB/s")
    assert (spread.name, spread.value, spread.unit) == ("copy spread", 25.0, "%")


def test_warm_up_does_not_count() -> None:
    import time

    slow = iter([0.05])
    taken = timing.samples(lambda: time.sleep(next(slow, 0.002)), "cpu", 0.05)
    assert len(taken) >= timing.LEAST
    assert min(taken) < 0.04
