"""One rank of the FSDP2 step; torchrun starts two of these (see `two_gpu_step_fsdp2`)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from trainer.diagnostics.probes.pair.ranks import compare_steps, ddp_rank
from trainer.diagnostics.probes.pair.ranks.ddp_rank import STEPS, WORLD

if TYPE_CHECKING:
    import torch


def phases(rank: int, device: torch.device, seed: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Train sharded, and alone on the joined batches; compare the whole weights that come of it.

    Where layers are staged, the card's own thread of a backward pass hands gradients of weights and of inputs to the
    host's in either order, and a layer is reduced as soon as that of its inputs is there: each rank then reduces other
    weights. One thread walks the graph in the order in which it was built. Seen on two H200 with torch 2.11.

    Args:
        rank: 0 or 1.
        device: where this rank computes: cuda:RANK, or cpu for ranks without cards.
        seed: seed of the random numbers.
    """
    import torch
    from torch.distributed.tensor import DTensor

    torch.manual_seed(seed)
    where = torch.device("cpu") if ddp_rank.through_host() else device
    sharded = shard(model(seed, device), where)
    held = sum(p.to_local().numel() for p in sharded.parameters() if isinstance(p, DTensor))
    with torch.autograd.set_multithreading_enabled(not ddp_rank.through_host()):
        ddp_rank.train(sharded, [ddp_rank.draw_shards(seed, step)[rank] for step in range(STEPS)], where)
    whole = torch.cat([p.full_tensor().detach().flatten().cpu() for p in sharded.parameters()])  # type: ignore[attr-defined]
    yield "weights", compare_steps.compare(whole, seed, device, held=held)


def model(seed: int, device: torch.device) -> torch.nn.Module:
    """Return the network on `device`, or in host memory for the retry that is staged through it."""
    import torch

    network: Any = ddp_rank.seeded_mlp(seed)
    if not ddp_rank.through_host():
        return network.to(device)  # type: ignore[no-any-return]
    from trainer.diagnostics.probes.pair.ranks.host_staging import Staged

    return torch.nn.Sequential(*(Staged(layer, device) for layer in network))


def shard(model: torch.nn.Module, device: torch.device) -> torch.nn.Module:
    """Shard each layer with weights, and the model, over both ranks."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh(device.type, (WORLD,))
    for layer in model.children():
        if any(True for _ in layer.parameters()):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


if __name__ == "__main__":
    ddp_rank.leave(ddp_rank.take_part(None, phases), sys.argv)
