"""Several steps as one captured graph on a card: one launch in place of some thirty a step.

The graph holds the loop's own forward, backward and optimizer kernels on fixed memory. Before a launch it is given
row numbers; the rows are on the card. ROCm captures graphs through the same interface.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from trainer.engine.loop import forward_backward, step_optimizer
from trainer.engine.training import Training

MOST = 16  # steps of the longer graph; single steps come from a second one
WARM = 3  # steps before a capture: libraries load and choose kernels at the first ones


class NoGraphError(Exception):
    """The device or torch refused to capture the steps; the message has the reason."""


@dataclass(frozen=True, kw_only=True)
class Captured:
    """A graph of some steps, what it reads, and what it writes. Shapes: rows (steps * batch,), losses (steps,)."""

    graph: torch.cuda.CUDAGraph
    rows: Tensor
    losses: Tensor

    def launch(self, rows: Tensor, losses: Tensor) -> None:
        """Take the steps; the host waits for nothing."""
        self.rows.copy_(rows)
        self.graph.replay()
        losses.copy_(self.losses)


def why_not(training: Training) -> str | None:
    """Return why steps cannot be captured, or None where it may be tried."""
    return None if training.device.type == "cuda" else f"graphs are for cards, and this is {training.device}"


class GraphSteps:
    """Steps over batches of one size, captured; captured anew where weights or moments have moved."""

    most = MOST

    def __init__(self, training: Training) -> None:
        """Capture; the weights take steps by it, and the caller puts them back.

        Raises:
            NoGraphError: where it is refused.
        """
        self.training, self.size = training, training.sampler.batch_size
        self._warm_up()
        self._capture()

    def take(self, rows: Tensor, losses: Tensor) -> None:
        """Take a step for each batch of `rows` (steps * batch,), and put their losses in `losses` (steps,)."""
        if self.addresses != addresses(self.training):
            self._capture()
        done, count = 0, len(losses)
        while done < count:
            steps = MOST if count - done >= MOST else 1
            span = slice(done * self.size, (done + steps) * self.size)
            self.captured[steps].launch(rows[span], losses[done : done + steps])
            done += steps

    def _warm_up(self) -> None:
        device = self.training.device
        side = torch.cuda.Stream(device)
        side.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(side):
            self._steps(*self._memory(WARM))
        torch.cuda.current_stream(device).wait_stream(side)

    def _capture(self) -> None:
        self.addresses = addresses(self.training)
        self.captured: dict[int, Captured] = {}
        pool = torch.cuda.graph_pool_handle()
        with torch.cuda.device(self.training.device), capturable(self.training.optimizer), gc_disabled():
            for steps in (MOST, 1):
                self.captured[steps] = self._graph_of(steps, pool)

    def _graph_of(self, steps: int, pool: object) -> Captured:
        graph = torch.cuda.CUDAGraph()
        rows, losses = self._memory(steps)
        try:
            with torch.cuda.graph(graph, pool=pool):  # type: ignore[arg-type]
                self._steps(rows, losses)
        except (RuntimeError, NoGraphError) as error:
            raise NoGraphError(str(error).splitlines()[0][:200]) from error
        finally:
            self.training.optimizer.zero_grad()  # the gradients are the graph's own memory
        return Captured(graph=graph, rows=rows, losses=losses)

    def _memory(self, steps: int) -> tuple[Tensor, Tensor]:
        device, dtype = self.training.device, self.training.state.losses.dtype
        rows = torch.arange(steps * self.size, device=device) % len(self.training.train)
        return rows, torch.zeros(steps, device=device, dtype=dtype)

    def _steps(self, rows: Tensor, losses: Tensor) -> None:
        training = self.training
        for numbers, place in zip(rows.split(self.size), losses.unbind(), strict=True):
            inputs, targets = training.train.rows(numbers, training.device)
            loss = forward_backward(training, inputs, targets, rows=self.size, weight=self.size)
            if loss is None:
                raise NoGraphError("the memory is not enough for a graph in addition to the run")
            step_optimizer(training)
            place.copy_(loss)


@contextmanager
def gc_disabled() -> Iterator[None]:
    """Keep Python's collector out of a capture: an older graph that it frees in between spoils the one being made."""
    gc.collect()
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


@contextmanager
def capturable(optimizer: torch.optim.Optimizer) -> Iterator[None]:
    """Let the optimizer be captured: its step counts are on the device, as the fused kernel has them anyway."""
    before = [group["capturable"] for group in optimizer.param_groups]
    for group in optimizer.param_groups:
        group["capturable"] = True
    try:
        yield
    finally:
        for group, was in zip(optimizer.param_groups, before, strict=True):
            group["capturable"] = was


def addresses(training: Training) -> tuple[int, ...]:
    """Return where weights, buffers and moments lie."""
    states = training.optimizer.state
    moments = [value for weight in training.model.parameters() for value in states[weight].values()]
    held = [*training.model.parameters(), *training.model.buffers(), *moments]
    return tuple(value.data_ptr() for value in held if isinstance(value, Tensor))
