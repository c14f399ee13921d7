"""Models of transformers and adapters of peft on tensors without data: what these ask values or torch's swap for."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from trainer.run.memory_plan.allocator import DoesNotFitError
from trainer.runtime.errors import TrainerError


@contextlib.contextmanager
def own_class_without_data(config: Mapping[str, Any]) -> Iterator[None]:
    """Have a class of transformers with an adapter of peft be made and computed without data within the context.

    `Module.to` puts converted weights into the place of the others: torch swaps the contents of two tensors without
    data, and refuses that where one has a weak reference, and peft moves each new layer to where it is already. And
    rows are single documents, which transformers finds out by the values of positions; it holds a mask where it cannot.

    Args:
        config: content of the adapter's adapter_config.json, named in an error.

    Raises:
        TrainerError: RM712 where the method ends in another error, as prefix tuning does with activation checkpointing:
            its keys and values are added again when a layer is computed again.
    """
    from transformers import masking_utils

    replaced = [(nn.Module, "_apply", _applied), (masking_utils, "find_packed_sequence_indices", _not_packed)]
    before = [getattr(place, name, None) for place, name, _ in replaced]
    try:
        for (place, name, value), earlier in zip(replaced, before, strict=True):
            if earlier is not None:
                setattr(place, name, value)
        yield
    except (TrainerError, DoesNotFitError):
        raise
    except Exception as error:  # its methods raise anything for what they do not expect
        what = f"a step of peft's {config.get('peft_type')} cannot be planned: {type(error).__name__}"
        next = "Leave activation checkpointing off, correct --peft-config, or plan --method lora."
        raise TrainerError("RM712", what=what, why=" ".join(str(error).split())[:300], next=next) from None
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
