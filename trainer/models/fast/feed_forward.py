"""A feed-forward layer whose weights are frozen and adapted, with forward and backward written out, in two forms.

Kept: the joint projection is kept for the backward pass, and the product of activation and gate is formed again.
Lean, for full checkpointing: the inputs alone are kept. The pass that checkpointing runs again then forms nothing of
this layer, and the backward pass forms the joint projection of a tile of tokens at a time. That is a product less
than to compute the whole layer again, and a long row takes no more memory here than a tile does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from trainer.models.decoder.model import Block
from trainer.models.decoder.recomputation import recomputed, same_weights
from trainer.models.decoder.tiles import TILE
from trainer.models.fast.elementwise import KINDS, Elementwise
from trainer.models.fast.joint import Joint

Weights = tuple[Tensor | None, Tensor | None]
Gradients = list[Tensor | None]


class FeedForward:
    """down(act(gate) * up): (rows, tokens, width + room of `into`) to (rows, tokens, width).

    tile: tokens that are computed at a time in the lean form over dense weights, and half as many over 4-bit ones, of
    which less memory is left to a step; 0 for the kept form.
    """

    def __init__(self, block: Block, activation: str, *, dtype: torch.dtype, ops: Elementwise, tile: int = 0) -> None:
        mlp = block.mlp
        self.gated, self.kind, self.ops = mlp.gated, KINDS[activation], ops
        layers = [mlp.gate_proj, mlp.up_proj] if mlp.gated else [mlp.up_proj]
        self.into = Joint(layers, dtype, ops=ops)
        self.out = Joint([mlp.down_proj], dtype, fold=False, ops=ops)
        self.tile = tile if self.into.dense and self.out.dense else -(-tile // 2)

    def __call__(self, inputs: Tensor) -> Tensor:
        """Return (rows, tokens, width) of (rows, tokens, width + room)."""
        apply: Any = _Lean.apply if self.tile else _Kept.apply
        outputs: Tensor = apply(inputs.flatten(0, -2), self, *self.into.adapters, *self.out.adapters)
        return outputs.view(*inputs.shape[:-1], -1)

    def outputs(self, inputs: Tensor) -> Tensor:
        """Return (tokens, width) of (tokens, width + room), a tile at a time."""
        places = self.places(len(inputs))
        for each in () if same_weights() else (self.into, self.out):
            each.refresh()  # first: weights that are formed here hold the adapters'
        weights = self.weights(len(places))
        if len(places) == 1:
            return self._output(inputs, weights)
        made = inputs.new_empty(len(inputs), self.out.outputs)
        for place in places:
            made[place] = self._output(inputs[place], weights)
        return made

    def _output(self, inputs: Tensor, weights: Weights) -> Tensor:
        joint, _ = self.into.forward(inputs, weights[0], fresh=True)
        return self.out.forward(self.ops.inner(joint, self.kind, self.gated), weights[1], fresh=True)[0]

    def places(self, tokens: int) -> list[slice]:
        """Return where each tile of so many tokens is."""
        return [slice(begin, begin + self.tile) for begin in range(0, max(tokens, 1), self.tile)]

    def weights(self, tiles: int) -> Weights:
        """Return both frozen weights for several tiles; of a single one each is formed where it is used.

        Weights in 4 bits are dequantised once for all tiles: once for each of four took 14 % of a step.
        """
        if tiles == 1:
            return None, None
        into, out = (each.whole_weight(adapted=each.active) for each in (self.into, self.out))
        return into, out


class _Kept(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor, layer: FeedForward, *adapters: Tensor) -> Tensor:
        joint, saved = layer.into.forward(inputs)
        outputs, narrow = layer.out.forward(layer.ops.inner(joint, layer.kind, layer.gated))
        ctx.save_for_backward(joint, *saved, *narrow[1:])
        ctx.layer, ctx.count = layer, len(saved)
        return outputs

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        layer, (joint, *rest) = ctx.layer, ctx.saved_tensors
        saved, narrow = rest[: ctx.count], rest[ctx.count :]
        by_joint, by_out = _backward_of_down(layer, gradients[0], joint, narrow, None)
        by_inputs, by_into = layer.into.backward(by_joint, saved)
        return by_inputs, None, *by_into, *by_out


class _Lean(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor, layer: FeedForward, *adapters: Tensor) -> Tensor:
        ctx.save_for_backward(inputs)
        ctx.layer = layer
        # What follows this layer in a block, a sum, keeps nothing of its values for the backward pass.
        return inputs.new_empty(len(inputs), layer.out.outputs) if recomputed() else layer.outputs(inputs)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        by_inputs, by_adapters = _by_tiles(ctx.layer, gradients[0], *ctx.saved_tensors)
        return by_inputs, None, *by_adapters


def _by_tiles(layer: FeedForward, gradient: Tensor, inputs: Tensor) -> tuple[Tensor, Gradients]:
    """Return the gradients by the inputs and by the adapters of both projections, these summed in their own dtype."""
    places = layer.places(len(inputs))
    weights = layer.weights(len(places))
    found: Iterator[tuple[Tensor, Gradients]] = (
        _of_tile(layer, gradient[place], inputs[place], weights) for place in places
    )
    if len(places) == 1:
        return next(found)
    by_inputs = torch.empty_like(inputs)
    sums: Gradients = []
    for place, (part, several) in zip(places, found, strict=True):
        by_inputs[place] = part
        sums = several if place.start == 0 else [_sum(*pair) for pair in zip(sums, several, strict=True)]
    return by_inputs, sums


def _sum(one: Tensor | None, other: Tensor | None) -> Tensor | None:
    return None if one is None or other is None else one.add_(other)


def _of_tile(layer: FeedForward, gradient: Tensor, inputs: Tensor, weights: Weights) -> tuple[Tensor, Gradients]:
    joint, saved = layer.into.forward(inputs, weights[0], fresh=True)
    by_joint, by_out = _backward_of_down(layer, gradient, joint, None, weights[1])
    by_inputs, by_into = layer.into.backward(by_joint, saved, weights[0])
    return by_inputs, [*by_into, *by_out]


def _backward_of_down(
    layer: FeedForward, gradient: Tensor, joint: Tensor, narrow: Sequence[Tensor] | None, weight: Tensor | None
) -> tuple[Tensor, Gradients]:
    """Return the gradients by the joint projection and by down's adapter.

    Args:
        layer: the feed-forward layer.
        gradient: by its outputs, (tokens, width).
        joint: the joint projection, (tokens, inner), of gate and up twice as wide.
        narrow: the layer's inner product times A^T and scale, (tokens, columns), kept by the forward pass; empty
            without an active adapter, None to form it.
        weight: down's frozen one, where it is there already; None to take or dequantise it.
    """
    out = layer.out
    by_product = gradient @ (out.whole_weight(adapted=False) if weight is None else weight)
    active = out.active if narrow is None else bool(narrow)
    by_narrow = gradient @ out.up if active else None
    if by_narrow is not None:
        by_product.addmm_(by_narrow, out.down)
    over = layer.ops.inner_backward_over if narrow is None else None  # what the forward pass kept is not written over
    by_joint, product = (over or layer.ops.inner_backward)(joint, by_product, layer.kind, layer.gated)
    if by_narrow is None:
        return by_joint, [None] * len(out.adapters)
    thin = narrow[0] if narrow else product @ out.down.t()
    return by_joint, out.adapter_gradients(gradient, product, thin, by_narrow)


def tile_of(checkpointing: str) -> int:
    """Return the tokens of a tile; 0 where what blocks keep outweighs what one layer forms.

    Args:
        checkpointing: off, selective, full or offloaded.
    """
    return TILE if checkpointing in ("full", "offloaded") else 0
