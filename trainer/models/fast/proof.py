"""Errors against fp64, and times: what decides whether a faster way is used."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

# Largest relative Frobenius error of any output or gradient against fp64, by the dtype of the products. A block is
# some twenty roundings deep. A wrong scale, mask or missing adapter errs by more than 0.1.
LIMITS = {torch.float64: 1e-12, torch.float32: 1e-4, torch.float16: 5e-3, torch.bfloat16: 3e-2}
AGAINST_PLAIN = 1.5  # times the error that plain torch has on the same inputs in the same dtype
FLOOR = 0.3
ROUNDS, WARM, CALLS = 5, 3, 4
AGAIN = 3  # times that what holds less is timed anew before it is left for its time: another program only adds to one
FASTER = 1.03  # a gain below the noise would make the choice, and the bits, differ from start to start


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One way that was tried: its largest error, the seconds of a forward and backward, and why not if not.

    held: bytes that are there between forward and backward; None where they are not counted.
    """

    name: str
    error: float | None = None
    seconds: float | None = None
    held: int | None = None
    refused: str = ""

    def facts(self) -> dict[str, Any]:
        """Return the fields as JSON holds them."""
        return {name: value for name, value in asdict(self).items() if value not in (None, "")}


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What is used for one part of the model, why, and all that was tried."""

    name: str
    why: str
    trials: tuple[Trial, ...] = ()

    def facts(self) -> dict[str, Any]:
        """Return what metadata holds."""
        return {"name": self.name, "why": self.why, "trials": [trial.facts() for trial in self.trials]}


def relative_error(found: Sequence[Tensor], exact: Sequence[Tensor]) -> float:
    """Return the largest relative Frobenius error over the tensors; infinite where one is not finite.

    A tensor whose exact numbers nearly vanish (the gradient of a key's bias is 0) is measured by FLOOR times the
    largest root mean square among the tensors of as many dimensions.
    """
    wide = [tensor.double().cpu() for tensor in exact]
    floors: dict[int, float] = {}
    for tensor in wide:
        floors[tensor.ndim] = max(floors.get(tensor.ndim, 0.0), FLOOR * _spread(tensor))
    errors = [_error(one, other, floors[other.ndim]) for one, other in zip(found, wide, strict=True)]
    return max(errors) if all(map(math.isfinite, errors)) else math.inf


def _spread(tensor: Tensor) -> float:
    norm: float = tensor.norm().item()
    return norm / math.sqrt(max(tensor.numel(), 1))


def _error(found: Tensor, exact: Tensor, floor: float) -> float:
    return _spread(found.double().cpu() - exact) / max(_spread(exact), floor, 1e-300)


def judged(name: str, error: float, dtype: torch.dtype, plain: float | None = None) -> Trial:
    """Return the trial, refused where the error is too large: absolutely, or next to that of plain torch.

    Args:
        name: of the way that was tried.
        error: largest relative Frobenius error against fp64, see `relative_error`; NaN or infinite is refused.
        dtype: of the products, a key of LIMITS.
        plain: the error of plain torch on the same inputs in the same dtype; None leaves that comparison out.
    """
    limit = LIMITS[dtype] if plain is None else min(LIMITS[dtype], AGAINST_PLAIN * plain + torch.finfo(dtype).eps)
    if error <= limit:  # a NaN is not
        return Trial(name=name, error=error)
    return Trial(name=name, error=_finite(error), refused=f"error {error:.1e} against fp64, allowed is {limit:.1e}")


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def seconds_of(work: Callable[[], object], device: torch.device) -> float:
    """Return the least seconds of a call, of rounds of some calls without waiting between them, as in training.

    The least, as other programs on the machine only ever add to a round.
    """
    times = []
    for _ in range(WARM):
        work()
    for _ in range(ROUNDS):
        wait(device)
        began = time.perf_counter()
        for _ in range(CALLS):
            work()
        wait(device)
        times.append((time.perf_counter() - began) / CALLS)
    return min(times)


def wait(device: torch.device) -> None:
    """Wait for what the device still has to do."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def first_line(error: BaseException) -> str:
    """Return an exception's class and first line."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else 'without a message'}"[:300]


def fastest(trials: Sequence[Trial], by: float = FASTER) -> Trial | None:
    """Return the first of the trials that are right, or a later one that is faster by more than noise.

    Args:
        trials: in the order of preference.
        by: factor by which a later one must be faster, above 1.
    """
    right = [trial for trial in trials if not trial.refused]
    best = right[0] if right else None
    for trial in right[1:]:
        assert best is not None
        if (trial.seconds or math.inf) * by < (best.seconds or math.inf):
            best = trial
    return best


def reason(trials: Sequence[Trial]) -> str:
    """Return all trials as one sentence."""
    return "; ".join(described(trial) for trial in trials)


def described(trial: Trial) -> str:
    """Return a trial as text."""
    if trial.refused:
        return f"{trial.name} is not used: {trial.refused}"
    error = "" if trial.error is None else f" errs by {trial.error:.1e}"
    return f"{trial.name}{error}" + ("" if trial.seconds is None else f", {trial.seconds * 1e3:.2f} ms")
