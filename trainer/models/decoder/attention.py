"""Causal self-attention with grouped queries, rotary positions, windows and packed documents."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from trainer.models.decoder.config import AttentionConfig, NormConfig
from trainer.models.decoder.layers import norm_of
from trainer.models.decoder.masks import AttentionLayout, SequencePart
from trainer.models.decoder.rope import rotate

BACKENDS = ("sdpa", "math", "flex", "documents")


@dataclass(kw_only=True)
class LayerCache:
    """Keys and values of the tokens so far, (rows, kv_heads, tokens, head_dim) each; None before the first."""

    keys: Tensor | None = None
    values: Tensor | None = None

    def extend(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Add the tokens of one call and return all."""
        if self.keys is not None and self.values is not None:
            keys, values = torch.cat([self.keys, keys], dim=2), torch.cat([self.values, values], dim=2)
        self.keys, self.values = keys, values
        return keys, values


class Attention(nn.Module):
    """Self-attention of one layer: (rows, tokens, width) to the same.

    `backend` is sdpa (torch chooses the kernel), math (torch's composite kernel alone), flex (FlexAttention) or
    documents (one call per packed document, so that memory grows with the longest document and not with the row).
    `kernel` computes causal attention without a mask from query, key, value and scale; None: torch chooses.
    """

    backend: str = "sdpa"
    kernel: Callable[[Tensor, Tensor, Tensor, float], Tensor] | None = None

    def __init__(self, width: int, config: AttentionConfig, norm: NormConfig, *, layer: int, window: int | None):
        super().__init__()
        self.config, self.window = config, window
        inner, shared = config.heads * config.head_dim, config.kv_heads * config.head_dim
        if config.fused:
            self.qkv_proj = nn.Linear(width, inner + 2 * shared, bias=config.qkv_bias)
        else:
            self.q_proj = nn.Linear(width, inner, bias=config.qkv_bias)
            self.k_proj = nn.Linear(width, shared, bias=config.qkv_bias)
            self.v_proj = nn.Linear(width, shared, bias=config.qkv_bias)
        self.o_proj = nn.Linear(inner, width, bias=config.output_bias)
        if config.qk_norm:
            self.q_norm, self.k_norm = norm_of(norm, config.head_dim), norm_of(norm, config.head_dim)
        scale = config.head_dim**-0.5 if config.scaled else 1.0
        self.scale = scale / (layer + 1) if config.scale_by_layer else scale

    def forward(
        self,
        states: Tensor,
        layout: AttentionLayout,
        rotation: tuple[Tensor, Tensor] | None,
        cache: LayerCache | None = None,
    ) -> Tensor:
        """Return attention's output after its projection, (rows, tokens, width).

        Args:
            states: normed hidden states, (rows, tokens, width).
            rotation: cosine and sine of rotary positions, (rows, 1, tokens, head_dim) each; None for a decoder without.
        """
        query, key, value = self.projected(states, rotation)
        if cache is not None:
            key, value = cache.extend(key, value)
        outputs: Tensor = self.o_proj(self.attend(query, key, value, layout).transpose(1, 2).flatten(2))
        return outputs

    def projected(self, states: Tensor, rotation: tuple[Tensor, Tensor] | None) -> tuple[Tensor, Tensor, Tensor]:
        """Return query, key and value as (rows, heads, tokens, head_dim), rotated."""
        query, key, value = self._projected(states)
        if rotation is not None:
            query, key = rotate(query, *rotation), rotate(key, *rotation)
        return query, key, value

    def _projected(self, states: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return query, key and value as (rows, heads, tokens, head_dim)."""
        if self.config.fused:
            return self.parted(self.qkv_proj(states))
        return self._headed(self.q_proj(states), self.k_proj(states), self.v_proj(states))

    def parted(self, stacked: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return query, key and value as (rows, heads, tokens, head_dim), of the product that holds all three."""
        shared = self.config.kv_heads * self.config.head_dim
        widths = [self.config.heads * self.config.head_dim, shared, shared]
        query, key, value = stacked.split(widths, dim=-1)
        return self._headed(query, key, value)

    def _headed(self, *parts: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        query, key, value = (part.unflatten(-1, (-1, self.config.head_dim)) for part in parts)
        if self.config.qk_norm:
            query, key = self.q_norm(query), self.k_norm(key)
        return query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2)

    def attend(self, query: Tensor, key: Tensor, value: Tensor, layout: AttentionLayout) -> Tensor:
        """Return (rows, heads, tokens, head_dim), by the backend or the kernel chosen.

        Args:
            query: (rows, heads, tokens, head_dim).
            key: (rows, kv_heads, past + tokens, head_dim).
            value: as `key`.
        """
        if layout.part is not None:
            return self._of_part(query, key, value, layout, layout.part)
        if self.backend == "flex":
            return self._flex(query, key, value, layout)
        if self.kernel is not None and self._takes_kernel(query, layout):
            return self.kernel(query, key, value, self.scale)
        key, value = self._for_each_head(key), self._for_each_head(value)
        if self.backend == "documents" and layout.documents is not None:
            return self._by_document(query, key, value, layout)
        plain = layout.is_plain(self.window)
        with _kernels(self.backend):
            return self._sdpa(query, key, value, None if plain else layout.dense(self.window))

    def _of_part(
        self, query: Tensor, key: Tensor, value: Tensor, layout: AttentionLayout, part: SequencePart
    ) -> Tensor:
        """Return attention of the own tokens to all before them: each span as one call, with a mask."""
        key, value = (self._for_each_head(part.gather(each)) for each in (key, value))
        attended = []
        with _kernels(self.backend):
            for span, own in zip(part.spans, query.split([s.stop - s.start for s in part.spans], dim=2), strict=True):
                plain = span.start == 0 and layout.is_plain(self.window)
                mask = None if plain else layout.of_span(span, self.window)
                attended.append(self._sdpa(own, key[:, :, : span.stop], value[:, :, : span.stop], mask))
        return torch.cat(attended, dim=2)

    def _for_each_head(self, shared: Tensor) -> Tensor:
        """Return (rows, heads, tokens, head_dim): all fused kernels but flash refuse grouped heads."""
        groups = self.config.heads // self.config.kv_heads
        return shared.repeat_interleave(groups, dim=1) if groups > 1 else shared

    def _takes_kernel(self, query: Tensor, layout: AttentionLayout) -> bool:
        causal = self.backend == "sdpa" and layout.is_plain(self.window)
        return causal and query.device.type != "meta" and not (self.training and self.config.dropout)

    def _sdpa(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        dropout = self.config.dropout if self.training else 0.0
        return scaled_dot_product_attention(
            query, key, value, attn_mask=mask, dropout_p=dropout, is_causal=mask is None, scale=self.scale
        )

    def _by_document(self, query: Tensor, key: Tensor, value: Tensor, layout: AttentionLayout) -> Tensor:
        rows = []
        for row, spans in enumerate(layout.spans()):
            parts = [self._span(query, key, value, row, span) for span in spans]
            rows.append(torch.cat(parts, dim=2))
        return torch.cat(rows, dim=0)

    def _span(self, query: Tensor, key: Tensor, value: Tensor, row: int, span: tuple[int, int]) -> Tensor:
        begin, end = span
        query, key, value = (each[row : row + 1, :, begin:end] for each in (query, key, value))
        inner = AttentionLayout(rows=1, tokens=end - begin, device=query.device)
        mask = None if inner.is_plain(self.window) else inner.dense(self.window)
        return self._sdpa(query, key, value, mask)

    def _flex(self, query: Tensor, key: Tensor, value: Tensor, layout: AttentionLayout) -> Tensor:
        from torch.nn.attention.flex_attention import flex_attention

        grouped = self.config.heads != self.config.kv_heads
        mask = layout.block(self.window)
        outputs: Any = flex_attention(query, key, value, block_mask=mask, scale=self.scale, enable_gqa=grouped)
        return outputs  # type: ignore[no-any-return]


def _kernels(backend: str) -> Any:
    if backend != "math":
        return contextlib.nullcontext()
    from torch.nn.attention import SDPBackend, sdpa_kernel

    return sdpa_kernel(SDPBackend.MATH)
