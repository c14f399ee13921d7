"""A residual perceptron: each hidden layer adds to its input, so depth costs little to train."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

from trainer.models.layers import ACTIVATIONS, dropout_layers, norm_layers


class Residual(nn.Module):
    """shortcut(x) + Linear(dropout(activation(Linear(norm(x))))): (rows, inputs) to (rows, width).

    The shortcut is x itself, or where the width changes, a Linear of it without bias.
    """

    def __init__(self, inputs: int, width: int, *, activation: str, norm: str, dropout: float) -> None:
        super().__init__()
        self.shortcut = nn.Identity() if inputs == width else nn.Linear(inputs, width, bias=False)
        self.body = nn.Sequential(
            *norm_layers(norm, inputs),
            nn.Linear(inputs, width),
            ACTIVATIONS[activation](),
            *dropout_layers(dropout),
            nn.Linear(width, width),
        )

    def forward(self, rows: Tensor) -> Tensor:
        """Return (rows, width)."""
        outputs: Tensor = self.shortcut(rows) + self.body(rows)
        return outputs


def residual(
    inputs: int, hidden_layers: Sequence[int], outputs: int = 1, *, activation: str, norm: str, dropout: float
) -> nn.Sequential:
    """Return a block for each hidden width, then activation and Linear: (rows, inputs) to (rows, outputs).

    Args:
        inputs: features of a row.
        hidden_layers: width of each block.
        outputs: numbers returned for a row: one for a number as target, one a class otherwise.
        activation: name of the activation in torch.nn.
        norm: value of `--norm`.
        dropout: probability of a zero, 0 to 1.
    """
    blocks = [
        Residual(width_in, width_out, activation=activation, norm=norm, dropout=dropout)
        for width_in, width_out in pairwise([inputs, *hidden_layers])
    ]
    last = [ACTIVATIONS[activation]()] if blocks else []
    return nn.Sequential(*blocks, *last, nn.Linear([inputs, *hidden_layers][-1], outputs))
