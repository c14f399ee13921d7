"""Probe `conv`: convolutions agree with fp64, forward and backward, in each mode of finding a kernel.

On ROCm the library is MIOpen, whose find mode is read once in a process, so each mode gets one of its own. On
CUDA it is cuDNN, whose search is torch's `benchmark`; on the CPU oneDNN, which can be switched off.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainer.diagnostics.probes import entry, numerics, placement
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.verdict import Check, Device, Number, Verdict, at_most, conclude, not_applicable
from trainer.runtime.child_process import run_limited

if TYPE_CHECKING:
    import torch

MODULE = "trainer.diagnostics.probes.single.conv"
# ROCm/MIOpen docs/how-to/find-and-immediate.rst: MIOPEN_FIND_MODE. 5, dynamic hybrid, is the default.
FIND_MODES = {"dynamic hybrid": "5", "normal": "1", "fast": "2", "hybrid": "3"}
PARTS = ("output", "input gradient", "weight gradient")
LIMITS = {"float32": 1e-4, "float16": 5e-3, "bfloat16": 3e-2}  # of `numerics.error`, see `attention`
ERROR_UNIT = "relative error, of the norm or of the worst element"
MODE_SHARE = 0.2  # of the time, at most, for each mode in a process of its own
MARGIN_SECONDS = 10.0  # kept back from the probe's own limit, to give a verdict before it is killed
LEAST_SECONDS = 5.0  # a process takes some of it to import torch
MIB = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Shape:
    """One convolution: x is (batch, channels, *size), w is (outputs, channels / groups, *kernel)."""

    name: str
    x: tuple[int, ...]
    w: tuple[int, ...]
    stride: int = 1
    padding: int = 0
    groups: int = 1
    channels_last: bool = False


SHAPES = (
    Shape(name="3x3", x=(8, 16, 32, 32), w=(32, 16, 3, 3), padding=1),
    Shape(name="3x3 channels last", x=(8, 16, 32, 32), w=(32, 16, 3, 3), padding=1, channels_last=True),
    Shape(name="1x1", x=(4, 64, 15, 15), w=(32, 64, 1, 1)),
    Shape(name="7x7 strided", x=(2, 3, 65, 65), w=(16, 3, 7, 7), stride=2, padding=3),
    Shape(name="depthwise", x=(4, 32, 17, 17), w=(32, 1, 3, 3), padding=1, groups=32),
    Shape(name="along time", x=(8, 12, 253), w=(24, 12, 5), padding=2),
)
FEW = (SHAPES[0], SHAPES[3])


@dataclass(frozen=True, kw_only=True)
class Result:
    """Errors of PARTS for one shape and dtype, elements not finite, and memory taken in addition to the tensors."""

    shape: str
    dtype: str
    errors: tuple[float, ...]
    not_finite: int
    workspace_bytes: int


def measure(request: Request) -> Verdict:
    """Convolve every shape in the default mode, a few in each other one.

    Raises:
        NoDeviceError: the expected kind of card is not there.
    """
    budget = Budget(ends=time.monotonic() + request.timeout_seconds - MARGIN_SECONDS, kept=found_bytes())
    device, seed = placement.place(request.expect), numerics.fresh_seed()
    numerics.strict_fp32()
    results = every(SHAPES, device, seed)
    checks = judge("default", results)
    for number, mode in enumerate(modes(device)):
        found = in_mode(mode, device, seed, budget.share_of(request, number))
        checks += judge(mode, found) if isinstance(found, list) else [found]
    left_out = sum(each.name in modes(device) and each.status == "not-applicable" for each in checks)
    every_mode = 1 + len(modes(device))
    tried = f"{every_mode - left_out} of {every_mode}" if left_out else every_mode
    return conclude(
        probe="conv",
        summary=f"{len(SHAPES)} convolutions agree with fp64 by {library(device)}, in {tried} modes.",
        checks=checks,
        numbers=[Number(name="seed", value=seed, unit=""), *workspace_numbers(results, device)],
        device=device,
        versions=placement.versions(),
    )


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Deadline of the last mode, by the monotonic clock, and what MIOpen had kept at the start, in bytes."""

    ends: float
    kept: int

    def share_of(self, request: Request, number: int) -> ModeRequest:
        """Return what mode `number` may take: its share of the whole, or of what earlier ones left.

        A first use of MIOpen may compile for minutes in the default mode alone (ROCm/MIOpen#2740).

        Args:
            number: of the find mode, from 0.
        """
        left = (self.ends - time.monotonic()) / max(1, len(FIND_MODES) - number)
        seconds = min(request.timeout_seconds * MODE_SHARE, left)
        return ModeRequest(expect=request.expect, seconds=seconds, first_use=found_bytes() > self.kept)


@dataclass(frozen=True, kw_only=True)
class ModeRequest:
    """Request of one mode: the device, its seconds, and whether MIOpen has kept something new before it."""

    expect: entry.Expect
    seconds: float
    first_use: bool = False


def library(device: Device) -> str:
    """Return what convolves, and where."""
    named = {"cpu": "oneDNN on the CPU (no card was tried)", "cuda": "cuDNN", "rocm": "MIOpen"}
    return named[device.kind] if device.kind == "cpu" else f"{named[device.kind]} on {device.name} ({device.arch})"


def modes(device: Device) -> tuple[str, ...]:
    """Return the modes other than torch's default."""
    if device.kind == "rocm":
        return tuple(f"find mode {name}" for name in FIND_MODES)
    return ("search",) if device.kind == "cuda" else ("without oneDNN",)


def in_mode(mode: str, device: Device, seed: int, request: ModeRequest) -> list[Result] | Check:
    """Run a few convolutions in another mode; a failed check where its process hung or ended.

    Args:
        mode: name of the mode.
        seed: seed of the random numbers.
    """
    import torch

    if device.kind == "rocm":
        return in_process(mode, seed, request)
    if device.kind == "cpu":
        with torch.backends.mkldnn.flags(enabled=False):
            return every(FEW, device, seed)
    with torch.backends.cudnn.flags(enabled=True, benchmark=True, allow_tf32=False):
        return every(FEW, device, seed)


def in_process(mode: str, seed: int, request: ModeRequest) -> list[Result] | Check:
    """Run the same in a process with MIOpen's find mode set, and torch's search for kernels switched on.

    Args:
        mode: name of a find mode.
        seed: seed of the random numbers.
    """
    value = FIND_MODES[mode.removeprefix("find mode ")]
    limit, kept = request.seconds, found_bytes()
    if limit < LEAST_SECONDS:
        return without_time(mode, request)
    argv = [sys.executable, "-m", MODULE, "--expect", request.expect, "--results", str(seed)]
    outcome = run_limited(argv, seconds=limit, env={**os.environ, "MIOPEN_FIND_MODE": value})
    if outcome.timed_out and (more := found_bytes() - kept) > 0:
        searching = f"it was still searching after {limit:.3g} s, as a first use does, and kept {more / 1024:.0f} KiB"
        return not_applicable(mode, f"{searching} that the next run begins with")
    if outcome.timed_out or outcome.returncode != 0:
        sys.stderr.write(outcome.stderr)
        how = f"no end within {limit:.3g} s" if outcome.timed_out else outcome.signal_name or outcome.returncode
        return Check(name=mode, status="fail", detail=f"MIOPEN_FIND_MODE={value}: {how}")
    return [Result(**{**each, "errors": tuple(each["errors"])}) for each in json.loads(outcome.stdout)]


def without_time(mode: str, request: ModeRequest) -> Check:
    """Return the check of a mode for which no time was left: a failed one, unless MIOpen compiled meanwhile.

    Args:
        mode: name of a find mode.
    """
    if request.first_use:
        return not_applicable(mode, "no time was left: a first use compiles for minutes, and the next run is faster")
    return Check(name=mode, status="fail", detail="no time was left, and MIOpen kept nothing new that would explain it")


def found_bytes(environment: Mapping[str, str] = os.environ) -> int:
    """Return the bytes of what MIOpen found and compiled so far, in the folders that it keeps it in.

    Folders: ROCm/MIOpen docs/conceptual/cache.rst and perfdb.rst. That they grow while it
    searches and not while it hangs is an assumption: it was measured on no card.

    Args:
        environment: variables of the process by name.
    """
    home = Path(environment.get("HOME") or "/")
    folders = {
        Path(environment.get("MIOPEN_USER_DB_PATH") or home / ".config/miopen"),
        Path(environment.get("MIOPEN_CUSTOM_CACHE_DIR") or home / ".cache/miopen"),
    }
    sizes = 0
    for path in (path for folder in folders for path in folder.rglob("*")):
        with contextlib.suppress(OSError):  # MIOpen moves its files while it works
            sizes += path.stat().st_size if path.is_file() else 0
    return sizes


def every(shapes: Sequence[Shape], device: Device, seed: int) -> list[Result]:
    """Convolve each shape in each dtype that is trained in on this kind of device.

    Args:
        shapes: shapes to convolve.
        seed: seed of the random numbers.
    """
    return [one(shape, dtype, device, seed) for shape, dtype in itertools.product(shapes, placement.dtypes(device))]


def one(shape: Shape, dtype: str, device: Device, seed: int) -> Result:
    """Convolve fresh random numbers forward and backward and compare with fp64 on the CPU.

    Args:
        dtype: number format, such as "bf16".
        seed: seed of the random numbers.
    """
    import torch

    generator = torch.Generator().manual_seed(seed)
    x, w = (torch.randn(size, generator=generator).to(getattr(torch, dtype)) for size in (shape.x, shape.w))
    upstream = torch.randn(convolve(x, w, shape).shape, generator=generator).to(x.dtype)
    reset_peak(device)
    there = [in_layout(tensor.to(device.torch_type), shape) for tensor in (x, w, upstream)]
    before = allocated(device)
    found = parts(there, shape)
    extra = peak(device) - before - sum(tensor.numel() * tensor.element_size() for tensor in found)
    right = parts([tensor.double() for tensor in (x, w, upstream)], shape)
    return Result(
        shape=shape.name,
        dtype=dtype,
        errors=tuple(numerics.error(f, r) for f, r in zip(found, right, strict=True)),
        not_finite=sum(int((~tensor.isfinite()).sum()) for tensor in found),
        workspace_bytes=max(0, extra),
    )


def parts(tensors: Sequence[torch.Tensor], shape: Shape) -> list[torch.Tensor]:
    """Return PARTS for x, w and the gradient of the output."""
    import torch

    x, w = (tensor.detach().clone().requires_grad_() for tensor in tensors[:2])
    output = convolve(x, w, shape)
    return [output.detach(), *torch.autograd.grad(output, (x, w), tensors[2])]


def convolve(x: torch.Tensor, w: torch.Tensor, shape: Shape) -> torch.Tensor:
    """Convolve once.

    Args:
        x: shape (rows, channels, height, width).
        w: shape (channels out, channels in, height, width).
    """
    import torch

    function = torch.nn.functional.conv1d if x.dim() == 3 else torch.nn.functional.conv2d
    return function(x, w, stride=shape.stride, padding=shape.padding, groups=shape.groups)


def in_layout(tensor: torch.Tensor, shape: Shape) -> torch.Tensor:
    """Return the tensor with its channels last in memory, where the shape requires it."""
    import torch

    return tensor.to(memory_format=torch.channels_last) if shape.channels_last else tensor


def judge(mode: str, results: Sequence[Result]) -> list[Check]:
    """Check each dtype and part on the worst shape, and that everything is finite."""
    checks = []
    for dtype, (number, part) in itertools.product(LIMITS, enumerate(PARTS)):
        group = [result for result in results if result.dtype == dtype]
        if group:
            error = numerics.worst(result.errors[number] for result in group)
            shape = next(result.shape for result in group if result.errors[number] is error)
            checks.append(at_most(f"{mode} {dtype} {part}", error, LIMITS[dtype], ERROR_UNIT, f"worst: {shape}"))
    holes = sum(result.not_finite for result in results)
    return [*checks, at_most(f"{mode} not finite", holes, 0, "elements")]


def workspace_numbers(results: Sequence[Result], device: Device) -> list[Number]:
    """Return the most memory that one convolution took in addition to its tensors; unknown on a CPU."""
    if device.kind == "cpu":
        return []
    most = max(result.workspace_bytes for result in results)
    return [Number(name="largest workspace", value=round(most / MIB, 3), unit="MiB")]


def reset_peak(device: Device) -> None:
    """Begin to look for the peak of allocated memory."""
    import torch

    if device.kind != "cpu":
        torch.cuda.reset_peak_memory_stats()


def allocated(device: Device) -> int:
    """Return the bytes that tensors hold on the card; 0 on a CPU."""
    import torch

    return 0 if device.kind == "cpu" else torch.cuda.memory_allocated()


def peak(device: Device) -> int:
    """Return the most bytes since `reset_peak`; 0 on a CPU."""
    import torch

    return 0 if device.kind == "cpu" else torch.cuda.max_memory_allocated()


def print_results(expect: str, seed: int) -> int:
    """Run a few convolutions, as a mode's process does, and print their results as JSON."""
    import torch

    answer = entry.claim_stdout()
    numerics.strict_fp32()
    torch.backends.cudnn.benchmark = True
    found: list[dict[str, Any]] = [asdict(result) for result in every(FEW, placement.place(expect), seed)]
    print(json.dumps(found), file=answer, flush=True)
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the probe, or with `--results SEED` one mode's part of it."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--results", type=int)
    own, rest = parser.parse_known_args(argv)
    if own.results is None:
        return entry.main("conv", measure, rest)
    return print_results(entry.parse_request(rest).expect, own.results)


if __name__ == "__main__":
    sys.exit(main())
