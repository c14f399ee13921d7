"""Recovery when device memory runs out: the micro-batch, a snapshot of the step, and the allocator's report.

The failure is known by its class, never by its words: HIP, CUDA and later back ends word it differently.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

import torch
from torch import nn

from trainer.device.capacity import card_memory
from trainer.device.rng import RngState
from trainer.runtime.errors import TrainerError

# torch 2.4 has the class under its older name only
OutOfMemory: type[RuntimeError] = getattr(torch, "OutOfMemoryError", torch.cuda.OutOfMemoryError)

PATIENCE = 1000  # calm steps before the micro-batch is doubled again; doubled itself each time that failed
ALLOCATOR_VARIABLES = ("PYTORCH_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
HEADROOM = 0.9  # share of the memory a doubled micro-batch may be predicted to need


@dataclass(kw_only=True)
class MicroBatch:
    """Rows that a rank computes at a time: `size`, at most `limit`. It is part of the checkpoint.

    `calm` counts the steps since the size changed, `patience` those to wait for before it grows.
    """

    limit: int
    size: int
    calm: int = 0
    patience: int = PATIENCE
    halvings: int = 0
    grown: bool = False

    def within(self, limit: int) -> MicroBatch:
        """Return the same under another limit: the world of a resumed run may have another size."""
        return replace(self, limit=limit, size=min(self.size, limit) if self.halvings else limit)

    def shrink(self) -> None:
        """Halve the size; a size that was just grown to is not tried again for twice as long."""
        if self.grown and self.calm < self.patience:
            self.patience *= 2
        self.size, self.calm, self.grown = -(-self.size // 2), 0, False
        self.halvings += 1

    def count(self) -> bool:
        """Count a step that went well; return whether it is time to ask for a larger size."""
        self.calm += 1
        return self.size < self.limit and self.calm % self.patience == 0

    def grow(self) -> None:
        """Double the size."""
        self.size, self.calm, self.grown = min(2 * self.size, self.limit), 0, True


def first_size(requested: int | None, rows: int) -> MicroBatch:
    """Return the micro-batch to start with: `requested` rows, or for None all `rows` of a rank's largest share."""
    size = min(requested or rows, rows)
    return MicroBatch(limit=size, size=size)


@dataclass(frozen=True, kw_only=True)
class MemoryReport:
    """Bytes on one device. `reserved` is held by torch's allocator, `allocated` of that by tensors.

    `free` is what the driver could still give. `fragmented` is the share of the reserved bytes that no tensor
    uses: high with little free means the memory is there but in pieces.
    """

    reserved: int
    allocated: int
    peak: int
    free: int
    total: int
    fragmented: float


def report(device: torch.device) -> MemoryReport | None:
    """Return the memory of `device`, or None on a CPU, where the system decides."""
    if device.type != "cuda":
        return None
    free, total = card_memory(device)
    reserved, allocated = torch.cuda.memory_reserved(device), torch.cuda.memory_allocated(device)
    return MemoryReport(
        reserved=reserved,
        allocated=allocated,
        peak=torch.cuda.max_memory_allocated(device),
        free=free,
        total=total,
        fragmented=round(1 - allocated / reserved, 4) if reserved else 0.0,
    )


@dataclass(frozen=True, kw_only=True)
class StepSnapshot:
    """State that a step changes before its gradients are complete: random number generators and buffers."""

    rng: RngState
    buffers: list[torch.Tensor]

    @classmethod
    def of(cls, model: nn.Module, device: torch.device) -> StepSnapshot:
        """Remember the state before a step."""
        return cls(rng=RngState.now(device), buffers=[buffer.clone() for buffer in changing_buffers(model)])

    @torch.no_grad()
    def apply(self, model: nn.Module, device: torch.device) -> None:
        """Make it as if the step had never begun: no gradients, old buffers, the same random numbers again."""
        model.zero_grad(set_to_none=True)
        for buffer, before in zip(changing_buffers(model), self.buffers, strict=True):
            buffer.copy_(before)
        self.rng.restore(device)
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)  # the size that failed says nothing about the next
            torch.cuda.empty_cache()  # pieces of the larger micro-batch would be in the way of the smaller one's


def changing_buffers(model: nn.Module) -> list[torch.Tensor]:
    """Return the buffers, without those of modules that call themselves constant (frozen weights in 4 bits)."""
    modules = [module for module in model.modules() if not getattr(module, "constant", False)]
    return [buffer for module in modules for buffer in module.buffers(recurse=False)]


def reserve(optimizer: torch.optim.Optimizer) -> None:
    """Ask for the memory that the optimizer's step will take, and give it back: so it runs out here or not at all.

    An optimizer of the trainer's own returns by `reserve` what that is.
    AdamW allocates two moments a weight at its first step. Unless it is fused it takes a temporary a weight at every
    step, when weights and moments are changed already. The allocator keeps what is given back, and the step finds it.

    Raises:
        OutOfMemory: where it is not there; nothing has changed then.
    """
    own = getattr(optimizer, "reserve", None)
    held = [] if own is None else own()
    for group in optimizer.param_groups if own is None else ():
        temporary = 0 if group.get("fused") else 1
        for weight in group["params"]:
            count = temporary + (0 if optimizer.state.get(weight) else 2)
            held += [torch.empty_like(weight) for _ in range(count)]


@dataclass(frozen=True, kw_only=True)
class OptimizerUnchanged:
    """Versions of the tensors that a step changes, before it: torch counts writes in place."""

    optimizer: torch.optim.Optimizer
    writes: dict[int, int]

    @classmethod
    def of(cls, optimizer: torch.optim.Optimizer) -> OptimizerUnchanged:
        """Remember the counts before a step."""
        return cls(optimizer=optimizer, writes={id(value): value._version for value in _changing(optimizer)})

    def holds(self) -> bool:
        """Return whether a step that failed has changed nothing; moments that it began to allocate are dropped."""
        optimizer = self.optimizer
        if any(value._version != self.writes.get(id(value), value._version) for value in _changing(optimizer)):
            return False
        for weight, state in [*optimizer.state.items()]:
            if any(torch.is_tensor(value) and id(value) not in self.writes for value in state.values()):
                del optimizer.state[weight]
        return True


def _changing(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    moments = [value for weight in weights for value in optimizer.state.get(weight, {}).values()]
    return weights + [value for value in moments if torch.is_tensor(value)]


def allocator_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the allocator's settings from the environment, by variable; the trainer itself sets none.

    Which variable a torch reads depends on its version and build, and the program that starts the trainer knows.
    """
    return {name: environment[name] for name in ALLOCATOR_VARIABLES if environment.get(name)}


def require_divisible(micro_batch: MicroBatch, *, step: int, device: torch.device) -> None:
    """Raise RM523 where the micro-batch is one row already.

    Args:
        step: number of the step that ran out of memory.
        device: device that it ran on.
    """
    if micro_batch.size > 1:
        return
    found = report(device)
    reported = (
        ", ".join(f"{name} {value:,}" for name, value in asdict(found).items()) if found else "no report on a CPU"
    )
    raise TrainerError("RM523", what="one row at a time does not fit", where=f"step {step + 1}, {device}", why=reported)


def may_grow(device: torch.device) -> bool:
    """Return whether twice the size is predicted to fit: what rests stays, what a step adds doubles."""
    found = report(device)
    if found is None:
        return True
    step = max(0, found.peak - found.allocated)
    room = found.free + found.reserved
    return math.ceil(found.allocated + 2 * step) <= HEADROOM * room
