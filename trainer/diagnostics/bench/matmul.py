"""Benchmark `matmul`: TFLOP/s of matrix products by shape and number format.

fp32 is fp32 here, without tf32 and its kin. A product counts 2 m n k operations. Its first rows are compared with
fp64, for a fast wrong product is no figure.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from trainer.diagnostics.bench import timing
from trainer.diagnostics.probes import entry, numerics, placement
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.verdict import Check, Device, Number, Verdict, at_most, conclude, not_applicable

if TYPE_CHECKING:
    import torch

Shape = tuple[int, int, int]  # m, n, k: (m, k) times (k, n)

LIMITS = {"fp32": 1e-5, "bf16": 1e-2, "fp16": 1e-2}  # relative error; half formats round their results
ON_CPU: tuple[Shape, ...] = ((256, 256, 256), (1024, 1024, 1024), (4096, 256, 1024))
ON_CARD: tuple[Shape, ...] = ((1024, 1024, 1024), (4096, 4096, 4096), (8192, 8192, 8192), (16384, 1024, 1024))
ROWS = 16  # of a product that are computed again
PATIENCE = 4  # a shape is left out where its samples would take this many times its share


def measure(request: Request) -> Verdict:
    """Time every shape in every format.

    Raises:
        NoDeviceError: the expected kind of card is not there.
    """
    device = placement.place(request.expect)
    numerics.strict_fp32()
    shapes = ON_CPU if device.kind == "cpu" else ON_CARD
    share = request.seconds / (len(shapes) * len(LIMITS))
    checks: list[Check] = []
    numbers: list[Number] = []
    for precision in LIMITS:
        found = of_precision(precision, shapes, device, share)
        checks, numbers = [*checks, *found[0]], [*numbers, *found[1]]
    return conclude(
        probe="matmul",
        summary=f"Products timed {timing.place_text(device)}.",
        checks=checks,
        numbers=numbers,
        device=device,
        versions=placement.versions(),
    )


def of_precision(
    precision: str, shapes: tuple[Shape, ...], device: Device, share: float
) -> tuple[list[Check], list[Number]]:
    """Time shapes from the smallest; one that would take too long at the pace so far is left out and named.

    Args:
        precision: number format, such as "bf16".
        shapes: shapes of the products, smallest first.
        share: measuring time in seconds.
    """
    checks: list[Check] = []
    numbers: list[Number] = []
    pace = 0.0  # seconds for each operation, of the product before
    for shape in shapes:
        name = f"{precision} {'x'.join(map(str, shape))}"
        foreseen = pace * operations(shape)
        if foreseen * timing.LEAST > PATIENCE * max(share, timing.SAMPLE_SECONDS):
            checks.append(not_applicable(name, f"a product would take about {foreseen:.1g} s here"))
            continue
        check, taken = product(name, precision, shape, device, share)
        checks.append(check)
        numbers += timing.rate(name, "TFLOP/s", operations(shape) / 1e12, taken)
        pace = min(taken) / operations(shape)
    return checks, numbers


def operations(shape: Shape) -> float:
    """Return the number of multiplications and additions of one product."""
    m, n, k = shape
    return 2.0 * m * n * k


def product(name: str, precision: str, shape: Shape, device: Device, share: float) -> tuple[Check, list[float]]:
    """Check one product against fp64, and return its times in seconds.

    Args:
        name: name of the number.
        precision: number format, such as "bf16".
        share: measuring time in seconds.
    """
    import torch

    m, n, k = shape
    dtype = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[precision]
    left = torch.randn(m, k, device=device.torch_type).to(dtype)
    right = torch.randn(k, n, device=device.torch_type).to(dtype)
    result = torch.empty(m, n, device=device.torch_type, dtype=dtype)
    taken = timing.samples(lambda: torch.mm(left, right, out=result), device.torch_type, share)
    return at_most(name, error_of(result, left, right), LIMITS[precision], "relative error"), taken


def error_of(result: torch.Tensor, left: torch.Tensor, right: torch.Tensor) -> float:
    """Return the relative error of a product's first rows, shape (ROWS, n), against fp64 on the host.

    Args:
        result: shape (m, n).
        left: shape (m, k).
        right: shape (k, n).
    """
    exact = left[:ROWS].cpu().double() @ right.cpu().double()
    return numerics.relative_error(result[:ROWS], exact)


if __name__ == "__main__":
    sys.exit(entry.main("matmul", measure))
