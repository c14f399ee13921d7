"""The learning rate over a run, as a function of the step alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

from trainer.config.sections.optimizer import OptimizerConfig
from trainer.runtime.errors import TrainerError


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A schedule: its name, and in steps the whole run, the warm-up before it, and the decay at its end (of wsd)."""

    name: str
    steps: int
    warmup: int
    decay: int


def shape_of(config: OptimizerConfig, steps: int) -> Shape:
    """Return the schedule that `config` describes for a run of so many steps."""
    ratio = config.warmup_ratio or 0.0
    warmup = config.warmup_steps if config.warmup_steps is not None else math.ceil(ratio * steps)
    decay = max(1, math.ceil(config.decay_ratio * (steps - warmup)))
    return Shape(name=config.schedule, steps=steps, warmup=warmup, decay=decay)


def schedule_of(shape: Shape, optimizer: torch.optim.Optimizer) -> torch.optim.lr_scheduler.LRScheduler | None:
    """Return the schedule for an optimizer, None for a learning rate that never changes."""
    if shape.name == "constant" and not shape.warmup:
        return None
    return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: factor(shape, step))


def factor(shape: Shape, step: int) -> float:
    """Return the share of the full learning rate for the step with this number, from 0.

    The warm-up rises in equal parts and reaches the full rate at its last step.
    """
    if step < shape.warmup:
        return (step + 1) / shape.warmup
    return AFTER_WARMUP[shape.name](shape, step)


def _constant(shape: Shape, step: int) -> float:
    return 1.0


def _cosine(shape: Shape, step: int) -> float:
    steps = shape.steps - shape.warmup
    return (1 + math.cos(math.pi * min(step - shape.warmup, steps) / steps)) / 2


def _linear(shape: Shape, step: int) -> float:
    return max(0.0, (shape.steps - step) / (shape.steps - shape.warmup))


def _wsd(shape: Shape, step: int) -> float:
    return min(1.0, max(0.0, (shape.steps - step) / shape.decay))


def _inverse_sqrt(shape: Shape, step: int) -> float:
    return math.sqrt(shape.warmup / max(step + 1, shape.warmup))


AFTER_WARMUP: dict[str, Callable[[Shape, int], float]] = {
    "constant": _constant,
    "cosine": _cosine,
    "linear": _linear,
    "wsd": _wsd,
    "inverse-sqrt": _inverse_sqrt,
}


def require_schedule(config: OptimizerConfig, steps: int) -> None:
    """Raise RM526 where the settings of the learning-rate schedule contradict each other or the run of `steps`."""
    if config.warmup_steps is not None and config.warmup_ratio is not None:
        raise TrainerError("RM526", what="--warmup-steps and --warmup-ratio are both given")
    if config.decay_ratio != OptimizerConfig.decay_ratio and config.schedule != "wsd":
        raise TrainerError("RM526", what=f"--decay-ratio with --schedule {config.schedule}, which has no such phase")
    shape = shape_of(config, steps)
    if config.schedule == "inverse-sqrt" and not shape.warmup:
        why = "It falls with the root of the step, counted in warm-ups."
        raise TrainerError("RM526", what="--schedule inverse-sqrt without a warm-up", why=why)
    if shape.warmup and shape.warmup >= steps:
        raise TrainerError("RM526", what=f"a warm-up of {shape.warmup:,} steps in a run of {steps:,}")
