"""Comparison of numbers in probes: one error measure, one seed, and fp32 without TF32."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def fresh_seed() -> int:
    """Return a new seed for each run; verdicts report it, so that a failure can be replayed."""
    return secrets.randbits(31)


PEAK_SHARE = 5  # rounding makes the largest error about five times the mean one


def relative_error(result: torch.Tensor, reference: torch.Tensor) -> float:
    """Return the Frobenius norm of the difference over that of the fp64 `reference`, same shape; NaN stays NaN."""
    difference = result.detach().cpu().double() - reference
    return float(difference.norm() / reference.norm())


def error(result: torch.Tensor, reference: torch.Tensor) -> float:
    """Return the relative error, or a fifth of the worst element's, whichever is larger.

    The norm of a large tensor hardly changes by one element: one zero among 2,000 is 2 % of it. An element counts by
    its own size and the reference's mean (RMS): rounding errs by a share of the element, and some are many means large.
    """
    difference = result.detach().cpu().double() - reference
    size = reference.abs() + reference.square().mean().sqrt()
    return worst([float(difference.norm() / reference.norm()), float((difference.abs() / size).max()) / PEAK_SHARE])


def worst(errors: Iterable[float]) -> float:
    """Return the largest error; NaN is larger than any. Raises ValueError when there is none."""
    return max(errors, key=lambda error: math.inf if math.isnan(error) else error)


def least(changes: Iterable[float]) -> float:
    """Return the smallest change; NaN is smaller than any. Raises ValueError when there is none."""
    return min(changes, key=lambda change: -math.inf if math.isnan(change) else change)


def bits_changed(before: torch.Tensor, after: torch.Tensor) -> int:
    """Return how many fp32 elements differ in their bits. NaN equals itself here, and -0.0 differs from 0.0."""
    import torch

    return int((before.view(torch.int32) != after.view(torch.int32)).sum())


def strict_fp32() -> None:
    """Keep tf32 and its AMD kin out of fp32 products and convolutions; torch leaves it on in the latter."""
    import torch

    torch.set_float32_matmul_precision("highest")  # every torch since 1.12 has this call
    torch.backends.cudnn.allow_tf32 = False


def wait_for(torch_type: str) -> None:
    """Wait until the card has done what was asked of it; the CPU always has."""
    import torch

    if torch_type != "cpu":
        torch.cuda.synchronize()


def best_seconds(work: Callable[[], object], torch_type: str, rounds: int = 5) -> float:
    """Return the least time of a few runs of `work`, in seconds, after one that does not count.

    Args:
        work: what is timed.
        torch_type: device type of torch, "cuda" or "cpu".
        rounds: number of timed runs.
    """
    times = []
    for _ in range(rounds + 1):
        wait_for(torch_type)
        begun = time.perf_counter()
        work()
        wait_for(torch_type)
        times.append(time.perf_counter() - begun)
    return min(times[1:])


def checksum(tensor: torch.Tensor) -> int:
    """Return a sum over the bytes of a contiguous tensor in which each counts by its place, modulo 2^64.

    Computed on the tensor's device. Bytes that are wrong, missing or in the wrong place change it.
    """
    import torch

    raw = tensor.contiguous().view(-1).view(torch.uint8)
    place = torch.arange(1, raw.numel() + 1, device=raw.device, dtype=torch.int64)
    # An odd multiplier spreads the places over 64 bits; int64 wraps around alike on every device.
    return int(((raw.to(torch.int64) + 1) * (place * 0x9E3779B97F4A7C1 ^ place)).sum())
