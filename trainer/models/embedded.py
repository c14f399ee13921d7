"""Categorical columns: each code becomes a learned vector, which is appended to the numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn


def embedding_width(values: int) -> int:
    """Return how long a category's vector is: 1.6 * values^0.56, at most 50, a common rule of thumb."""
    return min(50, max(1, int(1.6 * float(values) ** 0.56 + 0.5)))


class Embedded(nn.Module):
    """A network whose input holds codes in some columns: (rows, columns) to (rows, outputs).

    `embeddings` gives for each such column its place, its number of `values` (code 0 included) and the vector's
    `width`. Code 0, a value that training never met, is the zero vector and stays so. The inner network gets the
    numbers in their order, then the vectors in theirs.
    """

    numbers: Tensor
    codes: Tensor

    def __init__(self, columns: int, embeddings: Sequence[Mapping[str, Any]], network: nn.Module) -> None:
        super().__init__()
        places = [each["column"] for each in embeddings]
        rest = [place for place in range(columns) if place not in places]
        self.register_buffer("numbers", torch.tensor(rest, dtype=torch.long), persistent=False)
        self.register_buffer("codes", torch.tensor(places, dtype=torch.long), persistent=False)
        self.embeddings = nn.ModuleList(
            nn.Embedding(each["values"], each["width"], padding_idx=0) for each in embeddings
        )
        self.network = network

    def forward(self, rows: Tensor) -> Tensor:
        """Return (rows, outputs)."""
        codes = rows.index_select(1, self.codes).long()  # (rows, categories)
        vectors = [embedding(codes[:, place]) for place, embedding in enumerate(self.embeddings)]
        outputs: Tensor = self.network(torch.cat([rows.index_select(1, self.numbers), *vectors], dim=1))
        return outputs
