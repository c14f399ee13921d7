"""One of several ranks over gloo on the CPU that write or read a checkpoint; prints what it found as one JSON line."""

from __future__ import annotations

import contextlib
import errno
import json
import sys
from pathlib import Path
from typing import Any

import torch
from torch import nn

from trainer.distributed.parallel.join import connect, join
from trainer.distributed.parallel.sharded import Sharded
from trainer.distributed.sharded_checkpoint import save_load, shard_files
from trainer.storage.checkpoint_store import read, stored
from trainer.storage.checkpoint_tree import INDEX, decode
from trainer.storage.serialization import HostMemory


def made(world: Sharded, seed: int) -> tuple[nn.Module, torch.optim.Optimizer]:
    """A model with a weight of fewer rows than ranks, after a step, so that the optimizer has states."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 2))
    world.prepare(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    model(torch.ones(3, 5)).square().sum().backward()
    optimizer.step()
    return model, optimizer


def tree_of(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    best = {name: value.detach() * 2 for name, value in model.state_dict().items()}
    state = {"best": best, "losses": torch.ones(3), "step": 4}
    tree = {"state": state, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
    copied: dict[str, Any] = HostMemory().copy(tree)
    return copied


def write_whole_and_parts(world: Sharded, folder: Path) -> dict[str, Any]:
    """Write a checkpoint in parts, and next to it the same state whole, as the test reads it."""
    model, optimizer = made(world, seed=1)
    path = world.write_checkpoint(folder / "parts", 4, tree_of(model, optimizer), {"validation_loss": 0.5})
    weights = world.full_state_dict(dict(model.state_dict()))
    moments = world.full_optimizer_state(optimizer)["state"]
    if world.is_main:
        torch.save({"weights": weights, "moments": moments}, folder / "whole.pt")
    return {"path": path and path.name}


def copy_parts(world: Sharded, folder: Path) -> dict[str, Any]:
    """Read the checkpoint of any number of ranks, and write it again from what was read."""
    model, optimizer = made(world, seed=2)
    one = stored(folder / "parts")[0]
    files, facts = read(one)
    tree = decode(files, save_load.described(files[INDEX]))
    read_back = world.read_shards(tree, one.path, model, optimizer)
    world.load_model(model, read_back["model"])
    world.load_optimizer(optimizer, read_back["optimizer"])
    world.write_checkpoint(folder / "again", 4, tree_of(model, optimizer), facts)
    return {"sharded": all(hasattr(each, "full_tensor") for each in read_back["model"].values())}


def full_disk(world: Sharded, folder: Path) -> dict[str, Any]:
    """One rank cannot write: all have an error, nothing is left, and the next checkpoint is written."""
    model, optimizer = made(world, seed=1)
    write_pieces = shard_files.write_pieces

    def full(path: Path, content: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    if world.rank == world.world_size - 1:
        shard_files.write_pieces = full
    seen: dict[str, Any] = {}
    try:
        world.write_checkpoint(folder, 4, tree_of(model, optimizer), {})
    except OSError as error:
        seen = {"errno": error.errno}
    shard_files.write_pieces = write_pieces
    world.barrier()
    seen["left"] = [path.name for path in folder.iterdir()]
    world.barrier()
    world.write_checkpoint(folder, 5, tree_of(model, optimizer), {})
    world.barrier()
    return {**seen, "then": [path.name for path in folder.iterdir()]}


def main() -> None:
    torch.set_num_threads(1)
    program = {each.__name__: each for each in (write_whole_and_parts, copy_parts, full_disk)}[sys.argv[1]]
    world = join(connect(), "cpu", parallel="fsdp2", report=lambda *_, **__: None)
    assert isinstance(world, Sharded)
    with contextlib.closing(world):
        found = program(world, Path(sys.argv[2]))
        world.release()
    print(json.dumps(found))


if __name__ == "__main__":
    sys.exit(main())
