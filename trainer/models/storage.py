"""Weights as a file holds them: dense, without their zeros, or as int8; and a network made of either again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from trainer.models.build import build
from trainer.models.int8 import quantized

MASK, VALUES, SHAPE = ".mask", ".values", ".shape"


def without_zeros(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return each matrix as its values that are not 0, a bit for each place, and its shape; the rest as it is."""
    packed: dict[str, Tensor] = {}
    for name, value in weights.items():
        if value.ndim != 2:
            packed[name] = value
            continue
        there = value != 0
        packed[name + VALUES] = value[there].contiguous()
        packed[name + MASK] = torch.from_numpy(np.packbits(there.flatten().numpy()))
        packed[name + SHAPE] = torch.tensor(value.shape)
    return packed


def with_zeros(packed: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights that `without_zeros` packed.

    Raises:
        KeyError: where a part is missing.
        ValueError: where values and bits do not fit each other.
    """
    weights: dict[str, Tensor] = {}
    for name, value in packed.items():
        if name.endswith(VALUES):
            base = name.removesuffix(VALUES)
            rows, columns = packed[base + SHAPE].tolist()
            bits = np.unpackbits(packed[base + MASK].numpy(), count=rows * columns).astype(np.bool_)
            if bits.sum() != len(value):
                raise ValueError(f"{base} has {len(value)} values for {bits.sum()} places")
            dense = torch.zeros(rows * columns, dtype=value.dtype)
            dense[torch.from_numpy(bits)] = value
            weights[base] = dense.reshape(rows, columns)
        elif not name.endswith((MASK, SHAPE)):
            weights[name] = value
    return weights


def unpacked(description: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> nn.Module:
    """Return the network that `description` names, with the weights that its file holds.

    Raises:
        ValueError: for a network or a storage that this trainer does not know.
        RuntimeError, KeyError: where the weights do not fit.
    """
    storage = description.get("storage", "dense")
    if storage not in ("dense", "bitmask", "int8"):
        raise ValueError(f"no storage called {storage!r}; known: dense, bitmask, int8")
    network = build(description)
    if storage == "int8":
        network = quantized(network)
    network.load_state_dict(with_zeros(tensors) if storage == "bitmask" else tensors)
    return network
