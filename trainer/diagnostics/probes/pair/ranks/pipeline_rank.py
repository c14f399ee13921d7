"""One rank of the pipeline; torchrun starts two of these (see `two_gpu_step_pipeline`)."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from trainer.device.compiler_import import avoid_compiler_import
from trainer.diagnostics.probes.pair.ranks import compare_steps, ddp_rank
from trainer.diagnostics.probes.pair.ranks.ddp_rank import STEPS, WORLD

if TYPE_CHECKING:
    import torch

PIECES = 4  # micro-batches
CUT = 2  # layers of the first rank: Linear and Tanh; the second has the last Linear


def phases(rank: int, device: torch.device, seed: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Train this rank's layers in the pipeline, and the whole alone; compare the weights of these layers.

    Args:
        rank: 0 or 1.
        device: where this rank computes: cuda:RANK, or cpu for ranks without cards.
        seed: seeds weights and batches; it must be equal on both ranks.
    """
    import torch

    half, where = mine(rank, device, seed)
    avoid_compiler_import()
    optimizer = torch.optim.SGD(half.parameters(), lr=0.1, momentum=0.9)
    schedule = pipeline(half, rank, where)
    for number in range(STEPS):
        optimizer.zero_grad()
        x, y = (tensor.to(where) for tensor in ddp_rank.joined(ddp_rank.draw_shards(seed, number)))
        step(schedule, rank, x, y)
        optimizer.step()
    found = ddp_rank.flat_weights(half)
    first = slice(0, len(found)) if rank == 0 else slice(-len(found), None)
    yield "weights", compare_steps.compare(found, seed, device, held=len(found), part=first)


def mine(rank: int, device: torch.device, seed: int) -> tuple[torch.nn.Module, torch.device]:
    """Return this rank's layers, and the device of what the ranks exchange: `device`, or the host for one retry.

    Args:
        rank: 0 or 1.
        device: where this rank computes: cuda:RANK, or cpu for ranks without cards.
        seed: seed of the weights.
    """
    import torch

    model: Any = ddp_rank.seeded_mlp(seed)
    half: torch.nn.Module = model[:CUT] if rank == 0 else model[CUT:]
    if not ddp_rank.through_host():
        return half.to(device), device
    from trainer.diagnostics.probes.pair.ranks.host_staging import Staged

    return Staged(half, device), torch.device("cpu")


def pipeline(half: torch.nn.Module, rank: int, device: torch.device) -> Any:
    """Return the schedule over both ranks; its loss is a piece's part of the mean over the batch.

    Args:
        half: layers of this rank.
        rank: 0 or 1.
        device: device of what the ranks exchange.
    """
    import torch
    from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

    def loss(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.mse_loss(output, target) / PIECES

    # Some versions divide gradients by the number of pieces themselves, and can be told not to.
    scales = "scale_grads" in inspect.signature(ScheduleGPipe).parameters
    unscaled: dict[str, Any] = {"scale_grads": False} if scales else {}
    return ScheduleGPipe(PipelineStage(half, rank, WORLD, device), PIECES, loss_fn=loss, **unscaled)


def step(schedule: Any, rank: int, x: torch.Tensor, y: torch.Tensor) -> None:
    """Take one batch through the pipeline, forward and backward: the first rank has the inputs, the last the targets.

    Args:
        schedule: schedule of `pipeline`.
        rank: 0 or 1.
        x: inputs, shape (rows, features).
        y: targets, shape (rows, outputs).
    """
    if rank == 0:
        schedule.step(x)
    else:
        schedule.step(target=y)


if __name__ == "__main__":
    ddp_rank.leave(ddp_rank.take_part(None, phases), sys.argv)
