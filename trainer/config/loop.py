"""How long a run is, when it is measured, and how its learning rate and gradients are limited.

These settings came after the first metadata: where they are not used, they appear neither there nor in a recipe.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Annotated, Any

from trainer.config.parsing import Flag, number, one_of, or_none, share, whole

MOST_STEPS = 2**40
BEST_ON = ("device", "host")


_steps = or_none(whole(1, MOST_STEPS))


def _sparse(help: str, parse: Callable[[str], Any]) -> Flag:
    return Flag(help, parse, "train", sparse=True)


@dataclass(frozen=True, kw_only=True)
class LoopConfig:
    """Settings of the loop; each field is the flag of the same name."""

    max_steps: Annotated[
        int | None,
        _sparse("optimizer steps of the run, in place of --epochs (default: none)", _steps),
    ] = None
    eval_every: Annotated[
        int | None,
        _sparse("steps between validations (default: none, one each epoch)", _steps),
    ] = None
    patience: Annotated[
        int | None,
        _sparse(
            "validations without a lower loss that end the run early (default: none)", or_none(whole(1, MOST_STEPS))
        ),
    ] = None
    clip_norm: Annotated[
        float | None, _sparse("largest norm of all gradients together (default: none)", or_none(number(1e30)))
    ] = None
    warmup_steps: Annotated[int | None, _sparse("steps over which the learning rate rises (default: none)", _steps)] = (
        None
    )
    warmup_ratio: Annotated[
        float | None, _sparse("the same as a share of all steps (default: none)", or_none(share))
    ] = None
    decay_ratio: Annotated[float, _sparse("share of the steps in which wsd decays, at the end", number(1))] = 0.1
    best_on: Annotated[str, _sparse("where the best weights are kept: device or host", one_of(*BEST_ON))] = "device"


# What decides the weights or which of them are kept; max_steps is the run's length, as epochs are.
LOOP_DECIDING = tuple(f.name for f in fields(LoopConfig) if f.name not in ("max_steps", "best_on"))
