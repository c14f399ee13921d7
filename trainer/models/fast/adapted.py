"""A block whose weights are frozen and adapted, with forward and backward written out."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from trainer.models.adapters.lora import LoraLinear
from trainer.models.decoder.masks import AttentionLayout
from trainer.models.decoder.model import Block
from trainer.models.fast.elementwise import KINDS, Elementwise, Norm, head_shape
from trainer.models.fast.feed_forward import FeedForward
from trainer.models.fast.joint import Joint, linear


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
            hidden = self.ops.normed(states, *Norm.of(block.input_layernorm).arguments(), self.dtype, self.joint.room)
            attended = linear(self._attended(block, hidden, layout, turn), self.output)
            norm = Norm.of(block.post_attention_layernorm).arguments()
            room = self.feed_forward.into.room
            states, hidden = self.ops.added_and_normed(states, attended, *norm, self.dtype, room)
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
