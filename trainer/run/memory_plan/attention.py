"""Memory of attention on a card, by the kernel that the card has; replaces the kernel while planning.

flash keeps query, key, value, the output and one number a row and head in fp32; its backward pass sums the query's
gradient in fp32 (pytorch aten/src/ATen/native/transformers/cuda/flash_attn/flash_api.cpp, mha_bwd). efficient does the
same, and holds a boolean mask once more in the query's dtype for each call (sdp_utils_cpp.h,
convert_boolean_attn_mask). math holds all scores: torch's own composite is run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from trainer.models.decoder import attention as decoder_attention
from trainer.models.fast import attention as fast_attention

ROWS = 128  # a backward pass rounds the tokens up to these
COLUMNS = 32  # and a head's width up to these

LAYER_NORM = functional.layer_norm
Flops = Callable[[float, torch.dtype], None]


@dataclass(frozen=True, kw_only=True)
class PlannedAttention:
    """Takes the place of scaled_dot_product_attention, and holds what it would with one kernel.

    plain: kernel where causality alone decides: flash, efficient or math. masked: kernel under a mask: efficient or
    math. host: backward sums in place, as torch's kernel for a CPU. On a card autocast widens a layer norm's inputs.
    units: multiprocessors of a card whose deterministic flash fills them all: with fewer rows and heads the query's
    gradient is summed in several parts (`nsplits` in mha_bwd); 0 for one part.
    """

    plain: str
    masked: str
    flops: Flops
    host: bool = False
    units: int = 0

    def splits(self, rows: int, heads: int, *, masked: bool) -> int:
        """Return the parts in which a backward pass sums the query's gradient.

        Args:
            rows: rows of the call.
            heads: query heads.
            masked: whether the call has a mask.
        """
        flash = self.plain == "flash" and not masked
        return max(1, -(-self.units // (rows * heads))) if flash else 1

    @contextlib.contextmanager
    def used(self) -> Iterator[None]:
        """Replace attention and the layer norm within the context.

        No TorchFunctionMode: such a mode is off within backward, where blocks are computed again.
        """
        takers = (decoder_attention, fast_attention, functional)  # transformers' classes call the last
        replaced = [(each, "scaled_dot_product_attention", self) for each in takers]
        replaced += [] if self.host else [(functional, "layer_norm", _wide_layer_norm)]  # type: ignore[list-item]
        before = [getattr(module, name) for module, name, _ in replaced]
        try:
            for module, name, value in replaced:
                setattr(module, name, value)
            yield
        finally:
            for (module, name, _), value in zip(replaced, before, strict=True):
                setattr(module, name, value)

    def __call__(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        """Return attention's output; arguments are those of torch's function."""
        kernel = self.plain if attn_mask is None else self.masked
        if torch.is_autocast_enabled(query.device.type):
            dtype = torch.get_autocast_dtype(query.device.type)
            query, key, value = (each.to(dtype) for each in (query, key, value))
        if kernel == "math":
            how: dict[str, Any] = {"scale": scale} | ({"enable_gqa": True} if enable_gqa else {})
            outputs = torch.ops.aten._scaled_dot_product_attention_math(
                query, key, value, attn_mask, dropout_p, is_causal, **how
            )
            return outputs[0]  # type: ignore[no-any-return]
        bias = None if attn_mask is None else _bias(attn_mask, query.dtype)
        apply: Any = _Attention.apply
        result: Tensor = apply(query, key, value, bias, self)
        return result


def _wide_layer_norm(states: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Compute in fp32 under autocast, as on a card."""
    wide = states.float() if torch.is_autocast_enabled(states.device.type) else states
    return LAYER_NORM(wide, *args, **kwargs)


def _bias(mask: Tensor, dtype: torch.dtype) -> Tensor:
    if mask.dtype != torch.bool:
        return mask
    return torch.zeros_like(mask, dtype=dtype).masked_fill_(mask.logical_not(), -torch.inf)


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, model: PlannedAttention
    ) -> Tensor:
        rows, heads, tokens, _ = query.shape
        outputs = torch.empty_like(query)
        sums = torch.empty(rows, heads, tokens, dtype=torch.float32, device=query.device)
        ctx.save_for_backward(query, key, value, bias, outputs, sums)
        ctx.model = model
        model.flops(_products(query, key, 2, causal=bias is None), query.dtype)
        return outputs

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, bias, _, _ = ctx.saved_tensors
        rows, heads, tokens, width = query.shape
        length, wide = -(-tokens // ROWS) * ROWS, -(-width // COLUMNS) * COLUMNS
        held = []
        if not ctx.model.host:
            held.append(query.new_empty(rows, heads, length, dtype=torch.float32))
            splits = ctx.model.splits(rows, heads, masked=bias is not None)
            held.append(query.new_empty(splits, rows, length, heads, wide, dtype=torch.float32))
        by_query, by_key, by_value = (torch.empty_like(each) for each in (query, key, value))
        if key.shape[1] != heads:  # a gradient for each query head, summed over the heads of a group afterwards
            held += [query.new_empty(rows, key.shape[2], heads, width) for _ in range(2)]
        ctx.model.flops(_products(query, key, 5, causal=bias is None), query.dtype)
        return by_query, by_key, by_value, None, None


def _products(query: Tensor, key: Tensor, count: int, *, causal: bool) -> float:
    """Return the FLOPs of `count` products of scores; causal ones skip half."""
    rows, heads, tokens, width = query.shape
    return count * 2.0 * rows * heads * tokens * key.shape[2] * width * (0.5 if causal else 1.0)
