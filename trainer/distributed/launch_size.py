"""Bound on the ranks that are started on this machine: processors for ranks without a card each. Imports no torch."""

from __future__ import annotations

import os
from pathlib import Path

from trainer.runtime.errors import TrainerError

RANKS_A_PROCESSOR = 4  # more only wait for each other: each is a process that imports torch (2 s, about 0.3 GB)
CARD_NODES = ("dri/renderD*", "nvidia[0-9]*")


def require_processors(ranks: int, device: str, *, processors: int | None = None, cards: int | None = None) -> str:
    """Return a sentence where ranks share processors, else an empty one.

    Args:
        ranks: number of ranks to be started here.
        device: value of --device; all but `cpu` take a card each where there are enough.
        processors: that this process may use; None: as the system reports.
        cards: of the machine, at most; None: as many as have a device node.

    Raises:
        TrainerError: RM563 for more than RANKS_A_PROCESSOR ranks a processor.
    """
    processors = processors or len(os.sched_getaffinity(0))
    cards = card_nodes() if cards is None else cards
    if ranks <= max(processors, 0 if device == "cpu" else cards):
        return ""
    here = "--device cpu" if device == "cpu" else f"device nodes of {cards} card(s)"
    what = f"{ranks} ranks on {processors} processor(s), {here}"
    take = f"--ranks {processors}" if processors > 1 else "--ranks 1"
    if ranks > RANKS_A_PROCESSOR * processors:
        why = f"Ranks without a card compute on processors; at most {RANKS_A_PROCESSOR} share one."
        raise TrainerError("RM563", what=what, why=why, next=f"Use {take}, or --ranks auto.")
    return f"{what}: ranks without a card share processors and wait for each other; {take} is faster"


def card_nodes(folder: Path = Path("/dev")) -> int:
    """Return how many device nodes of cards there are: no fewer than cards that torch can see."""
    return sum(len(list(folder.glob(pattern))) for pattern in CARD_NODES)
