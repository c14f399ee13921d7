"""Rotary position embeddings (Su et al. 2021, arXiv 2104.09864) and their scaling for longer contexts.

The halves of a head are rotated against each other, as in the weights that Hugging Face folders hold.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from trainer.models.decoder.config import RopeConfig


def frequencies(rope: RopeConfig, head_dim: int) -> Tensor:
    """Return (head_dim / 2,) angles per position in fp32.

    Raises:
        ValueError: for a scaling that is not implemented.
    """
    plain = 1.0 / (rope.theta ** (torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim))
    if rope.kind == "default":
        return plain
    if rope.kind == "linear":
        return plain / rope.factor
    if rope.kind == "llama3":
        return _llama3(plain, rope)
    if rope.kind == "yarn":
        return _yarn(plain, rope, head_dim)
    raise ValueError(f"rope scaling {rope.kind!r} is not implemented")


def _llama3(plain: Tensor, rope: RopeConfig) -> Tensor:
    """Llama 3.1: long waves are stretched by the factor, short ones kept, those between interpolated."""
    turns = rope.original_length * plain / (2 * math.pi)  # rotations within the original context
    share = (turns - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor)
    share = share.clamp(0, 1)
    return (1 - share) * plain / rope.factor + share * plain


def _yarn(plain: Tensor, rope: RopeConfig, head_dim: int) -> Tensor:
    """YaRN (Peng et al. 2023, arXiv 2309.00071), section 3.2: a ramp over dimensions instead of over wavelengths."""

    def dimension(rotations: float) -> float:
        length = math.log(rope.original_length / (rotations * 2 * math.pi))
        return head_dim * length / (2 * math.log(rope.theta))

    low, high = dimension(rope.beta_fast), dimension(rope.beta_slow)
    if rope.truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, head_dim - 1)
    width = high - low if high != low else 0.001
    ramp = ((torch.arange(head_dim // 2, dtype=torch.float32) - low) / width).clamp(0, 1)
    return plain / rope.factor * ramp + plain * (1 - ramp)


def rotation(inverse: Tensor, positions: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """Return cosine and sine, (rows, 1, tokens, head_dim) in fp32, of `positions` (rows, tokens).

    Args:
        inverse: inverse frequencies, shape (head_dim / 2,).
        positions: shape (rows, tokens).
        scale: factor of cosine and sine.
    """
    angles = positions.float().unsqueeze(-1) * inverse
    doubled = torch.cat([angles, angles], dim=-1).unsqueeze(1)
    return doubled.cos() * scale, doubled.sin() * scale


def rotate(states: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Rotate (rows, heads, tokens, head_dim).

    Args:
        states: shape (rows, heads, tokens, head_dim).
        cosine: shape (rows, 1, tokens, head_dim).
        sine: shape (rows, 1, tokens, head_dim).
    """
    first, second = states.chunk(2, dim=-1)
    turned = torch.cat([-second, first], dim=-1)
    return states * cosine.to(states.dtype) + turned * sine.to(states.dtype)
