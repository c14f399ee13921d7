"""What network is trained, and how its optimizer is set: settings beside the data's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Annotated

from trainer.config.parsing import Flag, one_of, share, whole, zero_or_more
from trainer.runtime.errors import TrainerError

NETWORKS, ACTIVATIONS = ("mlp", "residual", "transformer"), ("relu", "gelu", "silu", "tanh")
SCHEDULES = ("constant", "cosine", "linear", "wsd", "inverse-sqrt")
NORMS, KERNELS = ("none", "batch", "layer"), ("auto", "flash", "efficient", "math")  # tests hold these equal
MOST_TOKEN_WIDTH = 2**16


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """Settings of the network and its optimizer; each field is the flag of the same name."""

    network: Annotated[
        str,
        Flag("mlp; residual: each layer adds to its input; transformer: columns attend", one_of(*NETWORKS), "model"),
    ] = "mlp"
    token_width: Annotated[
        int,
        Flag(
            "width of a transformer's tokens; --hidden-layers: width of its feed-forward layers",
            whole(1, MOST_TOKEN_WIDTH),
            "model",
        ),
    ] = 32
    heads: Annotated[int, Flag("attention heads; must divide --token-width", whole(1, MOST_TOKEN_WIDTH), "model")] = 4
    attention: Annotated[
        str, Flag("kernel: flash, efficient, math, or auto: the first that is right", one_of(*KERNELS), "model")
    ] = "auto"
    activation: Annotated[str, Flag("relu, gelu, silu or tanh", one_of(*ACTIVATIONS), "model")] = "relu"
    norm: Annotated[str, Flag("none, batch or layer, after each hidden layer", one_of(*NORMS), "model")] = "none"
    dropout: Annotated[float, Flag("share of hidden outputs set to 0 in training", share, "model")] = 0.0
    weight_decay: Annotated[float, Flag("AdamW weight decay", zero_or_more(10))] = 0.01
    schedule: Annotated[
        str,
        Flag("learning-rate schedule: constant, cosine or linear decay to 0, wsd, inverse-sqrt", one_of(*SCHEDULES)),
    ] = "constant"
    weights: Annotated[
        str, Flag("which are kept: of the best validation loss, or the last", one_of("best", "last"))
    ] = "best"


MODEL_DECIDING = tuple(f.name for f in fields(ModelConfig))


def require_fitting(config: ModelConfig, hidden_layers: Sequence[int]) -> None:
    """Raise RM557 where settings of the network do not fit each other; asked before any data are read."""
    if config.network != "transformer":
        if config.attention != "auto":
            raise TrainerError("RM557", what=f"--attention {config.attention} with --network {config.network}")
        return
    if not hidden_layers:
        raise TrainerError("RM557", what="--network transformer without blocks: --hidden-layers none")
    if config.norm == "batch":
        raise TrainerError("RM557", what="--network transformer is normed by layer, not --norm batch")
    if config.token_width % config.heads:
        what = f"--token-width {config.token_width} cannot be shared by --heads {config.heads}"
        raise TrainerError("RM557", what=what, next="Give a number of heads that divides the width.")
