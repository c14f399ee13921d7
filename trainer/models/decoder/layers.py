"""Norms and feed-forward layers of decoders."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from trainer.models.decoder.config import FeedForwardConfig, NormConfig
from trainer.models.decoder.tiles import by_tiles

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "silu": functional.silu,
    "swish": functional.silu,
    "relu": functional.relu,
    "gelu": functional.gelu,
    "gelu_new": partial(functional.gelu, approximate="tanh"),
    "gelu_pytorch_tanh": partial(functional.gelu, approximate="tanh"),
}


def draws_numbers(module: nn.Module) -> bool:
    """Return whether dropout of a decoder's module, or of an adapter in it, draws random numbers in training."""
    return any(_dropout(each) > 0 for each in module.modules())


def _dropout(module: nn.Module) -> float:
    own = module.p if isinstance(module, nn.Dropout) else getattr(module, "dropout", 0.0)
    drawn = getattr(getattr(module, "config", None), "dropout", 0.0) or own
    return drawn if isinstance(drawn, float) else 0.0


class RMSNorm(nn.Module):
    """Root-mean-square norm over the last dimension, computed in fp32 or wider.

    plus_one: the stored weight is the factor less 1, and the product is formed before rounding, as in Gemma.
    """

    def __init__(self, width: int, epsilon: float, *, plus_one: bool = False) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(width) if plus_one else torch.ones(width))
        self.epsilon, self.plus_one = epsilon, plus_one

    def forward(self, states: Tensor) -> Tensor:
        """Return the same shape and dtype."""
        wide = states if states.dtype == torch.float64 else states.float()
        normed = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.epsilon)
        if self.plus_one:
            return (normed * (1.0 + self.weight.to(wide.dtype))).to(states.dtype)
        return self.weight * normed.to(states.dtype)


def norm_of(config: NormConfig, width: int) -> nn.Module:
    """Return the norm over `width`.

    Raises:
        ValueError: for a kind that is not implemented.
    """
    if config.kind == "layer":
        return nn.LayerNorm(width, eps=config.epsilon)
    if config.kind not in ("rms", "rms_plus_one"):
        raise ValueError(f"no norm called {config.kind!r}; known: rms, rms_plus_one, layer")
    return RMSNorm(width, config.epsilon, plus_one=config.kind == "rms_plus_one")


class FeedForward(nn.Module):
    """(rows, tokens, width) to the same through a wider layer.

    tile: tokens that are computed at a time, see `tiles`; 0 for all.
    """

    tile = 0

    def __init__(self, width: int, config: FeedForwardConfig) -> None:
        super().__init__()
        self.activation, self.gated = ACTIVATIONS[config.activation], config.gated
        if config.gated:
            self.gate_proj = nn.Linear(width, config.width, bias=config.bias)
        self.up_proj = nn.Linear(width, config.width, bias=config.bias)
        self.down_proj = nn.Linear(config.width, width, bias=config.bias)

    def forward(self, states: Tensor) -> Tensor:
        """Return the same shape."""
        return by_tiles(self.whole, self, states, self.tile) if self.is_tiled(states) else self.whole(states)

    def is_tiled(self, states: Tensor) -> bool:
        """Return whether there are more tokens than a tile has."""
        return 0 < self.tile < states.shape[0] * states.shape[1]

    def whole(self, states: Tensor) -> Tensor:
        """Return the same shape, of all tokens at once."""
        if self.gated:
            inner = self.activation(self.gate_proj(states)) * self.up_proj(states)
        else:
            inner = self.activation(self.up_proj(states))
        outputs: Tensor = self.down_proj(inner)
        return outputs
