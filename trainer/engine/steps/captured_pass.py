"""Forward and backward of a micro-batch as captured graphs on a card, for steps that wait for the host.

One graph computes the first micro-batch of a batch and makes the gradients, a second one the others and adds to them.
Both hold the loop's own kernels on fixed memory, so that a micro-batch costs the host a few copies and one launch. The
graphs' memory is a pool of its own, as large as a micro-batch takes; where others need it, it is given back, and the
next batch captures anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from trainer.data.loading.batch import apply, call, count, tensors
from trainer.device.capacity import card_memory
from trainer.distributed.gradient_accumulation import loss_of_piece
from trainer.engine.steps.cuda_graph import NoGraphError, gc_disabled
from trainer.engine.training import Training
from trainer.models.decoder.recomputation import SameWeights


@dataclass(frozen=True, kw_only=True)
class Fixed:
    """The memory that graphs read and write: inputs, targets and weight of the batch, and the loss, a scalar each."""

    inputs: Any
    targets: Any
    weight: Tensor
    loss: Tensor

    @classmethod
    def of(cls, inputs: Any, targets: Any, weight: Tensor, loss: torch.dtype) -> Fixed:
        """Return copies of a micro-batch.

        Args:
            inputs: of the model.
            targets: of the same rows.
            weight: of the batch, a scalar.
            loss: dtype of the loss.
        """
        inputs, targets = (apply(Tensor.clone, values) for values in (inputs, targets))
        return cls(inputs=inputs, targets=targets, weight=weight.clone(), loss=weight.new_zeros((), dtype=loss))

    def pairs(self, inputs: Any, targets: Any, weight: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Return the tensors here, each with that of another micro-batch.

        Args:
            inputs: those of the other micro-batch.
            targets: of the same rows.
            weight: of its batch, a scalar.
        """
        own = [*tensors(self.inputs), *tensors(self.targets), self.weight]
        return list(zip(own, [*tensors(inputs), *tensors(targets), weight], strict=True))


def alike(one: Tensor, other: Tensor) -> bool:
    """Return whether a tensor can be copied into another without a change."""
    return one.shape == other.shape and one.dtype == other.dtype


class CapturedPass:
    """Takes the place of forward and backward where a micro-batch has the captured one's shapes."""

    def __init__(self, training: Training) -> None:
        self.training = training
        self.fixed: Fixed | None = None
        self.graphs: list[torch.cuda.CUDAGraph] = []  # of a batch's first micro-batch, and of the others
        self.gradients: list[tuple[nn.Parameter, Tensor]] = []
        self.places: tuple[int, ...] = ()
        self.pool: Any = None
        self.bytes = 0
        self.refused: str | None = None

    def __call__(self, inputs: Any, targets: Any, weight: Any) -> Tensor | None:
        """Return the micro-batch's loss, a scalar on the device, with the gradients in place.

        None for another shape than that of a micro-batch, after one that was computed without a graph, and where a
        capture was refused (`refused` is the reason): no other is tried.

        Args:
            inputs: of the model, on the device.
            targets: of the same rows.
            weight: of the batch.
        """
        whole = count(targets) == self.training.state.micro_batch.size
        if self.refused or not whole or not isinstance(weight, Tensor):
            self.make_room()
            return None
        first = all(each.grad is None for each in self._trained())
        if first:
            self._prepare(inputs, targets, weight)
        fixed = self.fixed
        if fixed is None or not (first or self._is_next()):
            return None
        pairs = fixed.pairs(inputs, targets, weight)
        return self._replay(pairs, first=first) if all(alike(*pair) for pair in pairs) else None

    def make_room(self) -> None:
        """Give the graphs' memory back where what the device has free is less."""
        if self.graphs and card_memory(self.training.device)[0] < self.bytes:
            self.release()

    def release(self) -> bool:
        """Give the graphs' memory back; return whether there was any."""
        held = bool(self.graphs)
        self.graphs, self.gradients, self.fixed, self.bytes = [], [], None, 0
        return held

    def _trained(self) -> list[nn.Parameter]:
        return [weight for weight, _ in self.gradients] or list(self.training.model.parameters())

    def _is_next(self) -> bool:
        """Whether the gradients are those that the graphs have made."""
        return bool(self.gradients) and all(weight.grad is gradient for weight, gradient in self.gradients)

    def _replay(self, pairs: list[tuple[Tensor, Tensor]], *, first: bool) -> Tensor | None:
        fixed = self.fixed
        assert fixed is not None
        if not first and not self._captured_next(fixed):
            return None
        for own, given in pairs:
            own.copy_(given)
        self.graphs[0 if first else 1].replay()
        if first:
            for weight, gradient in self.gradients:
                weight.grad = gradient
        return fixed.loss.clone()

    def _prepare(self, inputs: Any, targets: Any, weight: Tensor) -> None:
        """Capture a batch's first micro-batch, where that is not done or the weights have moved."""
        if self.places != places(self.training.model):
            self.release()
        if self.graphs:
            return
        self.places = places(self.training.model)
        self.fixed = Fixed.of(inputs, targets, weight, self.training.state.losses.dtype)
        if self._captured(self.fixed):
            trained = self.training.model.parameters()
            self.gradients = [(each, each.grad) for each in trained if each.grad is not None]
        self.training.model.zero_grad(set_to_none=True)  # of a capture there are no values yet

    def _captured_next(self, fixed: Fixed) -> bool:
        """Return whether there is a graph for further micro-batches; it is captured where a batch has the first one."""
        if len(self.graphs) > 1:
            return True
        with SameWeights():
            return self._captured(fixed)

    def _captured(self, fixed: Fixed) -> bool:
        """Add a graph of passes with the gradients as they are now; return whether it was possible."""
        device = self.training.device
        if not self.graphs:
            self.pool = torch.cuda.graph_pool_handle()
        cleared()
        torch.cuda.synchronize(device)
        torch.cuda.empty_cache()
        before = torch.cuda.memory_reserved(device)
        try:
            with torch.cuda.device(device), gc_disabled():
                self.graphs.append(self._graph_of(fixed, self.pool))
        except NoGraphError as error:
            self.release()
            self.refused = str(error)
            return False
        finally:
            cleared()
        self.bytes += torch.cuda.memory_reserved(device) - before
        return True

    def _graph_of(self, fixed: Fixed, pool: object) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        try:
            # Other threads read the card's memory and fetch rows meanwhile, which a global mode would refuse.
            with torch.cuda.graph(graph, pool=pool, capture_error_mode="thread_local"):  # type: ignore[arg-type]
                fixed.loss.copy_(self._passed(fixed))
        except (RuntimeError, SystemError) as error:
            repaired(self.training.device)
            raise NoGraphError(str(error).splitlines()[0][:200]) from error
        return graph

    def _passed(self, fixed: Fixed) -> Tensor:
        training = self.training
        with training.precision.context():
            outputs = call(training.forward, fixed.inputs)
        loss = loss_of_piece(outputs, fixed.targets, training.loss_sum, fixed.weight)
        loss.backward()
        return loss.detach()


def repaired(device: torch.device) -> None:
    """Capture next to nothing: a capture that failed leaves the generator refusing the next random number."""
    with torch.cuda.device(device), torch.cuda.graph(torch.cuda.CUDAGraph(), capture_error_mode="thread_local"):
        torch.zeros(1, device=device)


def cleared() -> None:
    """Free the workspaces of products: those of a capture are part of its memory, others would be there twice."""
    clear = getattr(torch._C, "_cuda_clearCublasWorkspaces", None)
    if clear is not None:
        clear()


def places(model: nn.Module) -> tuple[int, ...]:
    """Return where weights and buffers are in memory: graphs read them there."""
    return tuple(value.data_ptr() for value in [*model.parameters(), *model.buffers()])
