"""Choice of how a run takes its steps: one by one with autograd, or several at a time, with the reason.

What is faster is also tried against the eager step before it is used, on this network, these rows, this device: the
same weights, moments and losses to the bit, or, where it was asked for by name, within TOLERANCE.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from trainer.data.loading.placement import TensorPartition
from trainer.device.rng import draw_state, set_state
from trainer.engine.batch_size_change import at_size
from trainer.engine.loop import forward_backward, step_optimizer
from trainer.engine.steps import captured_trial, cuda_graph, fused_adamw, manual_autograd
from trainer.engine.steps.step_batching import Launches, Steps
from trainer.engine.training import Training
from trainer.runtime.errors import TrainerError

TRIED = 17  # steps of the trial: a long launch and a short one
# Above this many operations a step is bound by arithmetic, and `auto` does not try: about 5 ms on either.
MOST_FLOPS = {"cpu": 2e8, "cuda": 2e11}
TIMES = 3
FASTER = 1.0  # times as fast as eager, or `auto` leaves it
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}  # relative to the largest value of each tensor


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The way that was chosen: eager, graph or direct. `same_bits` is whether its results are eager's to the bit."""

    name: str
    reason: str
    same_bits: bool = True

    def facts(self) -> dict[str, Any]:
        """Return what metadata and log state."""
        return dict(vars(self))


def choose_step(requested: str, training: Training) -> Choice:
    """Set how `training` takes its whole batches, and return what was chosen.

    `auto` takes the faster way only where a trial gave eager's results to the bit, so that a run may be resumed
    under either. Each size that batches are still to have is tried for itself, so that no change of size ends a run.

    Raises:
        TrainerError: RM585 where a way that was asked for by name is not possible here.
    """
    if requested == "eager":
        return Choice(name="eager", reason="asked for with --step")
    if requested != "direct" and hasattr(training.model, "against_capture"):
        return chosen_passes(requested, training)
    sizes = training.sampler.different(training.state.epoch, training.epochs)
    found = {size: chosen_at(requested, at_size(training, size)) for size in sizes}
    steps = {size: taken for size, (_, taken) in found.items() if taken is not None}
    training.launches = Launches(steps=steps) if steps else None
    return together({size: choice for size, (choice, _) in found.items()})


def chosen_passes(requested: str, training: Training) -> Choice:
    """Set how `training` computes micro-batches of a language model, and return what was chosen.

    Raises:
        TrainerError: RM585 where graphs were asked for and are not possible here.
    """
    by_name = requested == "graph"
    against = captured_trial.reason_against(training, requested=by_name)
    if not against:
        try:
            found = captured_trial.tried(training, requested=by_name)
        except cuda_graph.NoGraphError as error:
            against = str(error)
    if not against:
        training.captured = found.captured
        return Choice(name="graph", reason=f"{requested}: {found.reason()}", same_bits=found.apart == 0)
    if by_name:
        raise TrainerError("RM585", what="--step graph", why=against)
    return Choice(name="eager", reason=f"auto: not graph: {against}")


def together(choices: dict[int, Choice]) -> Choice:
    """Return one choice for those of each size; its name is that of the faster way, if any size is taken so."""
    first, *others = choices.values()
    if not others:
        return first
    name = next((each.name for each in choices.values() if each.name != "eager"), "eager")
    reason = "; ".join(f"batches of {size:,} {each.name}, {each.reason}" for size, each in choices.items())
    return Choice(name=name, reason=reason, same_bits=all(each.same_bits for each in choices.values()))


def chosen_at(requested: str, training: Training) -> tuple[Choice, Steps | None]:
    """Return how `training`, whose batches have one size, takes them, and who takes them where it is not the loop.

    Raises:
        TrainerError: RM585 as `choose_step`.
    """
    name = requested if requested != "auto" else "graph" if training.device.type == "cuda" else "direct"
    against = reason_against(name, training) or (unproven(name, training) if requested == "auto" else None)
    try:
        tried = None if against else trial(training, name)
    except cuda_graph.NoGraphError as error:
        against, tried = str(error), None
    if tried:
        against = tried.fault(exact=requested == "auto")
    if tried and not against:
        return Choice(name=name, reason=tried.reason(requested), same_bits=tried.apart == 0), tried.steps
    if requested == "auto":
        return Choice(name="eager", reason=f"auto: not {name}: {against}"), None
    raise TrainerError("RM585", what=f"--step {name}", why=against or "")


def unproven(name: str, training: Training) -> str | None:
    """Return why `auto` does not try a way: it has nothing to gain, or was never seen to work on such a card.

    A capture that fails leaves the card's generator in a state in which the next random number raises.
    """
    if name == "graph" and torch.version.hip:
        return "capturing was shown on NVIDIA and never tried on an AMD card; --step graph asks for it"
    return arithmetic(training)


def arithmetic(training: Training) -> str | None:
    """Return why a step of this size has nothing to gain, or None where it may."""
    weights = sum(weight.numel() for weight in training.model.parameters())
    flops = 6 * weights * training.sampler.batch_size  # a multiplication and an addition, forward and twice back
    if flops <= MOST_FLOPS[training.device.type]:
        return None
    return f"{flops / 1e9:,.1f} GFLOP a step are bound by arithmetic, not by launches"


def reason_against(name: str, training: Training) -> str | None:
    """Return why whole batches cannot be taken several at a time, or None where they can."""
    sampler, size = training.sampler, training.state.micro_batch.size
    against = {
        "several ranks vote at each step": training.ranks.world_size > 1,
        f"{training.callbacks.needs_each_step()} is called at each step": bool(training.callbacks.needs_each_step()),
        "the loss scaler of fp16 decides on the host": training.scaler is not None,
        "each step has a learning rate or a weight of its own": bool(training.scheduler or training.batch_weight),
        "the rows are not one table of numbers in memory": not isinstance(training.train, TensorPartition),
        "the rows are not on the device": training.train.device != training.device,
        "gradients are clipped": training.plan.clip_norm is not None,
        "threads fetch the rows ahead": training.loader_workers > 0,
        f"no whole batch: {sampler.rows:,} rows, batches of {sampler.batch_size:,}": sampler.rows < sampler.batch_size,
        f"batches are taken {size:,} rows at a time": size < sampler.batch_size,
    }
    first = next((words for words, holds in against.items() if holds), None)
    return (
        first
        or fused_adamw.why_not(training.optimizer)
        or {"graph": cuda_graph.why_not, "direct": manual_autograd.why_not}[name](training)
    )


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Comparison of the same steps taken both ways: the largest difference, relative, and seconds a step."""

    steps: Steps
    count: int
    apart: float
    tolerance: float
    eager: float
    faster: float

    def fault(self, *, exact: bool) -> str | None:
        """Return the reason against it, or None."""
        if self.apart > (0 if exact else self.tolerance):
            return f"its results are {self.apart:.1e} off eager's, {0 if exact else self.tolerance:g} is allowed"
        if exact and self.eager < FASTER * self.faster:
            return f"it is not faster: {1e6 * self.faster:.0f} us a step, eager {1e6 * self.eager:.0f}"
        return None

    def reason(self, requested: str) -> str:
        """Return the evidence as a sentence."""
        equal = "bit-identical to" if self.apart == 0 else f"within {self.apart:.1e} of"
        rates = f"{1e6 * self.faster:.0f} us a step, eager {1e6 * self.eager:.0f}"
        return f"{'auto' if requested == 'auto' else 'asked for'}: {equal} eager in {self.count} steps; {rates}"


def trial(training: Training, name: str) -> Trial:
    """Take a few steps both ways from where `training` stands, and put it back there."""
    size = training.sampler.batch_size
    count = min(TRIED, training.sampler.rows // size)
    rows = training.sampler.order(training.state.epoch)[: count * size].to(training.device)
    training.model.train()
    before = Memory.of(training)
    try:
        return compared(training, name, rows, count, before)
    finally:
        before.restore(training)


def compared(training: Training, name: str, rows: Tensor, count: int, before: Memory) -> Trial:
    """Return what came of taking `count` steps both ways; leaves `training` anywhere.

    Args:
        name: name of the strategy.
        rows: row numbers of all steps, one after the other, shape (count * batch,).
        count: number of steps.
    """
    makers: dict[str, Callable[[Training], Steps]] = {
        "graph": cuda_graph.GraphSteps,
        "direct": manual_autograd.DirectSteps,
    }
    expected, eager = timed(training, before, lambda losses: eager_steps(training, rows, losses), count)
    steps = makers[name](training)
    found, faster = timed(training, before, lambda losses: steps.take(rows, losses), count)
    apart = max(distance(one, other) for one, other in zip(found, expected, strict=True))
    tolerance = TOLERANCE.get(training.state.losses.dtype, 0.0)
    return Trial(steps=steps, count=count, apart=apart, tolerance=tolerance, eager=eager, faster=faster)


def timed(training: Training, before: Memory, work: Callable[[Tensor], None], count: int) -> tuple[list[Tensor], float]:
    """Do `work` a few times from the same beginning; return what it made, losses last, and the least time a step.

    Args:
        work: takes the steps and writes their losses, shape (steps,).
        count: number of steps.
    """
    losses = torch.zeros(count, dtype=training.state.losses.dtype, device=training.device)
    seconds = math.inf
    for _ in range(TIMES):
        before.restore(training)
        wait(training.device)
        began = time.perf_counter()
        work(losses)
        wait(training.device)
        seconds = min(seconds, (time.perf_counter() - began) / count)
    return [*(value.clone() for value in changing(training)), losses.clone()], seconds


def wait(device: torch.device) -> None:
    """Wait for what the device still has to do."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def eager_steps(training: Training, rows: Tensor, losses: Tensor) -> None:
    """Take the loop's own steps.

    Args:
        rows: row numbers of all steps, one after the other, shape (steps * batch,).
        losses: loss of each step, written, shape (steps,).
    """
    size = training.sampler.batch_size
    for place, numbers in enumerate(rows.split(size)):
        inputs, targets = training.train.rows(numbers, training.device)
        loss = forward_backward(training, inputs, targets, rows=size, weight=size)
        if loss is None:
            raise TrainerError("RM523", what="memory ran out in the trial of --step", next="give --step eager")
        step_optimizer(training)
        losses[place] = loss
    training.optimizer.zero_grad()


def changing(training: Training) -> list[Tensor]:
    """Return weights, buffers and the optimizer's state, in one order."""
    states = training.optimizer.state
    moments = [value for weight in training.model.parameters() for value in states.get(weight, {}).values()]
    return [*training.model.state_dict(keep_vars=False).values(), *(each for each in moments if torch.is_tensor(each))]


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Copies of all that steps change, to be put back in place; an optimizer without state gets zeros."""

    values: list[Tensor]
    random: dict[str, Any]

    @classmethod
    def of(cls, training: Training) -> Memory:
        """Remember where `training` stands."""
        return cls(values=[value.clone() for value in changing(training)], random=draw_state(training.device))

    @torch.no_grad()
    def restore(self, training: Training) -> None:
        """Put all back, in the memory where it is: a captured graph holds the addresses."""
        now = changing(training)
        for place, value in enumerate(now):
            if place < len(self.values):
                value.copy_(self.values[place])
            else:
                value.zero_()
        set_state(self.random, training.device)


def distance(one: Tensor, other: Tensor) -> float:
    """Return the largest difference relative to the largest value, 0 only for equal bits, infinity for NaN."""
    if one.dtype == other.dtype and torch.equal(one, other):
        return 0.0
    gap = ((one - other).abs().max() / other.abs().max().clamp_min(1e-30)).item()
    return math.inf if math.isnan(gap) else gap
