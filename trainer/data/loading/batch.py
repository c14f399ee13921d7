"""Batches of any structure: a tensor, or a tuple or mapping of tensors whose first dimension is the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

Values = Tensor | tuple[Tensor, ...] | Mapping[str, Tensor]
Batch = tuple[Any, Any]  # inputs and targets, `Values` each


def tensors(values: Values) -> Iterator[Tensor]:
    """Yield the tensors of `values` in their order."""
    if isinstance(values, Tensor):
        yield values
    else:
        yield from values.values() if isinstance(values, Mapping) else values


def apply(change: Callable[[Tensor], Tensor], values: Values) -> Any:
    """Return `values` with each tensor changed, in the same structure."""
    if isinstance(values, Tensor):
        return change(values)
    if isinstance(values, Mapping):
        return {name: change(value) for name, value in values.items()}
    return tuple(change(value) for value in values)


def count(values: Values) -> int:
    """Return the number of rows."""
    return len(values) if isinstance(values, Tensor) else len(next(tensors(values)))


def cut(values: Values, rows: slice) -> Any:
    """Return some of the rows."""
    return values[rows] if isinstance(values, Tensor) else apply(lambda value: value[rows], values)


def to(values: Values, device: torch.device) -> Any:
    """Return the rows on `device`; from memory of the host to a card they go through pinned memory."""

    def moved(value: Tensor) -> Tensor:
        if device.type == "cuda" and value.device.type == "cpu":
            value = value.pin_memory()
        return value.to(device, non_blocking=True)

    return apply(moved, values)


def call(model: nn.Module, inputs: Values) -> Any:
    """Return what `model` makes of inputs: a tensor is its argument, a tuple its arguments, a mapping its keywords."""
    if isinstance(inputs, Tensor):
        return model(inputs)
    return model(**inputs) if isinstance(inputs, Mapping) else model(*inputs)
