"""A block whose weights are trained, compiled in two parts with attention between them.

Attention stays outside: the compiler's cache keeps a graph with another attention kernel than the one that was chosen
(seen with torch 2.11: `sdpa_kernel` had no effect on a graph from the cache).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from trainer.models.decoder.layers import FeedForward
from trainer.models.decoder.masks import AttentionLayout
from trainer.models.decoder.model import Block
from trainer.models.decoder.tiles import by_tiles
from trainer.models.fast.own_gelu import narrowed, widened


class CompiledBlock:
    """Computes a block's forward; one compiled function serves all blocks of a model.

    The compiler keeps the results of products and forms element-wise ones again, as selective checkpointing does.
    gelu: kernels of the feed-forward layer's activation, see models.fast.own_gelu; None: it is compiled, too.
    """

    selective = True

    def __init__(self, *, gelu: Any = None, compile_: Any = None) -> None:
        make: Any = compile_ or torch.compile
        self.gelu, self.widen = gelu, make(widened, dynamic=False)
        self.enter, self.leave = make(Block.entered, dynamic=False), make(Block.left, dynamic=False)
        self.stack, self.join = make(Block.stacked, dynamic=False), make(Block.joined, dynamic=False)
        self.wide = make(FeedForward.whole, dynamic=False)

    def __deepcopy__(self, memo: dict[int, Any]) -> None:
        """Return None, so that a copy of the block computes plainly."""

    def __call__(
        self, block: Block, states: Tensor, layout: AttentionLayout, turn: tuple[Tensor, Tensor] | None
    ) -> Tensor:
        """Return (rows, tokens, width)."""
        query, key, value = self._entered(block, states, turn)
        attended = block.self_attn.attend(query, key, value, layout)
        if block.mlp.is_tiled(states):
            stream, hidden = self.join(block, states, attended)
            tiled: Tensor = stream + by_tiles(partial(self.wide, block.mlp), block.mlp, hidden, block.mlp.tile)
            return tiled
        if self.gelu is not None:
            stream, joint = self.widen(block, states, attended)
            return narrowed(block, stream, joint, self.gelu)
        outputs: Tensor = self.leave(block, states, attended)
        return outputs

    def _entered(
        self, block: Block, states: Tensor, turn: tuple[Tensor, Tensor] | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return query, key and value, taken apart outside the graph where they are views of one product.

        A graph demands gradients of its outputs in the outputs' own strides. Those of such views have gaps: each
        gradient was copied once, and once more slowly into the product's (12 of 126 ms a step of GPT-2 on an H200).
        """
        attention = block.self_attn
        if turn is None and attention.config.fused and not attention.config.qk_norm:
            return attention.parted(self.stack(block, states))
        parts: tuple[Tensor, Tensor, Tensor] = self.enter(block, states, turn)
        return parts


def why_not(block: Block) -> str | None:
    """Return why a block cannot be computed so, or None where it can."""
    if block.dropout or block.self_attn.config.dropout:
        return "the model has dropout, which compiled code draws otherwise"
    if not any(weight.requires_grad for weight in block.parameters()):
        return "no weight of the block is trained"
    if any(type(module).__name__ == "NF4Linear" for module in block.modules() if isinstance(module, nn.Module)):
        return "weights are held in 4 bits"
    return None
