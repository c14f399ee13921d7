"""Choice of a run's number format: by what the architecture does well, and by a self-test.

Compute capability does not decide this: HIP reports 9.0 for gfx906, which has no bf16 at all.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch

from trainer.device import architectures
from trainer.device.accelerator import Accelerator
from trainer.runtime.errors import TrainerError

DTYPES = {"fp64": torch.float64, "fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}

# The 16-bit format whose matrix products the hardware itself computes, at more than the fp32 rate, and why.
_AUTOCAST = ((name, each["autocast"]) for name, each in architectures.KNOWN.items())
BEST: Mapping[str, tuple[str, str]] = {name: (own["format"], own["why"]) for name, own in _AUTOCAST if own} | {
    "sm_70": ("fp16", "tensor cores in fp16 only"),
    "sm_75": ("fp16", "tensor cores in fp16 only"),
    "sm_80": ("bf16", "tensor cores in bf16"),
    "sm_86": ("bf16", "tensor cores in bf16"),
    "sm_89": ("bf16", "tensor cores in bf16"),
    "sm_90": ("bf16", "tensor cores in bf16"),
    "sm_100": ("bf16", "tensor cores in bf16"),
    "sm_120": ("bf16", "tensor cores in bf16"),
}

PEAK_SHARE = 5  # rounding makes the largest error about five times the mean one
# How many of the format's roundings a result may be off, see `_difference`: 16-bit inputs summed in fp32 see one per
# input and one of the result; fp32 sums of 96 products add their own. On a CPU 0.7 and 2.8 were measured.
ROUNDINGS = {"fp64": 32.0, "fp32": 32.0, "bf16": 4.0, "fp16": 4.0}


@dataclass(frozen=True, kw_only=True)
class Precision:
    """The chosen format and why. Weights stay fp32 (fp64 in fp64); fp16 and bf16 are autocast."""

    name: str
    reason: str
    device_type: str

    @property
    def weights(self) -> torch.dtype:
        """The dtype of weights and inputs."""
        return torch.float64 if self.name == "fp64" else torch.float32

    def context(self) -> AbstractContextManager[Any]:
        """Return what forward and loss run under."""
        if self.name in ("fp32", "fp64"):
            return nullcontext()
        return torch.autocast(self.device_type, dtype=DTYPES[self.name])

    def scaler(self) -> torch.amp.GradScaler | None:
        """Return the loss scaler that fp16's short range needs; None for the others."""
        return torch.amp.GradScaler(self.device_type) if self.name == "fp16" else None


def candidate(requested: str, accelerator: Accelerator) -> str:
    """Return the format that is to be tried first for a value of --precision."""
    if requested != "auto":
        return requested
    return "fp32" if accelerator.kind == "cpu" else BEST.get(accelerator.arch, ("fp32", ""))[0]


def choose_precision(requested: str, accelerator: Accelerator, *, fault: str = "") -> Precision:
    """Return the format for `auto`, `fp32`, `bf16`, `fp16` or `fp64`.

    `auto` never fails: what does not pass falls back to fp32, and the reason states it.

    Args:
        requested: value of --precision.
        fault: what a trial of `candidate` in a child process came to; it is not tried in this process then.

    Raises:
        TrainerError: RM522 where a format that was asked for by name fails the numeric self-test.
    """
    device = torch.device(accelerator.device)
    if requested in ("fp32", "fp64") and accelerator.kind == "cpu":
        return Precision(name=requested, reason="asked for, or the default", device_type="cpu")
    if requested != "auto":
        found, seconds = (fault, 0.0) if fault else self_test(requested, device)
        if found:
            raise TrainerError("RM522", what=f"{requested} on {accelerator.device} ({accelerator.arch})", why=found)
        return Precision(name=requested, reason=f"asked for; {_passed(seconds)}", device_type=device.type)
    if accelerator.kind == "cpu":
        return Precision(name="fp32", reason="auto: a CPU gains nothing reliable from 16 bits", device_type="cpu")
    if accelerator.arch not in BEST:
        why = f"auto: nothing is known of 16-bit formats on {accelerator.arch}"
        return Precision(name="fp32", reason=why, device_type=device.type)
    name, why = BEST[accelerator.arch]
    found, seconds = (fault, 0.0) if fault else self_test(name, device)
    if found:
        why = f"auto: {accelerator.arch} should do {name} ({why}), but {found}"
        return Precision(name="fp32", reason=why, device_type=device.type)
    why = f"auto: {accelerator.arch}: {why}; {_passed(seconds)}"
    return Precision(name=name, reason=why, device_type=device.type)


def self_test(name: str, device: torch.device) -> tuple[str | None, float]:
    """Return the fault of a number format on a device, None for none, and the seconds; see `compared`."""
    try:
        return compared(name, device)
    except RuntimeError as error:
        return f"it does not compute: {str(error).splitlines()[0]}", 0.0


def compared(name: str, device: torch.device) -> tuple[str | None, float]:
    """Compare products, softmax and their gradients in the format with fp64; return the fault and the seconds.

    Shapes are (128, 96) by (96, 64): small enough for milliseconds, odd enough for edge tiles.

    Args:
        name: of the format, a key of DTYPES.

    Raises:
        RuntimeError: where the device does not compute in it, or has no memory left.
    """
    left, right = _operands()
    expected = _reference(left, right)
    _sample(left.float(), right.float(), device, name)  # libraries load at the first call
    began = time.perf_counter()
    got = _sample(left.float(), right.float(), device, name)
    seconds = time.perf_counter() - began
    limit = ROUNDINGS[name] * torch.finfo(DTYPES[name] if name != "fp64" else torch.float32).eps
    for label, value, reference in zip(("product", "softmax", "gradient"), got, expected, strict=True):
        off = _difference(value, reference)
        if not off <= limit:  # a NaN is not
            return f"its {label} is off by {off:.2g} of fp64's, {limit:.2g} is allowed", seconds
    return None, seconds


def _difference(value: torch.Tensor, reference: torch.Tensor) -> float:
    """Return the relative error of the norm, or a share of the worst element's where that is larger; NaN stays NaN.

    One zero in 2,000 elements is 2 % of the norm, less than bf16 is allowed.
    """
    off = (value - reference).abs()
    worst = (off / (reference.abs() + reference.square().mean().sqrt())).max() / PEAK_SHARE
    return float(torch.stack([off.norm() / reference.norm(), worst]).max())  # which of a NaN is one


def _operands() -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(0)
    return tuple(torch.randn(shape, generator=generator).double() for shape in ((128, 96), (96, 64)))


def _reference(left: torch.Tensor, right: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return _sample(left, right, "cpu", None)


def _sample(
    left: torch.Tensor, right: torch.Tensor, device: torch.device | str, name: str | None
) -> tuple[torch.Tensor, ...]:
    """Return product, softmax of it and the gradient of a loss on both to `left`, as fp64 on the CPU."""
    dtype = torch.float64 if name in (None, "fp64") else torch.float32
    a = left.detach().to(device, dtype, copy=True).requires_grad_()
    b = right.to(device, dtype)
    precision = Precision(name=name or "fp64", reason="", device_type=torch.device(device).type)
    with precision.context():
        product = a @ b
        weights = torch.softmax(product / left.shape[1] ** 0.5, dim=1)
    (weights.to(dtype) * b.mean(0) * len(left)).sum().backward()
    assert a.grad is not None
    return tuple(value.detach().double().cpu() for value in (product, weights, a.grad))


def _passed(seconds: float) -> str:
    return f"the numeric self-test passed in {seconds * 1000:.0f} ms"
