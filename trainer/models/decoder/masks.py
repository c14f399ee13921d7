"""Attention masks: causal, within a token's document, within the layer's window.

One statement serves every attention backend: as a dense mask, as a mask function of FlexAttention, and as spans.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class SequencePart:
    """The tokens of each row that this process holds, where rows are split over several.

    `spans` are their places in the row, in the order in which they are held. `gather` maps keys and values
    (rows, kv_heads, own tokens, head_dim) to those of all tokens in the row's order; its gradient adds up what all
    processes found for the own ones.
    """

    spans: tuple[slice, ...]
    gather: Callable[[Tensor], Tensor]

    def cut(self, values: Tensor) -> Tensor:
        """Return the own tokens of (rows, tokens, ...)."""
        return torch.cat([values[:, span] for span in self.spans], dim=1)


@dataclass(kw_only=True)
class AttentionLayout:
    """The layout of one forward pass.

    documents: (rows, tokens), a number for each packed document, PADDING for what fills a row up; None: each row is
    one document.
    past: tokens that a cache already holds; there are no documents then.
    part: the tokens held here, where rows are split; `tokens` and `documents` are of whole rows all the same.
    """

    rows: int
    tokens: int
    device: torch.device
    documents: Tensor | None = None
    past: int = 0
    part: SequencePart | None = None
    _made: dict[tuple[str, int | None], Any] = field(default_factory=dict)

    def is_plain(self, window: int | None) -> bool:
        """Return whether causality alone decides, so that a kernel needs no mask."""
        short = window is None or window >= self.tokens
        return self.documents is None and self.past == 0 and short

    def dense(self, window: int | None) -> Tensor:
        """Return (rows or 1, 1, tokens, past + tokens), True where a token attends. Made once per window."""
        return self._kept("dense", window, lambda: self._allowed(slice(0, self.tokens), window))

    def of_span(self, span: slice, window: int | None) -> Tensor:
        """Return (rows or 1, 1, tokens of the span, its end), True where a token of the span attends to one before it.

        Args:
            span: place in the row; made once per span and window.
            window: tokens that a token attends to; None for all before it.
        """
        return self._kept(f"{span.start}:{span.stop}", window, lambda: self._allowed(span, window))

    def _kept(self, name: str, window: int | None, make: Callable[[], Tensor]) -> Tensor:
        if (name, window) not in self._made:
            self._made[name, window] = make()
        mask: Tensor = self._made[name, window]
        return mask

    def _allowed(self, span: slice, window: int | None) -> Tensor:
        query = torch.arange(self.past + span.start, self.past + span.stop, device=self.device).unsqueeze(1)
        key = torch.arange(self.past + span.stop, device=self.device).unsqueeze(0)
        mask = key <= query
        if window is not None:
            mask = mask & (query - key < window)
        mask = mask[None, None]
        if self.documents is not None:
            own, others = self.documents[:, span], self.documents[:, : span.stop]
            mask = mask & (own.unsqueeze(2) == others.unsqueeze(1)).unsqueeze(1)
        return mask

    def block(self, window: int | None) -> Any:
        """Return FlexAttention's block mask. Made once per window."""
        from torch.nn.attention.flex_attention import create_block_mask

        key = ("block", window)
        if key not in self._made:
            rows = self.rows if self.documents is not None else None
            total = self.past + self.tokens
            self._made[key] = create_block_mask(
                self._mask_function(window), rows, None, self.tokens, total, device=str(self.device)
            )
        return self._made[key]

    def _mask_function(self, window: int | None) -> Any:
        documents, past = self.documents, self.past

        def allowed(row: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
            mask = key <= query + past
            if window is not None:
                mask = mask & (query + past - key < window)
            if documents is not None:
                mask = mask & (documents[row, query] == documents[row, key])
            return mask

        return allowed

    def spans(self) -> list[list[tuple[int, int]]]:
        """Return, of each row, begin and end of its documents in order. A document must be contiguous."""
        key = ("spans", None)
        if key not in self._made:
            self._made[key] = [_runs(row) for row in self._numbers().tolist()]
        spans: list[list[tuple[int, int]]] = self._made[key]
        return spans

    def _numbers(self) -> Tensor:
        if self.documents is None:
            return torch.zeros(self.rows, self.tokens, dtype=torch.long)
        return self.documents


def _runs(numbers: list[int]) -> list[tuple[int, int]]:
    begins = [0] + [place for place in range(1, len(numbers)) if numbers[place] != numbers[place - 1]]
    return list(zip(begins, [*begins[1:], len(numbers)], strict=True))
