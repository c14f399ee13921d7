"""A network from its description in metadata.json."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from inspect import signature
from typing import Any

import torch
from torch import nn

from trainer.config.sections.network import NETWORKS, TRANSFORMER
from trainer.models.decoder.skip_init import SkipInit
from trainer.models.embedded import Embedded
from trainer.models.size import shrunk
from trainer.models.transformer import transformer

KINDS = NETWORKS


def build(description: Mapping[str, Any]) -> nn.Module:
    """Return the network that `description` names, with fresh weights.

    `widths` are those of the layers, inputs first; with `embeddings`, the inputs are numbers and vectors together.
    A transformer's inputs are columns, and its hidden widths those of its blocks' feed-forward layers. `settings` are
    those that another kind has of its own.

    Raises:
        ValueError: for a kind that this trainer does not know, and for settings that a kind does not take.
    """
    kind = description.get("kind")
    if kind not in KINDS:
        raise ValueError(f"no network of kind {kind!r}; known: {', '.join(KINDS)}")
    first, *hidden, outputs = description["widths"]
    how = {"activation": description.get("activation", "ReLU"), "dropout": description.get("dropout", 0.0)}
    embeddings = description.get("embeddings") or []
    if kind == TRANSFORMER:
        tokens = {name: description[name] for name in ("token_width", "heads")}
        return transformer(first, hidden, outputs, embeddings=embeddings, **tokens, **how)
    settings = {**(description.get("settings") or {}), "norm": description.get("norm", "none"), **how}
    network = _made(kind, (first, hidden, outputs), settings)
    if not embeddings:
        return network
    return Embedded(first - sum(each["width"] - 1 for each in embeddings), embeddings, network)


def _made(kind: str, widths: tuple[int, list[int], int], settings: Mapping[str, Any]) -> nn.Module:
    """Return the network that the function of the kind's name makes, in the module of that name."""
    function: Callable[..., nn.Module] = getattr(import_module(f"trainer.models.{kind}"), kind)
    try:
        signature(function).bind(*widths, **settings)
    except TypeError as error:
        raise ValueError(f"a network of kind {kind!r}: {error}") from error
    return function(*widths, **settings)


def fitting_layers(description: Mapping[str, Any], most: int) -> list[int]:
    """Return hidden widths, scaled down alike, of a network like this with at most `most` parameters."""
    return shrunk(description["widths"], most, lambda widths: size({**description, "widths": widths}))[1:-1]


def size(description: Mapping[str, Any]) -> int:
    """Return how many weights the network has that `description` names; none is allocated or drawn."""
    with SkipInit(), torch.device("meta"):
        return sum(weight.numel() for weight in build(description).parameters())
