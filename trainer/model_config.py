"""What network is trained, and how its optimizer is set: settings beside the data's."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated

from trainer.flags import Flag, one_of, share, zero_or_more

NETWORKS, ACTIVATIONS, NORMS = ("mlp", "residual"), ("relu", "gelu", "silu", "tanh"), ("none", "batch", "layer")


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """Settings of the network and its optimizer; each field is the flag of the same name."""

    network: Annotated[str, Flag("mlp, or residual: each layer adds to its input", one_of(*NETWORKS), "model")] = "mlp"
    activation: Annotated[str, Flag("relu, gelu, silu or tanh", one_of(*ACTIVATIONS), "model")] = "relu"
    norm: Annotated[str, Flag("none, batch or layer, after each hidden layer", one_of(*NORMS), "model")] = "none"
    dropout: Annotated[float, Flag("share of hidden outputs set to 0 in training", share, "model")] = 0.0
    weight_decay: Annotated[float, Flag("AdamW's pull of weights to 0", zero_or_more(10))] = 0.01
    schedule: Annotated[
        str, Flag("of the step size: constant, or cosine: down to 0 at the end", one_of("constant", "cosine"))
    ] = "constant"
    weights: Annotated[
        str, Flag("which are kept: of the best validation loss, or the last", one_of("best", "last"))
    ] = "best"


MODEL_DECIDING = tuple(f.name for f in fields(ModelConfig))
