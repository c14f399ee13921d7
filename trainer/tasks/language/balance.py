"""Weights of good and bad answers against their numbers."""

from __future__ import annotations

import math

from trainer.runtime.events import say

ADVISED = (1.0, 4 / 3)  # good to bad, count times weight: KTO (arXiv 2402.01306), equation 8


def state_balance(good: int, bad: int, *, good_weight: float, bad_weight: float) -> None:
    """Print which weight of bad answers is advised where good and bad ones differ much in number times weight.

    Args:
        good: good answers of the file.
        bad: bad answers of the file, at least 1.
        good_weight: value of `--kto-good-weight`.
        bad_weight: value of `--kto-bad-weight`.
    """
    ratio = good * good_weight / (bad * bad_weight)
    if any(math.isclose(ratio, each) for each in ADVISED) or ADVISED[0] < ratio < ADVISED[1]:
        return
    least, most = (good * good_weight / (bad * each) for each in reversed(ADVISED))
    counts = f"{good:,} good and {bad:,} bad answers weigh {ratio:.2f} to 1"
    say(f"kto     {counts}; 1 to 1.33 is advised: --kto-bad-weight {least:.3g} to {most:.3g}")
