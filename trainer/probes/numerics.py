"""How the probes compare numbers: one error measure, one seed, and fp32 that is fp32."""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def fresh_seed() -> int:
    """A new seed for each run; verdicts report it, so that a failure can be replayed."""
    return secrets.randbits(31)


def relative_error(result: torch.Tensor, reference: torch.Tensor) -> float:
    """Frobenius norm of the difference over that of the fp64 `reference` of the same shape; NaN stays NaN."""
    difference = result.detach().cpu().double() - reference
    return float(difference.norm() / reference.norm())


def worst(errors: Iterable[float]) -> float:
    """The largest error; NaN is larger than any. Raises ValueError when there is none."""
    return max(errors, key=lambda error: math.inf if math.isnan(error) else error)


def bits_changed(before: torch.Tensor, after: torch.Tensor) -> int:
    """How many fp32 elements differ in their bits. NaN equals itself here, and -0.0 differs from 0.0."""
    import torch

    return int((before.view(torch.int32) != after.view(torch.int32)).sum())


def strict_fp32() -> None:
    """Keep tf32 and its AMD kin out of fp32 products (every torch since 1.12 has this call)."""
    import torch

    torch.set_float32_matmul_precision("highest")
