"""The multi-layer perceptron: a plain stack, so `torch.nn.Sequential` alone can load its weights."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from torch import nn

from trainer.models.layers import ACTIVATIONS, dropout_layers, norm_layers


def mlp(
    inputs: int,
    hidden_layers: Sequence[int],
    outputs: int = 1,
    *,
    activation: str = "ReLU",
    norm: str = "none",
    dropout: float = 0.0,
) -> nn.Sequential:
    """Return Linear, norm, activation and dropout for each hidden width, then Linear to the outputs.

    From (rows, inputs) to (rows, outputs); without hidden layers it is one Linear.

    Args:
        inputs: features of a row.
        hidden_layers: width of each hidden layer.
        outputs: numbers returned for a row: one for a number as target, one a class otherwise.
        activation: name of the activation in torch.nn.
        norm: value of `--norm`.
        dropout: probability of a zero, 0 to 1.
    """
    hidden = [
        layer
        for width_in, width_out in pairwise([inputs, *hidden_layers])
        for layer in (
            nn.Linear(width_in, width_out),
            *norm_layers(norm, width_out),
            ACTIVATIONS[activation](),
            *dropout_layers(dropout),
        )
    ]
    return nn.Sequential(*hidden, nn.Linear([inputs, *hidden_layers][-1], outputs))
