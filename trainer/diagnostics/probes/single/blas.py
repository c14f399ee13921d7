"""Probe `blas`: matrix products agree with fp64, through each of torch's back ends and the C interface.

Inputs are drawn anew in each run and rounded to the dtype first, so that the fp64 reference has the same
inputs and only the product is judged. Outputs are poisoned with NaN beforehand: an element that the library
leaves unwritten shows.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainer.device.blas import select_back_end
from trainer.diagnostics.probes import entry, numerics, placement
from trainer.diagnostics.probes.c_api import trial
from trainer.diagnostics.probes.c_api.trial import Findings
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.placement import NoDeviceError
from trainer.diagnostics.probes.verdict import (
    Check,
    Device,
    Kind,
    Number,
    Verdict,
    at_most,
    conclude,
    explain_failure,
    judge,
    not_applicable,
)

if TYPE_CHECKING:
    import torch

# Relative Frobenius error. fp32 at these depths errs by less than 1e-6 and tf32 by 5e-4; rounding the output
# alone costs about 2e-4 in fp16 and 2e-3 in bf16, and a library may sum its partial products in the dtype.
LIMITS = {"float32": 1e-5, "float16": 2e-3, "bfloat16": 1e-2}
LAYOUTS = ("NN", "NT", "TN", "TT")
SHAPES = (  # m, n, k: square, odd, a row, a column, an outer product, a long sum, and sizes as in training
    (64, 64, 64),
    (257, 129, 65),
    (1, 513, 127),
    (513, 1, 127),
    (33, 65, 1),
    (8, 8, 1000),
    (512, 384, 1000),
)
BATCHED = ((5, 33, 47, 65), (2, 128, 64, 256), (16, 1, 64, 96))  # batch, m, n, k
SPEED_SIZE, SPEED_SIZE_CPU = 4096, 256
BACK_ENDS = {  # what torch calls each of them, and what it is
    "cuda": {"cublas": "cuBLAS", "cublaslt": "cuBLASLt"},
    "rocm": {"cublas": "hipBLAS", "cublaslt": "hipBLASLt"},
}
ERROR_UNIT = "relative error, of the norm or of the worst element"
C_INTERFACE_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class Case:
    """One product to measure: C (m, n) = A (m, k) @ B (k, n), A and B stored transposed where `layout` has T."""

    dtype: str
    layout: str
    shape: tuple[int, int, int]
    batch: int | None = None  # None: one product; else as many at once, the matrices one dimension deeper

    @property
    def group(self) -> str:
        """What its check is called: products of one dtype and layout are judged together."""
        return f"{self.dtype} {self.layout}" + ("" if self.batch is None else " batched")

    def __str__(self) -> str:
        batch = "" if self.batch is None else f"{self.batch} of "
        return f"{self.dtype} {self.layout} {batch}{'x'.join(map(str, self.shape))}"


@dataclass(frozen=True, kw_only=True)
class Result:
    """Result of a case: relative error (`numerics.error`), and how many elements of C are not finite."""

    case: Case
    error: float
    not_finite: int


def measure(request: Request) -> Verdict:
    """Try the C interface of what torch was built on, then torch's own products."""
    if not placement.has_torch():
        return without_torch(request)
    c = c_findings(request)
    try:
        device = placement.place(request.expect)
    except NoDeviceError as missing:
        return absent(missing.reason, c, missing.versions)
    return with_torch(device, c)


def with_torch(device: Device, c: Findings) -> Verdict:
    """Examine torch's products on `device` and the C interface together."""
    seed = numerics.fresh_seed()
    checks, results = torch_products(device, seed)
    speeds = speed_numbers(device) if results else []
    where = f"{device.name} ({device.arch})" if device.kind != "cpu" else "the CPU; no card was tried"
    return conclude(
        probe="blas",
        summary=f"{len(results)} matrix products agree with fp64 on {where}.",
        checks=[*checks, *c_checks(c, device)],
        numbers=[Number(name="seed", value=seed, unit=""), *worst_numbers(results), *speeds],
        device=device,
        versions=placement.versions() | c.versions,
    )


def without_torch(request: Request) -> Verdict:
    """Examine the C interface alone, for an image with ROCm's libraries and no torch.

    Raises:
        ModuleNotFoundError: the CPU was asked for, which has no C interface here.
    """
    if request.expect == "cpu":
        raise ModuleNotFoundError("no torch", name="torch")
    kind: Kind = "cuda" if request.expect == "cuda" else "rocm"
    c = trial.try_in_child(kind, c_interface_seconds(request))
    if c.no_device:
        return absent(f"No {kind} card: {c.no_device}.", c, {})
    works = judge(c.checks) == "pass"
    return conclude(
        probe="blas",
        summary="The C interface alone works; torch is not installed, so its products were not tried.",
        checks=[*c.checks, not_applicable("torch products", "torch is not installed")],
        device=Device(kind=kind, name="device 0, as the C interface counts", arch="not asked") if works else None,
        versions=c.versions,
    )


def absent(reason: str, c: Findings, versions: dict[str, str]) -> Verdict:
    """Return the verdict where there is no device: `no-device`, or that a library is broken.

    Args:
        reason: one sentence.
        c: findings of the libraries by their C interface.
        versions: versions of the libraries by name.
    """
    broken = any(check.status == "fail" for check in c.checks)
    return Verdict(
        probe="blas",
        status="fail" if broken else "no-device",
        summary=explain_failure(c.checks) if broken else reason,
        checks=c.checks,
        versions=versions | c.versions,
    )


def c_findings(request: Request) -> Findings:
    """Try the C interface where torch's build has one and the CPU was not asked for."""
    build = placement.build_kind()
    if build == "cpu":
        return untried("CPU build: no C interface to try")
    if request.expect not in ("any", build):
        return untried(f"{request.expect} was asked for, and this build's C interface is for {build}")
    return trial.try_in_child(build, c_interface_seconds(request))


def c_interface_seconds(request: Request) -> float:
    """Return the C interface's share of the time, half at most: a hang in it still leaves time for a verdict."""
    return min(C_INTERFACE_SECONDS, request.timeout_seconds / 2)


def untried(reason: str) -> Findings:
    """Return findings that give the reason why there are none."""
    return Findings(checks=(not_applicable("C interface", reason),), versions={})


def c_checks(c: Findings, device: Device) -> list[Check]:
    """Check the C interface; that it sees no device contradicts torch if torch runs on one."""
    if c.no_device is None:
        return list(c.checks)
    if device.kind == "cpu":
        return [*c.checks, not_applicable("C interface products", c.no_device)]
    return [*c.checks, Check(name="C interface sees torch's card", status="fail", detail=c.no_device)]


def torch_products(device: Device, seed: int) -> tuple[list[Check], list[Result]]:
    """Measure all cases with each back end that torch has on `device`."""
    numerics.strict_fp32()
    if device.kind == "cpu":
        results = [multiply_case(case, device, seed) for case in cases()]
        skipped = not_applicable("GPU BLAS back ends", "ran on the CPU, where torch offers no choice of them")
        return [*judge_results("CPU", results), skipped], results
    checks, everything = list[Check](), list[Result]()
    for torch_name, label in BACK_ENDS[device.kind].items():
        reason = select_back_end(torch_name)
        results = [] if reason else [multiply_case(case, device, seed) for case in cases()]
        checks += [not_applicable(label, reason)] if reason else judge_results(label, results)
        everything += results
    if not everything:  # torch before 2.4 offers no choice
        everything = [multiply_case(case, device, seed) for case in cases()]
        checks += judge_results("torch's own choice", everything)
    return checks, everything


def cases() -> list[Case]:
    """Return every dtype in every layout and shape, one product at a time and batched."""
    shapes = [(None, shape) for shape in SHAPES] + [(batch, (m, n, k)) for batch, m, n, k in BATCHED]
    products = itertools.product(LIMITS, LAYOUTS, shapes)
    return [Case(dtype=dtype, layout=layout, shape=shape, batch=batch) for dtype, layout, (batch, shape) in products]


def multiply_case(case: Case, device: Device, seed: int) -> Result:
    """Multiply fresh random matrices on `device` into a poisoned output and compare with fp64 on the CPU.

    Args:
        seed: seed of the matrices.
    """
    import torch

    m, n, k = case.shape
    batch = () if case.batch is None else (case.batch,)
    dtype: torch.dtype = getattr(torch, case.dtype)
    generator = torch.Generator().manual_seed(seed)
    a = torch.randn((*batch, m, k), generator=generator).to(dtype)
    b = torch.randn((*batch, k, n), generator=generator).to(dtype)
    out = torch.full((*batch, m, n), math.nan, dtype=dtype, device=device.torch_type)
    left, right = stored(a, case.layout[0]), stored(b, case.layout[1])
    multiply(left.to(device.torch_type), right.to(device.torch_type), out)
    error = numerics.error(out, a.double() @ b.double())
    return Result(case=case, error=error, not_finite=int((~torch.isfinite(out)).sum()))


def stored(matrix: torch.Tensor, letter: str) -> torch.Tensor:
    """Return the same matrix, laid out in memory by rows (N) or by columns (T)."""
    return matrix.mT.contiguous().mT if letter == "T" else matrix.contiguous()


def multiply(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
    """Write A (m, k) @ B (k, n) into `out` (m, n), or a batch of them.

    Args:
        a: shape (m, k), or (batch, m, k).
        b: shape (k, n), or (batch, k, n).
        out: shape (m, n), or (batch, m, n); written.
    """
    import torch

    if a.dim() == 3:
        torch.bmm(a, b, out=out)
    else:
        torch.mm(a, b, out=out)


def judge_results(label: str, results: Sequence[Result]) -> list[Check]:
    """Return one check a dtype and layout, batched or not, on the worst shape; one that all is written and finite."""
    checks = []
    for name in dict.fromkeys(result.case.group for result in results):
        group = [result for result in results if result.case.group == name]
        error = numerics.worst(result.error for result in group)
        limit = LIMITS[group[0].case.dtype]
        checks.append(at_most(f"{label} {name}", error, limit, ERROR_UNIT, worst_case(group)))
    holes = sum(result.not_finite for result in results)
    return [*checks, at_most(f"{label} unwritten or not finite", holes, 0, "elements")]


def worst_case(group: Sequence[Result]) -> str:
    """Name the shape with the largest error."""
    error = numerics.worst(result.error for result in group)
    return next(f"worst: {result.case}" for result in group if result.error is error)


def worst_numbers(results: Sequence[Result]) -> list[Number]:
    """Return the worst error of each dtype over all back ends, layouts and shapes."""
    errors = {dtype: [r.error for r in results if r.case.dtype == dtype] for dtype in LIMITS}
    return [
        Number(name=f"worst {dtype}", value=numerics.worst(each), unit=ERROR_UNIT)
        for dtype, each in errors.items()
        if each
    ]


def speed_numbers(device: Device) -> list[Number]:
    """Return the speed of one large product in each dtype by the back end chosen last; of a CPU, of a small one."""
    import torch

    size = SPEED_SIZE_CPU if device.kind == "cpu" else SPEED_SIZE
    numbers = []
    for dtype in LIMITS:
        a, b = (torch.randn(size, size, device=device.torch_type).to(getattr(torch, dtype)) for _ in range(2))
        seconds = numerics.best_seconds(lambda a=a, b=b: a @ b, device.torch_type)  # type: ignore[misc]
        speed = round(2 * size**3 / seconds / 1e12, 4)
        numbers.append(Number(name=f"{dtype} {size}x{size}x{size}", value=speed, unit="TFLOP/s"))
    return numbers


if __name__ == "__main__":
    sys.exit(entry.main("blas", measure))
