"""Storage of torch.distributed.checkpoint without a pickle: each rank's parts as safetensors, the index as JSON.

torch's own FileSystemWriter pickles its metadata, and reading it back would run what a file names. Planning and
resharding are torch's; only bytes and index are here. Interfaces: torch/distributed/checkpoint/storage.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)
from torch.distributed.checkpoint.planner import LoadPlan, LoadPlanner, SavePlan, SavePlanner
from torch.distributed.checkpoint.storage import StorageReader, StorageWriter, WriteResult
from torch.futures import Future

from trainer.storage.checkpoint_store import SHARD, begin, write_pieces
from trainer.storage.safetensors_writer import NAMES, chunks

DTYPES = {name: dtype for dtype, name in NAMES.items()}
FILE = re.compile(SHARD + r"[0-9]{5,9}\.safetensors")
Index = dict[str, dict[str, Any]]  # of each tensor: dtype, shape, and of each chunk its place in tensor and file


class ShardWriter(StorageWriter):
    """Writes one file a rank. After `save`, rank 0 has the `index`, and size and SHA-256 of all `files` by name."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.index: Index = {}
        self.files: dict[str, dict[str, Any]] = {}

    def reset(self, checkpoint_id: Any = None) -> None:
        """Do nothing: an instance writes one checkpoint."""

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Make the folder; that no rank writes before is the planning's order.

        Args:
            is_coordinator: whether this is rank 0.
            args: not used.
            kwargs: not used.

        Raises:
            OSError: where it cannot be made.
        """
        if is_coordinator:
            begin(self.folder)

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """Return the plan as it is."""
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Give each rank's plan the name of its file."""
        return [replace(plan, storage_data=f"{SHARD}{rank:05d}.safetensors") for rank, plan in enumerate(plans)]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """Write this rank's chunks.

        Raises:
            OSError: where the file cannot be written.
        """
        parts: dict[str, Any] = {_key(item.index): planner.resolve_data(item) for item in plan.items}
        name = plan.storage_data
        record = write_pieces(self.folder / name, chunks(parts)) if parts else None
        written = [
            WriteResult(
                index=item.index,
                size_in_bytes=parts[_key(item.index)].nbytes,
                storage_data={"file": name, "record": record, "sizes": list(parts[_key(item.index)].shape)},
            )
            for item in plan.items
        ]
        done: Future[list[WriteResult]] = Future()
        done.set_result(written)
        return done

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Collect index and records of files; rank 0 alone."""
        for name, about in metadata.state_dict_metadata.items():
            assert isinstance(about, TensorStorageMetadata)  # nothing else is given to `save`
            self.index[name] = {"dtype": NAMES[about.properties.dtype], "shape": list(about.size), "chunks": []}
        for result in (each for rank in results for each in rank):
            place = result.storage_data
            chunk = {"file": place["file"], "offsets": list(result.index.offset or ()), "sizes": place["sizes"]}
            self.index[result.index.fqn]["chunks"].append(chunk)
            self.files[place["file"]] = place["record"]

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Any) -> bool:
        """Return whether an id names a place to write to; none is used here."""
        return False


class ShardReader(StorageReader):
    """Reads chunks, or the parts of them that this rank needs, from files that were verified before."""

    def __init__(self, folder: Path, index: Mapping[str, Any]) -> None:
        self.folder, self.index = folder, index
        self.places: dict[MetadataIndex, str] = {}

    def reset(self, checkpoint_id: Any = None) -> None:
        """Do nothing: an instance reads one checkpoint."""

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """Return the index as torch describes tensors."""
        tensors: dict[str, Any] = {name: _described(about) for name, about in self.index.items()}
        return Metadata(state_dict_metadata=tensors)

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Note which chunk is in which file.

        Args:
            metadata: what `read_metadata` returned; not used.
            is_coordinator: whether this is rank 0; not used.
            args: not used.
            kwargs: not used.
        """
        for name, about in self.index.items():
            for chunk in about["chunks"]:
                self.places[MetadataIndex(name, chunk["offsets"])] = chunk["file"]

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """Return the plan as it is."""
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """Return the plans as they are."""
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Copy what the plan names into the tensors that wait for it."""
        by_file: dict[str, list[Any]] = {}
        for item in plan.items:
            by_file.setdefault(self.places[item.storage_index], []).append(item)
        for name, items in by_file.items():
            with safe_open(self.folder / name, framework="pt") as stored:
                for item in items:
                    _read(stored, item, planner)
        done: Future[None] = Future()
        done.set_result(None)
        return done

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Any) -> bool:
        """Return whether an id names a place to read from; none is used here."""
        return False


def read_index(content: bytes) -> Index:
    """Return the index that a checkpoint's file holds.

    Raises:
        ValueError, LookupError, TypeError: where it is of another form, or its chunks do not fill its tensors.
    """
    index: Index = json.loads(content)
    if not isinstance(index, dict) or not all(isinstance(about, dict) for about in index.values()):
        raise TypeError("it maps no names to tensors")
    for name, about in index.items():
        shape = _sizes(about["shape"])
        held = sum(_sizes(chunk["sizes"]).numel() for chunk in about["chunks"])
        if about["dtype"] not in DTYPES or held != shape.numel():
            raise ValueError(f"{name}: {held} of {shape.numel()} values of type {about['dtype']}")
        if any(not FILE.fullmatch(chunk["file"]) for chunk in about["chunks"]) or not _apart(about["chunks"], shape):
            raise ValueError(f"{name}: a chunk is in no shard, or has no place of its own in the tensor")
    return index


def _apart(chunks: list[dict[str, Any]], shape: torch.Size) -> bool:
    """Return whether all chunks are within a tensor and none covers a part of another: gaps would hold no value."""
    places = sorted((_sizes(chunk["offsets"]), _sizes(chunk["sizes"])) for chunk in chunks)
    boxes = [[*zip(begin, size, strict=True)] for begin, size in places]
    if any(len(box) != len(shape) for box in boxes):
        return False
    if any(begin + size > whole for box in boxes for (begin, size), whole in zip(box, shape, strict=True)):
        return False
    held = [box for box in boxes if all(size for _, size in box)]
    for number, box in enumerate(held):
        for other in held[number + 1 :]:
            if _over(box, other):
                return False
            if box and other[0][0] >= sum(box[0]):
                break  # they are sorted: all that follow begin behind this one
    return True


def _over(box: list[tuple[int, int]], other: list[tuple[int, int]]) -> bool:
    """Return whether two boxes, of each dimension begin and size, share a place."""
    return all(a < b + more and b < a + size for (a, size), (b, more) in zip(box, other, strict=True))


def _sizes(value: Any) -> torch.Size:
    if not isinstance(value, list) or not all(type(each) is int and each >= 0 for each in value):
        raise TypeError(f"{value!r} is no list of sizes")
    return torch.Size(value)


def _described(about: Mapping[str, Any]) -> TensorStorageMetadata:
    places = [
        ChunkStorageMetadata(offsets=torch.Size(chunk["offsets"]), sizes=torch.Size(chunk["sizes"]))
        for chunk in about["chunks"]
    ]
    kind = TensorProperties(dtype=DTYPES[about["dtype"]])
    return TensorStorageMetadata(properties=kind, size=torch.Size(about["shape"]), chunks=places)


def _read(stored: Any, item: Any, planner: LoadPlanner) -> None:
    target = planner.resolve_tensor(item).detach()
    if target.numel():
        begin_and_length = zip(item.storage_offsets, item.lengths, strict=True)
        place = tuple(slice(begin, begin + length) for begin, length in begin_and_length)
        whole = stored.get_slice(_key(item.storage_index)) if place else stored.get_tensor(_key(item.storage_index))
        target.copy_(whole[place] if place else whole)
    planner.commit_tensor(item, target)


def _key(index: MetadataIndex) -> str:
    """Return the name of a chunk within its file: a rank may hold several of one tensor."""
    return f"{index.fqn}@{','.join(str(offset) for offset in index.offset or ())}"
