"""Collective operations for a single process; `distributed.parallel` implements them for several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from trainer.data.loading.batch import Values
from trainer.distributed.gradient_accumulation import accumulate
from trainer.distributed.watchdog.heartbeat import HeartbeatWriter
from trainer.runtime.errors import TrainerError
from trainer.storage import checkpoint_store
from trainer.storage.checkpoint_tree import encode

Forward = Callable[[Any], Any]


def norm_of(gradients: Sequence[Tensor]) -> Tensor:
    """Return the Euclidean norm of some gradients together, whole where they are spread over ranks; 0 for none."""
    if not gradients:
        return torch.zeros(())
    norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(list(gradients))))
    whole: Tensor = norm.full_tensor() if hasattr(norm, "full_tensor") else norm
    return whole


class Ranks:
    """A world of one. Every method here is a collective: all ranks call it, in the same order.

    Control values (flags, JSON) travel over the host's memory and never wait for a device; tensors travel on
    their own device.
    """

    rank = 0
    world_size = 1
    local_rank = 0
    lockstep = False  # whether all ranks must compute equally many micro-batches, empty ones included
    shares = True  # whether each rank computes its own rows of a batch, not a part of the model for all of them
    undoes = True  # whether a step for which one rank's memory was too small can be computed again
    saves_shards = False  # whether each rank writes its own part of a checkpoint
    heartbeat: HeartbeatWriter | None = None

    @property
    def is_main(self) -> bool:
        """Whether this process writes files, prints events and shows progress."""
        return self.rank == 0

    def rank_slice(self, rows: int) -> slice:
        """Return this rank's rows of a batch of `rows`: contiguous, in rank order, sizes at most one apart.

        No collective. A rank's share of a batch smaller than the world is empty.
        """
        return slice(rows * self.rank // self.world_size, rows * (self.rank + 1) // self.world_size)

    def any_rank(self, *flags: bool) -> tuple[bool, ...]:
        """Return for each flag whether it is set on any rank: one vote however many flags."""
        return flags

    def broadcast(self, value: Any) -> Any:
        """Return rank 0's `value`, of JSON's types."""
        return value

    def run_on_main(self, work: Callable[[], Any]) -> Any:
        """Let rank 0 do `work` and return its result, or raise its TrainerError, on all ranks."""
        answer: dict[str, Any] = {}
        if self.is_main:
            try:
                answer = {"result": work()}
            except TrainerError as error:
                answer = {"error": {name: text for name, text in error.parts().items() if name != "title"}}
        answer = self.broadcast(answer)
        if "error" in answer:
            raise TrainerError(**answer["error"])
        return answer["result"]

    def gather(self, value: Any) -> list[Any]:
        """Return every rank's `value` in rank order, on all ranks; tensors must be on the CPU."""
        return [value]

    def sum(self, tensor: Tensor) -> Tensor:
        """Add `tensor` up over the ranks, in place, on its own device; return it."""
        return tensor

    def maximum(self, tensor: Tensor) -> Tensor:
        """Take the largest of each element over the ranks, in place, on its own device; return it."""
        return tensor

    def prepare(self, model: nn.Module) -> nn.Module:
        """Return what the loop calls in `model`'s place; its parameters stay those of `model`."""
        return model

    def micro_step(self, model: nn.Module, *, last: bool) -> AbstractContextManager[Any]:
        """Return the context for one micro-batch's forward and backward; gradients may be sent in the last only.

        Within it no rank waits for another unless `last`: before the last one the ranks have voted that all
        are well.
        """
        return nullcontext()

    def sum_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Make every rank's gradient the sum over the ranks; called once after the last micro-batch.

        Losses are divided by the weight of the whole batch beforehand, so the sum is the weighted mean. A rank
        without rows has no gradients yet and joins with zeros.
        """

    def gradient_norm(self, parameters: Sequence[nn.Parameter]) -> Tensor:
        """Return the Euclidean norm of all gradients together, a scalar; called after `sum_gradients`."""
        return norm_of([weight.grad for weight in parameters if weight.grad is not None])

    def section(self, name: str) -> AbstractContextManager[None]:
        """Return the context in which this rank is in section `name`, for the watchdog."""
        return self.heartbeat.section(name) if self.heartbeat else nullcontext()

    def at_step(self, number: int) -> None:
        """Report which step is running, for the watchdog."""
        if self.heartbeat:
            self.heartbeat.step(number)

    def full_state_dict(self, weights: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return `weights`, a state dict of the prepared model, with what is spread over the ranks made whole."""
        return weights

    def load_model(self, model: nn.Module, weights: dict[str, Tensor]) -> None:
        """Put whole weights into the prepared model; each rank keeps its part."""
        model.load_state_dict(weights)

    def full_optimizer_state(self, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
        """Return the optimizer's state dict with what is spread over the ranks made whole."""
        return optimizer.state_dict()

    def load_optimizer(self, optimizer: torch.optim.Optimizer, state: dict[str, Any]) -> None:
        """Put a whole state into the optimizer of the prepared model."""
        optimizer.load_state_dict(state)

    def checkpoint_state(self, weights: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return `weights` as a checkpoint holds them: whole, or where `saves_shards` as they are."""
        return weights if self.saves_shards else self.full_state_dict(weights)

    def checkpoint_optimizer(self, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
        """Return the optimizer's state dict as a checkpoint holds it."""
        return optimizer.state_dict() if self.saves_shards else self.full_optimizer_state(optimizer)

    def write_checkpoint(self, folder: Path, step: int, tree: dict[str, Any], facts: dict[str, Any]) -> Path | None:
        """Write a captured tree as the checkpoint of `step`; return its path, None where another rank ends it.

        Where `saves_shards` a collective of its own, which may run in another thread than the others.

        Args:
            folder: folder of the run's checkpoints.
            step: number of steps taken.
            tree: state of the run on the host.
            facts: JSON values for the manifest.

        Raises:
            OSError: where it cannot be written; nothing of it is left then.
        """
        return checkpoint_store.write(folder, step, encode(tree), facts)

    def read_shards(
        self, tree: dict[str, Any], checkpoint: Path, model: nn.Module, optimizer: torch.optim.Optimizer
    ) -> dict[str, Any]:
        """Return a checkpoint's tree with this rank's parts of what is missing; nothing is, unless `saves_shards`.

        Args:
            tree: state of the run; a tensor of device meta stands for one in the checkpoint's shards.
            checkpoint: folder of the checkpoint, verified.
            model: the prepared model.
        """
        return tree

    def accumulate(self, forward: Forward, inputs: Values, targets: Values, **how: Any) -> Tensor:
        """Run forward and backward over this rank's rows in micro-batches; see `gradient_accumulation.accumulate`.

        Args:
            forward: the model, possibly wrapped.
            inputs: this rank's rows, first dimension rows.
            targets: targets of the same rows.
            how: keywords of `gradient_accumulation.accumulate`.
        """
        return accumulate(forward, inputs, targets, **how)

    def share_buffers(self, model: nn.Module) -> None:
        """Give all ranks rank 0's buffers (running statistics)."""

    def announce_end(self, why: str) -> None:
        """Leave word for the others that this rank ends; no collective."""

    def barrier(self) -> None:
        """Wait until all ranks are here."""

    def release(self) -> None:
        """End what was started for training; votes and values still pass."""

    def close(self) -> None:
        """Leave the world; nothing may be called afterwards."""
