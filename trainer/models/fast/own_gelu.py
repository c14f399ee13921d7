"""A feed-forward layer with GELU and biases, as GPT-2 has, from its wide product on: own kernels between the products.

The bias of the wide product is added by the product itself; its gradient comes out of GELU's backward pass. The narrow
product is added to the residual stream in place, whose bias the stream has by then.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from trainer.models.decoder.model import Block
from trainer.models.decoder.recomputation import recomputed
from trainer.models.fast.elementwise import KINDS

# Tokens at a time from which it is tried. Its calls take the host longer than a compiled graph: next to 14 other
# processes a block of 24,576 tokens was timed at 6.0 ms and a compiled one at 4.4, where 65,536 tokens took 6.7 and 6.9
# alone on one NVIDIA H200. And what a run holds must not depend on the host, for `plan` counts on it.
LEAST = 2**16


def widened(block: Block, states: Tensor, attended: Tensor) -> tuple[Tensor, Tensor]:
    """Return the residual stream with the bias of the narrow product, and the wide product: what is compiled.

    The wide product's bias is a constant here: `_Narrowed` has its gradient.

    Args:
        states: residual stream before attention, (rows, tokens, width).
        attended: attention's result, (rows, heads, tokens, head_dim).
    """
    mlp = block.mlp
    states = states + block.self_attn.o_proj(attended.transpose(1, 2).flatten(2))
    hidden = block.post_attention_layernorm(states)
    joint = functional.linear(hidden, mlp.up_proj.weight, mlp.up_proj.bias.detach())
    return states + mlp.down_proj.bias.to(states.dtype), joint


@dataclass(frozen=True, kw_only=True)
class GeluKernels:
    """GELU forward and backward, (tokens, width) each, by Triton."""

    tanh: bool

    def forward(self, inputs: Tensor) -> Tensor:
        """Return GELU of the inputs."""
        from trainer.models.fast.kernels import triton_gelu

        made: Tensor = triton_gelu.forward(inputs, tanh=self.tanh)
        return made

    def backward(self, inputs: Tensor, upstream: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return GELU once more, the gradient by the inputs, and its sum over all tokens in fp32."""
        from trainer.models.fast.kernels import triton_gelu

        return triton_gelu.backward(inputs, upstream, tanh=self.tanh)


def kernels_of(activation: str) -> GeluKernels:
    """Return the kernels of an activation that is GELU."""
    return GeluKernels(tanh=KINDS[activation] == "tanh")


def narrowed(block: Block, stream: Tensor, joint: Tensor, kernels: Any) -> Tensor:
    """Return the residual stream after the feed-forward layer, in the place of `stream`.

    Args:
        stream: see `widened`, (rows, tokens, width), overwritten.
        joint: the wide product, (rows, tokens, wide).
        kernels: see GeluKernels.
    """
    up, down = block.mlp.up_proj, block.mlp.down_proj
    with torch.autocast(joint.device.type, enabled=False):
        outputs: Tensor = _Narrowed.apply(joint, up.bias, stream, down.weight, kernels)  # type: ignore[no-untyped-call]
    return outputs


def _add_product(stream: Tensor, inner: Tensor, down: Tensor) -> None:
    """Add the narrow product to the residual stream, both (tokens, …), in place."""
    if stream.dtype == inner.dtype:
        stream.addmm_(inner, down.t())
    else:
        stream.add_(inner @ down.t())


class _Narrowed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, joint: Tensor, bias: Tensor, stream: Tensor, weight: Tensor, kernels: Any) -> Tensor:
        down = weight.to(joint.dtype)
        if not recomputed():
            _add_product(stream.view(-1, stream.shape[-1]), kernels.forward(joint.flatten(0, -2).contiguous()), down)
        ctx.save_for_backward(joint, down)
        ctx.kernels, ctx.dtypes = kernels, (bias.dtype, weight.dtype)
        ctx.mark_dirty(stream)
        return stream

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        joint, down = ctx.saved_tensors
        bias, weight = ctx.dtypes
        wide = joint.flatten(0, -2).contiguous()
        upstream = gradients[0].flatten(0, -2).to(joint.dtype)
        inner, by_joint, by_bias = ctx.kernels.backward(wide, upstream @ down)
        by_down = (upstream.t() @ inner).to(weight)
        return by_joint.view_as(joint), by_bias.to(bias), gradients[0], by_down, None


def why_not(block: Block, activation: str, dtype: torch.dtype) -> str | None:
    """Return why a block's feed-forward layer cannot be computed so, or None where it can.

    Args:
        activation: a key of the decoder's ACTIVATIONS.
        dtype: of the products.
    """
    mlp = block.mlp
    if mlp.gated or KINDS.get(activation) not in ("gelu", "tanh"):
        return "the layer has a gate or another activation than GELU"
    if any(layer.bias is None for layer in (mlp.up_proj, mlp.down_proj)):
        return "the layer has no biases"
    if dtype.itemsize != 2:
        return "the error function is made for 16 bits"
    return None


def there() -> bool:
    """Return whether Triton is installed."""
    return importlib.util.find_spec("triton") is not None
