"""Which token attends to which: causal, within its document, within the layer's window.

One statement serves every attention backend: as a dense mask, as a mask function of FlexAttention, and as spans.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor


@dataclass(kw_only=True)
class AttentionLayout:
    """The layout of one forward pass.

    documents: (rows, tokens), a number for each packed document, PADDING for what fills a row up; None: each row is
    one document.
    past: tokens that a cache already holds; there are no documents then.
    """

    rows: int
    tokens: int
    device: torch.device
    documents: Tensor | None = None
    past: int = 0
    _made: dict[tuple[str, int | None], Any] = field(default_factory=dict)

    def is_plain(self, window: int | None) -> bool:
        """Whether causality alone decides, so that a kernel needs no mask."""
        short = window is None or window >= self.tokens
        return self.documents is None and self.past == 0 and short

    def dense(self, window: int | None) -> Tensor:
        """Return (rows or 1, 1, tokens, past + tokens), True where a token attends. Made once per window."""
        key = ("dense", window)
        if key not in self._made:
            self._made[key] = self._dense(window)
        mask: Tensor = self._made[key]
        return mask

    def _dense(self, window: int | None) -> Tensor:
        query = torch.arange(self.past, self.past + self.tokens, device=self.device).unsqueeze(1)
        key = torch.arange(self.past + self.tokens, device=self.device).unsqueeze(0)
        mask = key <= query
        if window is not None:
            mask = mask & (query - key < window)
        mask = mask[None, None]
        if self.documents is not None:
            mask = mask & (self.documents.unsqueeze(2) == self.documents.unsqueeze(1)).unsqueeze(1)
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
