"""What the trainer gives to torch.compile, as functions with inputs without data; sizes of real models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from trainer.data.tokens.labels import IGNORED
from trainer.models.build import build
from trainer.models.decoder.config import DecoderConfig
from trainer.models.decoder.model import Block
from trainer.models.fast import cross_entropy, elementwise
from trainer.models.pretrained.families import decoder_config

ROWS, TOKENS, BATCH = 4, 1024, 512
LLAMA: Mapping[str, Any] = {  # one layer of a Qwen2.5-1.5B's sizes
    "model_type": "qwen2",
    "vocab_size": 50304,
    "hidden_size": 1536,
    "intermediate_size": 8960,
    "num_hidden_layers": 1,
    "num_attention_heads": 12,
    "num_key_value_heads": 2,
    "max_position_embeddings": 2048,
}
NETWORKS: Mapping[str, Mapping[str, Any]] = {
    "mlp": {"kind": "mlp", "widths": [54, 256, 128, 1], "norm": "layer", "activation": "GELU"},
    "transformer": {"kind": "transformer", "widths": [20, 256, 256, 10], "token_width": 64, "heads": 4},
}


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A function that is compiled and its inputs; `precision` is autocast's, None for none."""

    name: str
    function: Callable[..., Any]
    inputs: tuple[Any, ...]
    precision: torch.dtype | None = None


def subjects() -> Iterator[Subject]:
    """Yield all; to be called where tensors have no data."""
    yield from _block("llama", decoder_config(LLAMA))
    yield from _elementwise()
    for name, description in NETWORKS.items():
        yield _network(name, build(description), description)
    logits = torch.empty(2048, 50304, dtype=torch.bfloat16)
    labels, scale = torch.empty(2048, dtype=torch.long), torch.empty(2048)
    assert IGNORED < 0
    yield Subject(name="loss", function=cross_entropy._without_scatter, inputs=(logits, labels, scale))


def _block(name: str, config: DecoderConfig) -> Iterator[Subject]:
    """Yield both parts of a block whose weights are trained."""
    block, shape = Block(config, 0), config.attention
    states = torch.empty(ROWS, TOKENS, config.width, requires_grad=True)
    turn = None
    if config.rope is not None:
        turn = (torch.empty(ROWS, 1, TOKENS, shape.head_dim), torch.empty(ROWS, 1, TOKENS, shape.head_dim))
    attended = torch.empty(ROWS, shape.heads, TOKENS, shape.head_dim, dtype=torch.bfloat16, requires_grad=True)
    half = torch.bfloat16
    yield Subject(name=f"{name} enter", function=block.entered, inputs=(states, turn), precision=half)
    yield Subject(name=f"{name} leave", function=block.left, inputs=(states, attended), precision=half)


def _elementwise() -> Iterator[Subject]:
    """Yield what stands between the products of frozen blocks."""
    half = torch.bfloat16
    states, weight = torch.empty(ROWS, TOKENS, 1536, dtype=half), torch.empty(1536, dtype=half)
    calls: Mapping[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
        "normed": (elementwise.normed, (states, weight, None, "rms", 1e-6, half)),
        "added and normed": (elementwise.added_and_normed, (states, states, weight, weight, "layer", 1e-5, half)),
    }
    for name, (function, inputs) in calls.items():
        yield Subject(name=name, function=function, inputs=inputs)


def _network(name: str, network: nn.Module, description: Mapping[str, Any]) -> Subject:
    """Return a network of bars or tables with its loss."""
    inputs, outputs = description["widths"][0], description["widths"][-1]
    labels = torch.empty(BATCH, dtype=torch.long) if outputs > 1 else torch.empty(BATCH, 1)
    loss = functional.cross_entropy if outputs > 1 else functional.mse_loss

    def function(rows: Tensor) -> Tensor:
        return loss(network(rows).float(), labels)

    return Subject(name=name, function=function, inputs=(torch.empty(BATCH, inputs),), precision=torch.bfloat16)
