"""Ranks that a run asks for where torchrun has started its own: typed ones are refused, others reported. No torch."""

from __future__ import annotations

import os

from trainer.distributed.torchrun import LAUNCHED
from trainer.runtime.errors import TrainerError


def require_ranks_of_launcher(typed: object) -> None:
    """Raise RM500 for a typed number of ranks that is not what torchrun has started, on this node or in all.

    Args:
        typed: value of `--ranks` on this command line; None or 1 where none was asked for.
    """
    started = {os.environ.get("WORLD_SIZE"), os.environ.get("LOCAL_WORLD_SIZE")}
    number = str(typed or "").strip()
    if LAUNCHED in os.environ and number.isdecimal() and int(number) > 1 and number.lstrip("0") not in started:
        what = f"--ranks {number} has no effect: torchrun started {os.environ.get('WORLD_SIZE', '1')} rank(s)"
        raise TrainerError("RM500", what=what, next="Leave --ranks out, or start as many by torchrun.")


def idle_ranks(ranks: int | str) -> list[str]:
    """Return a sentence where `ranks` has no effect, as torchrun has started its ranks already.

    It may come from a recipe, whose number is for the machine that the recipe is for.

    Args:
        ranks: number of the run's configuration, or `auto`.
    """
    started = os.environ.get("WORLD_SIZE", "1")
    known = (1, started, os.environ.get("LOCAL_WORLD_SIZE"))
    if ranks in known or str(ranks) in known or (ranks != "auto" and LAUNCHED not in os.environ):
        return []
    return [f"--ranks {ranks} has no effect: torchrun started {started} rank(s)"]
