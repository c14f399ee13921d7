"""Settings of networks over rows of numbers. A kind is a name here, and a function of that name in `trainer.models`.

A kind with settings of its own has a section here, too, in `NETWORK_SECTIONS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import Annotated, Any, ClassVar

from trainer.config.choices import ACTIVATIONS, ATTENTION, NORMS
from trainer.config.parsing import one_of, share, whole, widths_of
from trainer.config.setting import Flag, OnResume
from trainer.runtime.errors import TrainerError

TRANSFORMER = "transformer"
NETWORKS = ("mlp", "residual", TRANSFORMER)
# Bounds that no sensible run meets: beyond them numbers overflow in torch.
MOST_WIDTH, MOST_LAYERS, MOST_TOKEN_WIDTH = 2**20, 256, 2**16
widths = widths_of(1, MOST_WIDTH, MOST_LAYERS)
_fixed = partial(Flag, recipe="model", resume=OnResume.FIXED)


@dataclass(frozen=True, kw_only=True)
class MlpConfig:
    """A perceptron, or one whose layers add to their inputs."""

    title: ClassVar[str] = "Network"
    network: Annotated[
        str,
        _fixed(
            "residual: skip connections; transformer: self-attention over the columns", one_of(*NETWORKS), common=True
        ),
    ] = "mlp"
    hidden_layers: Annotated[tuple[int, ...], _fixed("widths of the hidden layers", widths, common=True)] = (32, 16)
    activation: Annotated[str, _fixed("activation function after each hidden layer", one_of(*ACTIVATIONS))] = "relu"
    norm: Annotated[str, _fixed("normalisation after each hidden layer", one_of(*NORMS))] = "none"
    dropout: Annotated[float, _fixed("share of hidden outputs set to 0 in training", share)] = 0.0

    def require_fitting(self, unused: Mapping[str, Any]) -> None:
        """Raise RM557 where settings of the network do not fit each other; `unused` are given ones of other kinds."""
        if unused.get("attention", "auto") != "auto":
            raise TrainerError("RM557", what=f"--attention {unused['attention']} with --network {self.network}")

    def metadata_entries(self) -> dict[str, Any]:
        """Return the entries of metadata.json's `model` for settings that this kind has of its own, none for a stack.

        `models.build` hands `settings` to the function of the kind's name, by name.
        """
        inherited = {each.name for each in fields(MlpConfig)}
        own = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in inherited}
        return {"settings": own} if own else {}


@dataclass(frozen=True, kw_only=True)
class TransformerConfig(MlpConfig):
    """A transformer over the columns of a row; `hidden_layers` are the widths of its feed-forward layers."""

    title: ClassVar[str] = "Network: transformer over columns"
    token_width: Annotated[
        int,
        _fixed(
            "width of a transformer's tokens; --hidden-layers: width of its feed-forward layers",
            whole(1, MOST_TOKEN_WIDTH),
        ),
    ] = 32
    heads: Annotated[int, _fixed("attention heads; must divide --token-width", whole(1, MOST_TOKEN_WIDTH))] = 4
    attention: Annotated[
        str, _fixed("attention kernel; auto: the first whose results are right", one_of(*ATTENTION))
    ] = "auto"

    def require_fitting(self, unused: Mapping[str, Any]) -> None:
        """Raise RM557 where settings of the network do not fit each other; asked before any data are read."""
        if not self.hidden_layers:
            raise TrainerError("RM557", what="--network transformer without blocks: --hidden-layers none")
        if self.norm == "batch":
            raise TrainerError("RM557", what="--network transformer is normed by layer, not --norm batch")
        if self.token_width % self.heads:
            what = f"--token-width {self.token_width} cannot be shared by --heads {self.heads}"
            raise TrainerError("RM557", what=what, next="Give a number of heads that divides the width.")

    def metadata_entries(self) -> dict[str, Any]:
        """Return width and heads, which stand in metadata.json next to the others: older files have them there."""
        return {"token_width": self.token_width, "heads": self.heads}


NETWORK_SECTIONS: Mapping[str, type[MlpConfig]] = {
    TRANSFORMER: TransformerConfig,
}
