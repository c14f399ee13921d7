"""Intervals of figures by the bootstrap: rows of a part are drawn anew, with a fixed seed.

Rows have to be drawn independently of each other, as those of a table are; bars that follow each other are not.
"""

from __future__ import annotations

import numpy as np

from trainer.data.bar import Floats

DRAWS, LEVEL, SEED = 1000, 0.95, 0
GROUPS = 5000  # of rows, at random, that are drawn together where there are more rows


def ratio_interval(above: Floats, below: Floats) -> tuple[float, float]:
    """Return the bootstrap interval of sum(above) / sum(below), both (rows,): percentiles with LEVEL of the draws."""
    generator = np.random.default_rng(SEED)
    count = min(len(above), GROUPS)
    group = generator.permutation(len(above)) % count
    sums = np.stack([np.bincount(group, values, count) for values in (above, below)])
    found = np.empty(DRAWS)
    for draw in range(DRAWS):
        top, bottom = sums[:, generator.integers(0, count, count)].sum(axis=1)
        found[draw] = top / bottom if bottom > 0 else np.nan
    low, high = np.nanquantile(found, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def accuracy_interval(right: Floats) -> dict[str, float]:
    """Return the ends of the interval of the share of right answers; `right` (rows,) is 1 or 0."""
    low, high = ratio_interval(right, np.ones_like(right))
    return {"accuracy_low": low, "accuracy_high": high}


def r2_interval(name: str, errors: Floats, of_baseline: Floats) -> dict[str, float]:
    """Return the ends of the interval of R² against a baseline, as r2_vs_NAME_low and r2_vs_NAME_high.

    Args:
        name: of the baseline, for the keys.
        errors: squared error of each row's prediction, (rows,).
        of_baseline: squared error of the baseline on the same rows, (rows,).
    """
    low, high = ratio_interval(errors, of_baseline)
    return {f"r2_vs_{name}_low": 1 - high, f"r2_vs_{name}_high": 1 - low}
