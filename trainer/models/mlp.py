"""The multi-layer perceptron: a plain stack, so `torch.nn.Sequential` alone can load its weights."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from torch import nn


def mlp(inputs: int, hidden_layers: Sequence[int]) -> nn.Sequential:
    """Return Linear and ReLU for each hidden width, then Linear to one output: (rows, inputs) to (rows, 1)."""
    hidden = [
        layer
        for width_in, width_out in pairwise([inputs, *hidden_layers])
        for layer in (nn.Linear(width_in, width_out), nn.ReLU())
    ]
    return nn.Sequential(*hidden, nn.Linear([inputs, *hidden_layers][-1], 1))
