"""Settings of a table's training that were not given, chosen by its number of training rows."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

from trainer.config.sections.optimizer import LoopConfig

STEPS = 20_000  # at most, unless a tenth of MOST_EPOCHS needs more
LEAST_EPOCHS, MOST_EPOCHS = 30, 300
FEW_ROWS = 500  # of training, below which an epoch has few steps
RATE, RATE_OF_FEW = 1e-3, 3e-3
PATIENCE = 0.1  # of the epochs
LEAST_PATIENCE = 10


def table_defaults(loop: LoopConfig, rows: int, given: Collection[str]) -> dict[str, Any]:
    """Return learning rate, epochs and patience, of those that are not given.

    A run whose length is given ends there: it has no patience that was not asked for.

    Args:
        rows: of the training part, 1 or more.
        given: names of the settings that were given, such as epochs or max_steps.
    """
    epochs = min(MOST_EPOCHS, max(LEAST_EPOCHS, STEPS // math.ceil(rows / loop.batch_size)))
    chosen = {
        "learning_rate": RATE_OF_FEW if rows < FEW_ROWS else RATE,
        "epochs": epochs,
        "patience": max(LEAST_PATIENCE, round(PATIENCE * epochs)),
    }
    if not {"epochs", "max_steps", "eval_every"}.isdisjoint(given):
        chosen = {"learning_rate": chosen["learning_rate"]}
    return {name: value for name, value in chosen.items() if name not in given}
