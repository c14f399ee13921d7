"""Activation checkpointing: activations are freed after the forward pass and computed again in backward.

`full` keeps only the inputs of each layer; `selective` also keeps the results of matrix products and attention,
which cost most to compute again; `off` keeps everything. `offloaded` is full, and has the inputs of each layer wait in
the host's memory. The gradients are the same bits in all four, but where full and offloaded compute a decoder's
feed-forward layers by tiles of tokens: with more than 16,384 of them in a micro-batch, over 4-bit weights 8,192.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.utils import checkpoint as torch_checkpoint

from trainer.models.decoder.layers import draws_numbers
from trainer.models.decoder.model import Block
from trainer.models.decoder.recomputation import Recomputation
from trainer.runtime.errors import TrainerError

SINCE = "2.4"  # torch.utils.checkpoint.create_selective_checkpoint_contexts


def checkpointed(model: nn.Module, choice: str, layers: Sequence[nn.Module]) -> nn.Module:
    """Make each of `layers`, modules within `model`, drop its activations as `choice` decides; return `model`.

    In place and without a wrapper: names in the state dict stay what they are.

    Args:
        choice: value of `--activation-checkpointing`: off, selective, full or offloaded.
        layers: modules within `model` whose activations are computed again.
        model: network, changed in place.

    Raises:
        TrainerError: RM562 for `selective` in a torch that lacks it, RM563 for a model without such layers.
    """
    if choice == "off":
        return model
    if not layers:
        raise TrainerError("RM563", what=f"--activation-checkpointing {choice}: the model has no layers to recompute")
    more: dict[str, Any] = {"context_fn": selective_contexts() if choice == "selective" else marking_contexts}
    if all(isinstance(layer, Block) and not draws_numbers(layer) for layer in layers):
        more["preserve_rng_state"] = False  # reading and setting generators costs the host time, and a graph forbids it
    # One class for all layers of a kind: compiled code is guarded by the class, and with a class each a compiler gives
    # up after a few layers, between forward and backward, which then compute differently.
    kinds: dict[type[nn.Module], type[nn.Module]] = {}
    for layer in layers:
        if choice in ("full", "offloaded") and isinstance(layer, Block):
            layer.take_tiles()
        if choice == "selective" and getattr(getattr(layer, "fast", None), "selective", False):
            continue  # such a layer keeps products alone by itself; to watch its operations would double the step
        kind = type(layer)
        if kind not in kinds:
            kinds[kind] = offloading(kind) if choice == "offloaded" else recomputing(kind, more)
        layer.__class__ = kinds[kind]  # a copy of the layer recomputes itself, not this one
    return model


def require_whole_layers(choice: str, parallel: str) -> None:
    """Raise RM563 for `offloaded` where ranks hold parts of layers or of rows: their hooks and it were never together.

    Args:
        choice: value of `--activation-checkpointing`.
        parallel: value of `--parallel`.
    """
    if choice == "offloaded" and parallel != "ddp":
        what = f"--activation-checkpointing offloaded with --parallel {parallel}"
        raise TrainerError("RM563", what=what, next="Use --activation-checkpointing full, or --parallel ddp.")


def layers(model: nn.Module) -> list[nn.Module]:
    """Return the children of `model` that have weights, those of its lists one by one."""
    found: list[nn.Module] = list(getattr(model, "blocks", []))  # a model that names its own layers
    if found:
        return found
    for child in model.children():
        found += list(child) if isinstance(child, nn.ModuleList) else [child]
    return [layer for layer in found if any(True for _ in layer.parameters())]


def selective_contexts() -> Callable[[], Any]:
    """Return what torch's checkpoint needs to keep the results of expensive operations."""
    create = getattr(torch_checkpoint, "create_selective_checkpoint_contexts", None)
    if create is None:
        what = f"--activation-checkpointing selective needs torch {SINCE} or later, this is {torch.__version__}"
        raise TrainerError("RM562", what=what, next="Use --activation-checkpointing full.")
    return partial(create, expensive_operations())


def marking_contexts() -> tuple[Any, Any]:
    """Return the contexts of a layer's pass and of the one that computes it again, which is marked as such."""
    return nullcontext(), Recomputation()


def expensive_operations() -> list[Any]:
    """Return the operations whose results are kept: products, and attention by each kernel this torch has."""
    names = (
        "mm.default",
        "addmm.default",
        "bmm.default",
        "_scaled_dot_product_flash_attention.default",
        "_scaled_dot_product_efficient_attention.default",
        "_scaled_dot_product_cudnn_attention.default",
        "_scaled_dot_product_flash_attention_for_cpu.default",
    )
    found = []
    for name in names:
        operation, _, overload = name.partition(".")
        if hasattr(torch.ops.aten, operation):
            found.append(getattr(getattr(torch.ops.aten, operation), overload))
    return found


def recomputing(kind: type[nn.Module], more: dict[str, Any]) -> type[nn.Module]:
    """Return a subclass of a layer's class whose forward is computed again in backward."""

    def forward(self: nn.Module, *inputs: Any, **named: Any) -> Any:
        once = partial(kind.forward, self)
        if not torch.is_grad_enabled():
            return once(*inputs, **named)
        return torch_checkpoint.checkpoint(once, *inputs, use_reentrant=False, **more, **named)

    return type(kind.__name__, (kind,), {"forward": forward, "recomputed": kind})


def offloading(kind: type[nn.Module]) -> type[nn.Module]:
    """Return a subclass of a layer's class whose first input waits on the host, and whose forward is computed again.

    What else a layer is given (a mask, rotary positions) is one for all layers, and stays where it is.
    """

    def forward(self: nn.Module, states: torch.Tensor, *others: Any, **named: Any) -> Any:
        if not torch.is_grad_enabled():
            return kind.forward(self, states, *others, **named)
        # Frozen embeddings give states without a gradient, and torch's function then gives none to the layer's weights.
        given = states if states.requires_grad else states.detach().requires_grad_()

        def forward_of(once: torch.Tensor) -> Any:
            with Recomputation() if torch.is_grad_enabled() else nullcontext():  # off in the first pass
                return kind.forward(self, once, *others, **named)

        with torch.autograd.graph.saved_tensors_hooks(to_host, from_host):
            return torch_checkpoint.checkpoint(forward_of, given, use_reentrant=True)

    return type(kind.__name__, (kind,), {"forward": forward, "recomputed": kind, "offloads": True})


def to_host(value: torch.Tensor) -> tuple[torch.device, torch.Tensor]:
    """Return a tensor's device, and a copy in pinned memory.

    A card writes it in the order of its stream; nothing waits for it here.
    """
    made = torch.empty(value.shape, dtype=value.dtype, pin_memory=value.is_cuda)
    return value.device, made.copy_(value, non_blocking=True)


def from_host(packed: tuple[torch.device, torch.Tensor]) -> torch.Tensor:
    """Return the copy on its device again."""
    device, value = packed
    return value.to(device, non_blocking=True)


def without_recomputation(model: nn.Module) -> nn.Module:
    """Make the layers of `model` keep what they compute again, in place; return `model`."""
    for layer in model.modules():
        layer.__class__ = getattr(type(layer), "recomputed", type(layer))
    return model
