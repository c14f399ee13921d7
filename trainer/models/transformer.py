"""A transformer over columns: each number and each category becomes a token, and one more token predicts.

After Gorishniy et al. 2021, "Revisiting deep learning models for tabular data" (FT-Transformer, arXiv 2106.11959),
with the activation that is asked for in place of ReGLU, and dropout in the feed-forward layers alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from trainer.models.kernels import only
from trainer.models.layers import ACTIVATIONS, dropout_layers


class Tokens(nn.Module):
    """(rows, columns) to (rows, 1 + columns, width): the answer's token, the numbers' in their order, the codes'.

    A number is a multiple of its column's vector, a code has a vector of its own, and each column adds its bias.
    Code 0, a value that training never met, is the bias alone.
    """

    numbers: Tensor
    codes: Tensor

    def __init__(self, columns: int, embeddings: Sequence[Mapping[str, Any]], width: int) -> None:
        super().__init__()
        places = [each["column"] for each in embeddings]
        rest = [place for place in range(columns) if place not in places]
        self.register_buffer("numbers", torch.tensor(rest, dtype=torch.long), persistent=False)
        self.register_buffer("codes", torch.tensor(places, dtype=torch.long), persistent=False)
        self.answer = nn.Parameter(torch.empty(width))
        self.weight = nn.Parameter(torch.empty(len(rest), width))
        self.bias = nn.Parameter(torch.empty(columns, width))
        self.embeddings = nn.ModuleList(nn.Embedding(each["values"], width, padding_idx=0) for each in embeddings)
        for value in self.parameters():
            nn.init.uniform_(value, -(width**-0.5), width**-0.5)
        with torch.no_grad():
            for embedding in self.embeddings:
                embedding.weight[0] = 0.0  # type: ignore[operator]

    def forward(self, rows: Tensor) -> Tensor:
        """Return (rows, 1 + columns, width)."""
        codes = rows.index_select(1, self.codes).long()  # (rows, categories)
        numbers = rows.index_select(1, self.numbers).unsqueeze(2) * self.weight
        vectors = [embedding(codes[:, place]).unsqueeze(1) for place, embedding in enumerate(self.embeddings)]
        answer = self.answer.expand(rows.shape[0], 1, -1)  # len() would fix the number in an export
        return torch.cat([answer, torch.cat([numbers, *vectors], dim=1) + self.bias], dim=1)


class Attention(nn.Module):
    """Multi-head attention of tokens to each other, without a mask: (rows, tokens, width) to the same.

    `kernel` names the one that alone is used, None leaves it to torch.
    """

    kernel: str | None = None

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.project, self.merge = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return (rows, tokens, width)."""
        parts = self.project(tokens).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        with only(self.kernel):
            mixed = scaled_dot_product_attention(parts[0], parts[1], parts[2])  # (rows, heads, tokens, width / heads)
        outputs: Tensor = self.merge(mixed.transpose(1, 2).flatten(2))
        return outputs


class Block(nn.Module):
    """x + attention(norm(x)), then x + feed-forward(norm(x)): (rows, tokens, width) to the same."""

    def __init__(self, width: int, heads: int, hidden: int, *, activation: str, dropout: float) -> None:
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(width), Attention(width, heads)
        self.feed = nn.Sequential(
            nn.LayerNorm(width),
            nn.Linear(width, hidden),
            ACTIVATIONS[activation](),
            *dropout_layers(dropout),
            nn.Linear(hidden, width),
        )

    def forward(self, tokens: Tensor) -> Tensor:
        """Return (rows, tokens, width)."""
        tokens = tokens + self.attention(self.norm(tokens))
        outputs: Tensor = tokens + self.feed(tokens)
        return outputs


class Answer(nn.Module):
    """The first token, normed, activated and weighed: (rows, tokens, width) to (rows, outputs)."""

    def __init__(self, width: int, outputs: int, *, activation: str) -> None:
        super().__init__()
        self.read = nn.Sequential(nn.LayerNorm(width), ACTIVATIONS[activation](), nn.Linear(width, outputs))

    def forward(self, tokens: Tensor) -> Tensor:
        """Return (rows, outputs)."""
        outputs: Tensor = self.read(tokens[:, 0])
        return outputs


def transformer(
    columns: int,
    hidden_layers: Sequence[int],
    outputs: int = 1,
    *,
    embeddings: Sequence[Mapping[str, Any]] = (),
    token_width: int,
    heads: int,
    activation: str = "ReLU",
    dropout: float = 0.0,
) -> nn.Sequential:
    """Return tokens, a block for each hidden width, which is its feed-forward layer's, and the answer.

    A plain stack, so that layers can be recomputed, sharded, or spread over cards one by one.

    Args:
        columns: features of a row.
        hidden_layers: width of each block's feed-forward layer.
        outputs: numbers returned for a row: one for a number as target, one a class otherwise.
        embeddings: place and number of values of each categorical column.
        token_width: numbers of a token; a multiple of `heads`.
        heads: attention heads; must divide `token_width`.
        activation: name of the activation in torch.nn.
        dropout: probability of a zero, 0 to 1.
    """
    blocks = [Block(token_width, heads, hidden, activation=activation, dropout=dropout) for hidden in hidden_layers]
    return nn.Sequential(
        Tokens(columns, embeddings, token_width), *blocks, Answer(token_width, outputs, activation=activation)
    )


def use_kernel(model: nn.Module, kernel: str | None) -> None:
    """Have every attention within `model` use `kernel` alone."""
    for each in model.modules():
        if isinstance(each, Attention):
            each.kernel = kernel
