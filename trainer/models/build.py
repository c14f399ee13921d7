"""A network from its description in metadata.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from trainer.models.embedded import Embedded
from trainer.models.mlp import mlp
from trainer.models.residual import residual

KINDS = {"mlp": mlp, "residual": residual}


def build(description: Mapping[str, Any]) -> nn.Module:
    """Return the network that `description` names, with fresh weights.

    `widths` are those of the layers, inputs first; with `embeddings`, the inputs are numbers and vectors together.

    Raises:
        ValueError: for a kind that this trainer does not know.
    """
    kind = description.get("kind")
    if kind not in KINDS:
        raise ValueError(f"no network of kind {kind!r}; known: {', '.join(KINDS)}")
    first, *hidden, outputs = description["widths"]
    network: nn.Module = KINDS[kind](
        first,
        hidden,
        outputs,
        activation=description.get("activation", "ReLU"),
        norm=description.get("norm", "none"),
        dropout=description.get("dropout", 0.0),
    )
    embeddings = description.get("embeddings") or []
    if not embeddings:
        return network
    return Embedded(first - sum(each["width"] - 1 for each in embeddings), embeddings, network)
