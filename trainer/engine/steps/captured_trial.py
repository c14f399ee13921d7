"""Whether micro-batches are computed by captured graphs: tried on this network, these rows and this card.

A graph is used where its losses and gradients are those of the loop's own passes, on rows that it was not captured on,
and it is faster. Where kernels add in another order each time, twice the same pass shows by how much they differ.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from math import inf
from typing import Any

import torch
from torch import Tensor, nn

from trainer.device.memory import OutOfMemory
from trainer.engine.loop import forward_backward
from trainer.engine.steps.captured_pass import CapturedPass
from trainer.engine.steps.cuda_graph import NoGraphError
from trainer.engine.training import Training

FASTER = 1.02  # times as fast, or `auto` leaves it
WAITING = 0.5  # share of a pass that the host waits at its end: the card works, and launches do not bound it
NOISE = 4.0  # times the difference of the same pass taken twice
TIMES = 2
SHAKEN = 2**25  # numbers of trained weights, of which copies are kept during the trial


@dataclass(frozen=True, kw_only=True)
class PassTrial:
    """Comparison of the same passes taken both ways; apart and noise are relative, seconds those of a batch."""

    captured: CapturedPass
    apart: float
    noise: float
    eager: float
    faster: float

    def fault(self, *, requested: bool) -> str | None:
        """Return the reason against it, or None; requested: by name, so that time is no reason."""
        if self.apart > NOISE * self.noise:
            return f"its gradients are {self.apart:.1e} off eager's, which differ by {self.noise:.1e} among themselves"
        if not requested and self.eager < FASTER * self.faster:
            return f"it is not faster: {self.times()}"
        return None

    def times(self) -> str:
        """Return both times."""
        return f"{1e3 * self.faster:.1f} ms for forward and backward, eager {1e3 * self.eager:.1f}"

    def reason(self) -> str:
        """Return the evidence as a sentence."""
        equal = "the same bits as" if self.apart == 0 else f"within the noise ({self.apart:.0e}) of"
        return f"a graph a micro-batch, {equal} eager; {self.times()}"


def on_card(device: torch.device) -> bool:
    """Return whether a device captures graphs."""
    return device.type == "cuda"


def reason_against(training: Training, *, requested: bool) -> str | None:
    """Return why no graph is tried, or None.

    Args:
        requested: whether --step names it.
    """
    reported: Callable[[], str | None] | None = getattr(training.model, "against_capture", None)
    against = {
        f"graphs are for cards, and this is {training.device}": not on_card(training.device),
        "several ranks exchange gradients within the passes": training.ranks.world_size > 1,
        "the loss scaler of fp16 changes from step to step": training.scaler is not None,
        "the network does not say that its passes can be captured": reported is None,
        "the network is wrapped or compiled as a whole": training.forward is not training.model,
        "no whole micro-batch": len(training.train) < training.state.micro_batch.size,
        "capturing was shown on NVIDIA and never tried on an AMD card; --step graph asks for it": (
            torch.version.hip is not None and not requested
        ),
    }
    if getattr(training.model, "drop_ignored", False) and not requested:
        against["tokens without loss are left out, and each row has others; with --step graph none is"] = True
    first = next((words for words, holds in against.items() if holds), None)
    return first or (reported() if reported else None)


@contextmanager
def fixed_sizes(model: nn.Module) -> Iterator[None]:
    """Have the loss of all tokens computed, also of those without: graphs have fixed sizes. Undone where one fails."""
    dropped = getattr(model, "drop_ignored", False)
    if dropped:
        model.drop_ignored = False  # type: ignore[assignment]  # a flag of LanguageModel
    try:
        yield
    except BaseException:
        if dropped:
            model.drop_ignored = True  # type: ignore[assignment]
        raise


def tried(training: Training, *, requested: bool) -> PassTrial:
    """Take the passes of two batches both ways; the weights are as before, and no gradients are left.

    Raises:
        NoGraphError: where a graph is wrong, has nothing to gain, is refused, or memory is not enough for it.
    """
    with fixed_sizes(training.model):
        try:
            found = compared(training, requested=requested)
        except OutOfMemory:
            training.optimizer.zero_grad()
            raise NoGraphError("the memory is not enough for a trial") from None
        against = found.fault(requested=requested)
        if against:
            found.captured.release()
            raise NoGraphError(against)
        return found


def compared(training: Training, *, requested: bool) -> PassTrial:
    """Return what came of the passes taken both ways.

    Raises:
        NoGraphError: as `tried`, but for results that differ.
    """
    training.forward.train()
    batches = two_batches(training)
    taken(training, batches[0])  # what compiles or is loaded at first does so here
    eager, waiting = timed(training, batches[0])
    if waiting > WAITING and not requested:
        raise NoGraphError(f"the card works for {waiting:.0%} of the time, and launches do not bound it")
    eager = min(eager, *(timed(training, batches[0])[0] for _ in range(TIMES)))
    with shaken(training.model):  # a graph that holds values of weights in place of the weights is found out
        expected, again, more = ([passed(training, batch) for batch in batches] for _ in range(3))
    captured = CapturedPass(training)  # from here on its memory takes the place of the passes before
    with used(training, captured):
        faster = min(timed(training, batches[0])[0] for _ in range(1 + TIMES))  # the first captures
        if captured.refused:
            raise NoGraphError(captured.refused)
        with shaken(training.model):
            found = [passed(training, batch) for batch in batches]
    noise = max(map(distance, again + more, expected + expected))
    apart = max(map(distance, found, expected))
    return PassTrial(captured=captured, apart=apart, noise=noise, eager=eager, faster=faster)


@contextmanager
def used(training: Training, captured: CapturedPass) -> Iterator[None]:
    """Have the passes within computed by graphs."""
    training.captured = captured
    try:
        yield
    finally:
        training.captured = None


@contextmanager
@torch.no_grad()
def shaken(model: nn.Module) -> Iterator[None]:
    """Change some trained weights by about a hundredth within, and put them back to the bit: those of few numbers."""
    trained = sorted((each for each in model.parameters() if each.requires_grad), key=torch.numel)
    ends = accumulate(each.numel() for each in trained)
    some = [each for each, end in zip(trained, ends, strict=True) if end <= SHAKEN]
    before = [each.clone() for each in some]
    try:
        for each in some:
            change = torch.linspace(-0.01, 0.01, each.numel(), device=each.device, dtype=torch.float32)
            each.add_(change.view(each.shape).to(each.dtype))
        yield
    finally:
        for each, value in zip(some, before, strict=True):
            each.copy_(value)


def two_batches(training: Training) -> list[tuple[Any, Any]]:
    """Return inputs and targets of two batches of up to two micro-batches, of different rows where there are enough."""
    order = training.sampler.order(training.state.epoch)
    most = 2 if training.sampler.batch_size > training.state.micro_batch.size else 1
    rows = training.state.micro_batch.size * min(most, len(order) // training.state.micro_batch.size)
    return [training.train.rows(order[place][:rows], training.device) for place in (slice(rows), slice(-rows, None))]


@dataclass(frozen=True, kw_only=True)
class Passed:
    """What came of a batch's passes: its loss, and of each gradient the norm and the sum over the root of its size."""

    loss: Tensor
    norms: Tensor
    sums: Tensor


def passed(training: Training, batch: tuple[Any, Any]) -> Passed:
    """Take a batch's passes, and return what came of them in fp64.

    Raises:
        NoGraphError: where memory ran out.
    """
    loss = taken(training, batch, keep=True)
    gradients = [weight.grad for weight in training.model.parameters() if weight.grad is not None]
    norms = torch.stack([torch.linalg.vector_norm(each, dtype=torch.float64) for each in gradients])
    sums = torch.stack([each.sum(dtype=torch.float64) / each.numel() ** 0.5 for each in gradients])
    training.optimizer.zero_grad()
    return Passed(loss=loss.double(), norms=norms, sums=sums)


def distance(one: Passed, other: Passed) -> float:
    """Return the largest difference, relative to the loss and to each gradient's norm; infinity for NaN.

    Gradients that are zero but for rounding, as that of a bias of keys, count as if they had a tenth of the mean norm.
    """
    scale = other.norms.clamp_min(0.1 * other.norms.mean().item()).clamp_min(1e-30)
    gaps = [(one.loss - other.loss).abs() / other.loss.abs().clamp_min(1e-30)]
    gaps += [((mine - theirs).abs() / scale).max() for mine, theirs in pairs(one, other)]
    gap = max(value.item() for value in gaps)
    return gap if all(value.isfinite() for value in gaps) else inf


def pairs(one: Passed, other: Passed) -> list[tuple[Tensor, Tensor]]:
    """Return norms and sums of both."""
    return [(one.norms, other.norms), (one.sums, other.sums)]


def taken(training: Training, batch: tuple[Any, Any], *, keep: bool = False) -> Tensor:
    """Take a batch's passes, and return its loss, a scalar.

    Args:
        training: the run.
        batch: inputs and targets.
        keep: whether the gradients are kept.

    Raises:
        NoGraphError: where memory ran out.
    """
    inputs, targets = batch
    weight = targets.sum().clamp_min(1)
    loss = forward_backward(training, inputs, targets, rows=len(targets), weight=weight)
    if loss is None or not keep:
        training.optimizer.zero_grad()
    if loss is None:
        raise NoGraphError("the memory is not enough for a trial")
    return loss


def timed(training: Training, batch: tuple[Any, Any]) -> tuple[float, float]:
    """Return the seconds of a batch's passes, and the share of them that the host waited for the card at their end."""
    torch.cuda.synchronize(training.device)
    began = time.perf_counter()
    taken(training, batch)
    launched = time.perf_counter()
    torch.cuda.synchronize(training.device)
    ended = time.perf_counter()
    return ended - began, (ended - launched) / (ended - began)
