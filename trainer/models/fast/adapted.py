"""A block whose weights are frozen and adapted, with forward and backward written out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from trainer.models.adapters.lora import LoraLinear
from trainer.models.decoder.masks import AttentionLayout
from trainer.models.decoder.model import Block
from trainer.models.fast.elementwise import KINDS, Elementwise, Norm, head_shape
from trainer.models.fast.joint import Joint, linear

TILE = 8192  # tokens


class FeedForward:
    """down(act(gate) * up), of which only the joint projection is kept; the product is formed again in backward.

    tile: tokens whose gradients by the joint projection are there at a time, over 4-bit weights; 0 for all. With full
    checkpointing they, and not what is kept for the backward pass, are the largest tensors of a step. Over dense
    weights, which take more than they do, two tiles made a step 4 % longer (one NVIDIA H200; over 4 bits 0.4 %).
    """

    def __init__(self, block: Block, activation: str, *, dtype: torch.dtype, ops: Elementwise, tile: int = 0) -> None:
        mlp = block.mlp
        self.gated, self.kind, self.ops = mlp.gated, KINDS[activation], ops
        layers = [mlp.gate_proj, mlp.up_proj] if mlp.gated else [mlp.up_proj]
        self.into = Joint(layers, dtype, ops=ops)
        self.out = Joint([mlp.down_proj], dtype, fold=False, ops=ops)
        self.tile = 0 if self.into.dense and self.out.dense else tile

    def __call__(self, inputs: Tensor) -> Tensor:
        """Return (rows, tokens, width) of the same."""
        apply: Any = _FeedForward.apply
        outputs: Tensor = apply(inputs.flatten(0, -2), self, *self.into.adapters, *self.out.adapters)
        return outputs.view(*inputs.shape[:-1], -1)


class _FeedForward(torch.autograd.Function):
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
        if layer.tile and len(joint) > layer.tile:
            by_inputs, by_adapters = _by_tiles(layer, gradients[0], joint, saved, narrow)
        else:
            by_inputs, by_adapters = _backward(layer, gradients[0], joint, saved, narrow)
        return by_inputs, None, *by_adapters


def _backward(
    layer: FeedForward,
    gradient: Tensor,
    joint: Tensor,
    saved: Sequence[Tensor],
    narrow: Sequence[Tensor],
    weights: Sequence[Tensor | None] = (None, None),
) -> tuple[Tensor, list[Tensor | None]]:
    """Return the gradients by the inputs and by the adapters of both projections, in order.

    weights: frozen ones of both, where they are there already; None to take or dequantise them.
    """
    by_joint, by_out = _backward_of_down(layer, gradient, joint, narrow, weights[1])
    by_inputs, by_into = layer.into.backward(by_joint, saved, weights[0])
    return by_inputs, [*by_into, *by_out]


def _by_tiles(
    layer: FeedForward, gradient: Tensor, joint: Tensor, saved: Sequence[Tensor], narrow: Sequence[Tensor]
) -> tuple[Tensor, list[Tensor | None]]:
    """Return what `_backward` returns, of a tile of tokens at a time; adapters' gradients are summed in their dtype.

    Weights in 4 bits are dequantised once for all tiles: once for each of four took 14 % of a step.
    """
    by_inputs, sums = gradient.new_empty(len(joint), layer.into.width), None
    weights = [each.base_weight() for each in (layer.into, layer.out)]
    for begin in range(0, len(joint), layer.tile):
        place = slice(begin, begin + layer.tile)
        kept, thin = ([each[place] for each in several] for several in (saved, narrow))
        by_inputs[place], found = _backward(layer, gradient[place], joint[place], kept, thin, weights)
        sums = found if sums is None else [_sum(one, other) for one, other in zip(sums, found, strict=True)]
    assert sums is not None
    return by_inputs, sums


def _sum(one: Tensor | None, other: Tensor | None) -> Tensor | None:
    return None if one is None or other is None else one.add_(other)


def _backward_of_down(
    layer: FeedForward, gradient: Tensor, joint: Tensor, narrow: Sequence[Tensor], weight: Tensor | None
) -> tuple[Tensor, list[Tensor | None]]:
    """Return the gradients by the joint projection and by down's adapter; weight: see `_backward`."""
    out = layer.out
    by_product = gradient @ (out.base_weight() if weight is None else weight)
    by_narrow = gradient @ out.up if narrow else None
    if by_narrow is not None:
        by_product.addmm_(by_narrow, out.down)
    by_joint, product = layer.ops.inner_backward(joint, by_product, layer.kind, layer.gated)
    if by_narrow is None:
        return by_joint, [None] * len(out.adapters)
    return by_joint, out.adapter_gradients(gradient, product, narrow[0], by_narrow)


class AdaptedBlock:
    """Computes a block's forward; `stream` is the dtype of the residual stream, `dtype` that of products.

    It keeps the results of products and attention and forms the rest again, which is what selective checkpointing does.
    """

    selective = True

    def __init__(
        self,
        block: Block,
        activation: str,
        *,
        dtype: torch.dtype,
        stream: torch.dtype,
        ops: Elementwise,
        tile: int = 0,
    ) -> None:
        attention = block.self_attn
        names = ("qkv_proj",) if attention.config.fused else ("q_proj", "k_proj", "v_proj")
        self.dtype, self.stream, self.ops = dtype, stream, ops
        self.joint = Joint([getattr(attention, name) for name in names], dtype, ops=ops)
        self.output = Joint([attention.o_proj], dtype, fold=False, ops=ops)
        self.feed_forward = FeedForward(block, activation, dtype=dtype, ops=ops, tile=tile)

    def __deepcopy__(self, memo: dict[int, Any]) -> None:
        """Return None, so that a copy of the block computes plainly: the weights here are views of this block's."""

    def __call__(
        self, block: Block, states: Tensor, layout: AttentionLayout, turn: tuple[Tensor, Tensor] | None
    ) -> Tensor:
        """Return (rows, tokens, width) in the stream's dtype."""
        with torch.autocast(states.device.type, enabled=False):
            states = states.to(self.stream)
            hidden = self.ops.normed(states, *Norm.of(block.input_layernorm).arguments(), self.dtype)
            attended = linear(self._attended(block, hidden, layout, turn), self.output)
            norm = Norm.of(block.post_attention_layernorm).arguments()
            states, hidden = self.ops.added_and_normed(states, attended, *norm, self.dtype)
            return states + self.feed_forward(hidden).to(self.stream)

    def _attended(
        self, block: Block, hidden: Tensor, layout: AttentionLayout, turn: tuple[Tensor, Tensor] | None
    ) -> Tensor:
        attention = block.self_attn
        cosine, sine = turn if turn is not None else (None, None)
        norms: tuple[Any, ...] = (None, None)
        if attention.config.qk_norm:
            norms = tuple(Norm.of(each).arguments() for each in (attention.q_norm, attention.k_norm))
        shape = head_shape(attention.config)
        parts = self.ops.heads(linear(hidden, self.joint), cosine, sine, *norms, *shape)
        query, key, value = (part.transpose(1, 2) for part in parts)
        return attention.attend(query, key, value, layout).transpose(1, 2).flatten(2)


def tile_of(checkpointing: str) -> int:
    """Return the tokens of a feed-forward layer's tile; 0 where what blocks keep outweighs one layer's gradients.

    Args:
        checkpointing: off, selective, full or offloaded.
    """
    return TILE if checkpointing in ("full", "offloaded") else 0


def why_not(block: Block, activation: str) -> str | None:
    """Return why a block cannot be computed so, or None where it can."""
    if activation not in KINDS:
        return f"the activation {activation} has no backward here"
    if block.dropout or block.self_attn.config.dropout:
        return "the model has dropout"
    found = [module for module in block.modules() if isinstance(module, LoraLinear)]
    if not found:
        return "no layer has an adapter"
    if any(module.dropout or module.padded for module in found):
        return "the adapter has dropout" if any(module.dropout for module in found) else "its rank is filled up"
    adapters = {id(weight) for module in found for weight in (module.lora_A, module.lora_B)}
    if any(weight.requires_grad and id(weight) not in adapters for weight in block.parameters()):
        return "weights other than the adapters' are trained"
    return None


def is_adapted(block: nn.Module) -> bool:
    """Return whether a block has adapters."""
    return any(isinstance(module, LoraLinear) for module in block.modules())
