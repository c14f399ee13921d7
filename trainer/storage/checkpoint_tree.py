"""A captured state as the files of a checkpoint, and back: JSON and safetensors."""

from __future__ import annotations

import json
from typing import Any

import safetensors.torch
from torch import Tensor

from trainer.storage.checkpoint_store import Pieces
from trainer.storage.safetensors_writer import chunks
from trainer.storage.serialization import pack, unpack

STATE, TENSORS = "state.json", "tensors.safetensors"
INDEX = "shards.json"  # where each rank has written its part: the tensors that the shards hold


def encode(tree: dict[str, Any]) -> dict[str, Pieces]:
    """Return a captured tree as the files of a checkpoint, each in pieces: JSON and safetensors."""
    tensors: dict[str, Tensor] = {}
    record = pack(tree, tensors)
    return {STATE: [json.dumps(record, allow_nan=False).encode()], TENSORS: list(chunks(tensors))}


def decode(files: dict[str, bytes], more: dict[str, Tensor] | None = None) -> dict[str, Any]:
    """Return the tree of files that `encode` made; only bytes that were verified come here.

    Args:
        files: content of the files by name.
        more: tensors by name that other files hold.
    """
    tensors = safetensors.torch.load(files[TENSORS]) | (more or {})
    tree: dict[str, Any] = unpack(json.loads(files[STATE]), tensors)
    return tree
