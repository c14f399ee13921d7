"""Models of transformers and adapters of peft on tensors without data: what these ask values or torch's swap for."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn


@contextlib.contextmanager
def own_class_without_data() -> Iterator[None]:
    """Have a class of transformers with an adapter of peft be made and computed without data within the context.

    `Module.to` puts converted weights into the place of the others: torch swaps the contents of two tensors without
    data, and refuses that where one has a weak reference, and peft moves each new layer to where it is already. And rows
    are single documents, which transformers finds out by the values of positions; it holds a mask where it cannot.
    """
    from transformers import masking_utils

    replaced = [(nn.Module, "_apply", _applied), (masking_utils, "find_packed_sequence_indices", _not_packed)]
    before = [getattr(place, name, None) for place, name, _ in replaced]
    try:
        for (place, name, value), earlier in zip(replaced, before, strict=True):
            if earlier is not None:
                setattr(place, name, value)
        yield
    finally:
        for (place, name, _), earlier in zip(replaced, before, strict=True):
            if earlier is not None:
                setattr(place, name, earlier)


def _not_packed(position_ids: Tensor) -> None:
    return None


@torch.no_grad()
def _applied(module: nn.Module, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> nn.Module:
    for child in module.children() if recurse else ():
        child._apply(fn)
    for name, weight in module._parameters.items():
        if weight is not None and (made := fn(weight)) is not weight:
            module._parameters[name] = nn.Parameter(made, weight.requires_grad)
    for name, buffer in module._buffers.items():
        if buffer is not None:
            module._buffers[name] = fn(buffer)
    return module
