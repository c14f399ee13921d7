"""Nested Python data as JSON and named tensors, and back. What it does not know it refuses; nothing is unpickled."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

_LEAVES: dict[str, Callable[[str], Any]] = {"tensor": str, "bytes": bytes.fromhex, "float": float}


def pack(value: Any, tensors: dict[str, Tensor], name: str = "") -> Any:
    """Return `value` in JSON's types; each tensor goes into `tensors` under its path and leaves its name.

    Args:
        value: nested dicts, lists and tuples.
        tensors: receives each tensor under its path.
        name: path of `value`; empty at the root.

    Raises:
        TypeError: for anything but dict, list, tuple, str, int, float, bool, None, bytes and tensors.
    """
    match value:
        case None | bool() | int() | str():
            packed: Any = value
        case float():
            packed = value if math.isfinite(value) else {"float": str(value)}
        case bytes() | bytearray():
            packed = {"bytes": value.hex()}
        case Tensor():
            tensors[name] = value
            packed = {"tensor": name}
        case tuple():
            packed = {"tuple": _items(value, tensors, name)}
        case list():
            packed = _items(value, tensors, name)
        case dict():
            packed = {"map": [[key, pack(item, tensors, f"{name}/{key}")] for key, item in value.items()]}
        case _:
            raise TypeError(f"{name}: {type(value).__name__} has no place in a checkpoint")
    return packed


def unpack(value: Any, tensors: dict[str, Tensor]) -> Any:
    """Return what `pack` was given.

    Raises:
        KeyError, ValueError: where `value` did not come from `pack` or a tensor is missing.
    """
    if isinstance(value, list):
        return [unpack(item, tensors) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "map":
        return {key: unpack(item, tensors) for key, item in content}
    if kind == "tuple":
        return tuple(unpack(item, tensors) for item in content)
    if kind not in _LEAVES:
        raise ValueError(f"unknown kind {kind!r}")
    return tensors[content] if kind == "tensor" else _LEAVES[kind](content)


class HostMemory:
    """Tensors on the host that copies go to, time and again: the first write to new memory costs most of a copy.

    A copy is the CPU's own, contiguous, and holds until the next one is made, whatever becomes of the original.
    """

    def __init__(self) -> None:
        self._held: dict[tuple[object, ...], Tensor] = {}

    def copy(self, value: Any, *path: object) -> Any:
        """Return `value` with its tensors copied; those of an earlier copy with the same `path` are overwritten."""
        if isinstance(value, Tensor):
            return self._tensor(path, value)
        if isinstance(value, dict):
            return {key: self.copy(item, *path, key) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(self.copy(item, *path, index) for index, item in enumerate(value))
        return bytes(value) if isinstance(value, bytearray) else value

    @torch.no_grad()
    def _tensor(self, path: tuple[object, ...], value: Tensor) -> Tensor:
        if hasattr(value, "full_tensor"):  # spread over ranks; a new copy of this rank's part each time
            return value.detach().to("cpu", copy=True)
        held = self._held.get(path)
        if held is None or (held.shape, held.dtype) != (value.shape, value.dtype):
            self._held[path] = held = torch.empty(value.shape, dtype=value.dtype)
        return held.copy_(value)


def _items(values: list[Any] | tuple[Any, ...], tensors: dict[str, Tensor], name: str) -> list[Any]:
    return [pack(item, tensors, f"{name}/{index}") for index, item in enumerate(values)]
