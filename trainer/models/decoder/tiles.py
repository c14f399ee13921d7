"""A part of a layer computed for some tokens at a time, in the backward pass once more.

A feed-forward layer treats each token by itself, and over a long row its wide results are the largest tensors of a
step whose activations are computed again. By tiles they are there for one tile alone, for no more arithmetic: the
pass that checkpointing runs again then forms nothing of the layer. Sums over tiles are in the weights' own dtype.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from trainer.models.decoder.recomputation import recomputed

# Tokens. With two tiles for 16,384 tokens a step took 5 % (LoRA) and 17 % (full tuning, which waits for the host)
# longer than with one, on one NVIDIA H200.
TILE = 16384
Work = Callable[[Tensor], Tensor]


def by_tiles(work: Work, module: nn.Module, states: Tensor, tile: int) -> Tensor:
    """Return what `work` returns of `states`, (rows, tokens, width) each, computed for `tile` tokens at a time.

    Args:
        work: computes each token by itself, without random numbers, and from the weights of `module` alone.
        module: has the weights that `work` uses.
        states: (rows, tokens, width).
        tile: tokens, at least 1.
    """
    apply: Any = _ByTiles.apply
    outputs: Tensor = apply(states.flatten(0, -2), work, module, tile, *_trained(module))
    return outputs.view(*states.shape[:-1], -1)


def _trained(module: nn.Module) -> list[nn.Parameter]:
    return [weight for weight in module.parameters() if weight.requires_grad]


class _ByTiles(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, work: Work, module: nn.Module, tile: int, *weights: Tensor) -> Tensor:
        ctx.save_for_backward(states)
        ctx.work, ctx.module, ctx.tile, ctx.autocast = work, module, tile, _autocast_now(states.device.type)
        if recomputed():
            return torch.empty_like(states)  # what follows a layer's last part keeps nothing of its values
        return torch.cat([work(part) for part in states.split(tile)])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (states,) = ctx.saved_tensors
        weights, by_states = _trained(ctx.module), torch.empty_like(states)
        pieces = [each.split(ctx.tile) for each in (states, gradients[0], by_states)]
        sums: list[Tensor] = []
        with ctx.autocast(), torch.enable_grad():
            for part, upstream, place in zip(*pieces, strict=True):
                leaf = part.detach().requires_grad_()
                outputs = ctx.work(leaf)
                by_leaf, *found = torch.autograd.grad(outputs, [leaf, *weights], upstream.to(outputs.dtype))
                place.copy_(by_leaf)
                sums = [one.add_(other) for one, other in zip(sums, found, strict=True)] if sums else found
        return by_states, None, None, None, *sums


def _autocast_now(device_type: str) -> Callable[[], AbstractContextManager[None]]:
    """Return what makes the present autocast; a backward pass begins without."""
    enabled, dtype = torch.is_autocast_enabled(device_type), torch.get_autocast_dtype(device_type)
    return partial(torch.autocast, device_type, dtype=dtype, enabled=enabled)
