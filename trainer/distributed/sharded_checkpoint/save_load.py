"""Save and load a checkpoint's sharded tensors: every rank its own part, on any number of ranks."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner, DefaultSavePlanner
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save

from trainer.distributed.sharded_checkpoint.shard_files import DTYPES, ShardReader, ShardWriter, read_index
from trainer.storage import checkpoint_store as store
from trainer.storage.checkpoint_store import Pieces, write_pieces
from trainer.storage.checkpoint_tree import INDEX, STATE, TENSORS
from trainer.storage.safetensors_writer import chunks
from trainer.storage.serialization import pack, unpack

Target = Callable[[str, Tensor], Tensor]


def write(folder: Path, step: int, tree: dict[str, Any], facts: Mapping[str, Any], group: Any) -> Path | None:
    """Write a captured tree, whose sharded tensors each rank writes its part of; return the path on rank 0 alone.

    A collective over `group`, which nothing else uses meanwhile. The folder must be the same one for all ranks. As
    with `checkpoint_store.write` the checkpoint is there whole or not at all. What is not sharded is rank 0's.

    Args:
        folder: folder of the run's checkpoints.
        step: number of steps taken.
        tree: state of the run on the host, of one structure on all ranks.
        facts: JSON values for the manifest.
        group: process group of gloo over all ranks.

    Raises:
        OSError: where a rank could not write, or does not see the folder.
        RuntimeError: where another rank ended.
    """
    tensors: dict[str, Tensor] = {}
    record = pack(tree, tensors)
    parts = {name: value for name, value in tensors.items() if hasattr(value, "full_tensor")}
    writer, main = ShardWriter(store.partial_of(folder, step)), dist.get_rank(group) == 0
    try:
        _save(parts, writer, group)
        if not main:
            return None
        plain = {name: value for name, value in tensors.items() if name not in parts}
        files: dict[str, Pieces] = {STATE: [_json(record)], INDEX: [_json(writer.index)], TENSORS: list(chunks(plain))}
        records = {name: write_pieces(writer.folder / name, content) for name, content in files.items()}
        return store.publish(writer.folder, step, writer.files | records, facts)
    except BaseException:
        if main:
            shutil.rmtree(writer.folder, ignore_errors=True)
        raise


def _save(parts: dict[str, Tensor], writer: ShardWriter, group: Any) -> None:
    planner = DefaultSavePlanner(flatten_state_dict=False)
    try:
        save(parts, storage_writer=writer, planner=planner, process_group=group)
    except CheckpointException as error:  # not of the class Exception
        causes = [cause for cause, _ in error.failures.values()]
        raise next((cause for cause in causes if isinstance(cause, OSError)), RuntimeError(str(causes))) from error


def described(content: bytes | None) -> dict[str, Tensor]:
    """Return the sharded tensors of a checkpoint by name, without their values: on device meta.

    Args:
        content: bytes of the checkpoint's INDEX; None where it has none.

    Raises:
        ValueError, LookupError, TypeError: where they are no index.
    """
    index = read_index(content) if content is not None else {}
    return {
        name: torch.empty(about["shape"], dtype=DTYPES[about["dtype"]], device="meta") for name, about in index.items()
    }


def filled(tree: dict[str, Any], checkpoint: Path, target: Target, group: Any = None) -> dict[str, Any]:
    """Return `tree` with values for its tensors of device meta; a collective where `group` is given.

    Args:
        tree: state of the run, as `decode` returned it with what `described` gave.
        checkpoint: folder of the checkpoint, verified.
        target: makes the tensor that is filled, from the tensor's name and itself; sharded or not.
        group: process group of all ranks; None where one process reads alone.

    Raises:
        ValueError: where a target has another shape than what is stored.
    """
    tensors: dict[str, Tensor] = {}
    record = pack(tree, tensors)
    targets = {name: target(name, value) for name, value in tensors.items() if value.is_meta}
    if not targets:
        return tree
    other = [name for name, value in targets.items() if value.shape != tensors[name].shape]
    if other:
        raise ValueError(f"{other[0]} has shape {list(tensors[other[0]].shape)}, not {list(targets[other[0]].shape)}")
    _load(targets, ShardReader(checkpoint, read_index((checkpoint / INDEX).read_bytes())), group)
    found: dict[str, Any] = unpack(record, tensors | targets)
    return found


def whole(name: str, value: Tensor) -> Tensor:
    """Return a tensor on the host for all of a stored one: a `target` of `filled`."""
    return torch.empty(value.shape, dtype=value.dtype)


def _load(targets: dict[str, Tensor], reader: ShardReader, group: Any) -> None:
    planner = DefaultLoadPlanner(flatten_state_dict=False)
    alone = group is None
    try:
        with warnings.catch_warnings(action="ignore"):  # that one process reads alone, which is meant
            load(targets, storage_reader=reader, planner=planner, process_group=group, no_dist=alone)
    except CheckpointException as error:
        raise ValueError(str([cause for cause, _ in error.failures.values()])) from error


def _json(value: Any) -> bytes:
    return json.dumps(value, allow_nan=False).encode()
