"""Probe `attention`: each kernel of scaled_dot_product_attention agrees with fp64, forward and backward.

Causal, padded and plain; outputs and gradients are scanned for NaN. Memory is poisoned with NaN beforehand, so
that a kernel that reads what it never wrote shows. The reference is attention by its definition, on the CPU.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainer.diagnostics.probes import entry, numerics, placement
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.verdict import Check, Device, Number, Verdict, at_most, conclude, not_applicable

if TYPE_CHECKING:
    import torch

KERNELS = {"math": "MATH", "efficient": "EFFICIENT_ATTENTION", "flash": "FLASH_ATTENTION"}
MASKS = ("plain", "causal", "padded")
SHAPES = ((2, 4, 128, 64), (1, 2, 77, 128), (2, 3, 200, 32))  # batch, heads, length, width
PARTS = ("output", "query gradient", "key gradient", "value gradient")
# Relative Frobenius error. Rounding the output alone costs 2e-4 in fp16 and 2e-3 in bf16; a gradient adds a few
# rounded products; a wrong mask or scale errs by more than 0.1.
LIMITS = {"float32": 1e-4, "float16": 5e-3, "bfloat16": 3e-2}
ERROR_UNIT = "relative error, of the norm or of the worst element"
POISON_BYTES = 1 << 26


@dataclass(frozen=True, kw_only=True)
class Case:
    """One call to measure."""

    dtype: str
    mask: str
    shape: tuple[int, int, int, int]


@dataclass(frozen=True, kw_only=True)
class Result:
    """The errors of PARTS, and how many of their elements are not finite."""

    case: Case
    errors: tuple[float, ...]
    not_finite: int


def measure(request: Request) -> Verdict:
    """Try each kernel on each case; the math kernel must run, the others may refuse with a reason.

    Raises:
        NoDeviceError: the expected kind of card is not there.
    """
    device, seed = placement.place(request.expect), numerics.fresh_seed()
    numerics.strict_fp32()
    poison(device)
    checks: list[Check] = []
    numbers = [Number(name="seed", value=seed, unit="")]
    for kernel in KERNELS:
        found = kernel_checks(kernel, device, seed)
        checks += found
        numbers += kernel_numbers(kernel, found)
    return conclude(
        probe="attention",
        summary=summarise(device, checks),
        checks=checks,
        numbers=numbers,
        device=device,
        versions=placement.versions(),
    )


def summarise(device: Device, checks: Sequence[Check]) -> str:
    """Return one sentence on which kernels ran."""
    ran = [kernel for kernel in KERNELS if any(c.name.startswith(kernel) and c.status == "pass" for c in checks)]
    where = f"{device.name} ({device.arch})" if device.kind != "cpu" else "the CPU; no card was tried"
    return f"Attention by {', '.join(ran)} agrees with fp64, forward and backward, on {where}."


def dtypes(device: Device) -> tuple[str, ...]:
    """Return the dtypes that are trained in on this kind of device."""
    return placement.dtypes(device)


def kernel_checks(kernel: str, device: Device, seed: int) -> list[Check]:
    """Return one check a dtype, mask and part on the worst shape, and one on NaN; a kernel's refusal has its reason.

    Args:
        kernel: one of KERNELS.
        seed: seed of the random numbers.
    """
    checks = []
    for dtype, mask in itertools.product(dtypes(device), MASKS):
        cases = [Case(dtype=dtype, mask=mask, shape=shape) for shape in SHAPES]
        name = f"{kernel} {dtype} {mask}"
        results = [attempt(kernel, case, device, seed) for case in cases]
        ran = [result for result in results if isinstance(result, Result)]
        refusals = [result for result in results if isinstance(result, str)]
        checks += judge(name, ran, LIMITS[dtype]) if ran else [refused(name, kernel, refusals[0])]
    return checks


def refused(name: str, kernel: str, reason: str) -> Check:
    """Return the check of a case without a kernel: a fused one may lack it, the math kernel, plain torch, may not.

    Args:
        name: what is checked, as the verdict lists it, such as "flash fp16 causal".
        kernel: a key of KERNELS: math, efficient or flash.
        reason: text of torch's refusal; it becomes the check's detail.
    """
    if kernel == "math":
        return Check(name=name, status="fail", detail=reason)
    return not_applicable(name, f"refused: {reason}")


def attempt(kernel: str, case: Case, device: Device, seed: int) -> Result | str:
    """Run one case, or return why the kernel refuses it. Only a refusal to start is one: what fails later is an error.

    Args:
        kernel: a key of KERNELS: math, efficient or flash.
        seed: seed of the random numbers.
    """
    inputs = draw(case, seed)
    if reason := refusal(kernel, case, device):
        return reason
    found = results(kernel, [tensor.to(device.torch_type) for tensor in inputs], case)
    right = exact([tensor.double() for tensor in inputs], case)
    errors = tuple(numerics.error(f, r) for f, r in zip(found, right, strict=True))
    holes = sum(int((~tensor.isfinite()).sum()) for tensor in found)
    return Result(case=case, errors=errors, not_finite=holes)


def refusal(kernel: str, case: Case, device: Device) -> str:
    """Return why torch has no such kernel for the case here, empty if it has; asked with a forward alone.

    Args:
        kernel: a key of KERNELS: math, efficient or flash.
    """
    import torch

    q, k, v = (tensor.to(device.torch_type) for tensor in draw(case, 0)[:3])
    try:
        with torch.no_grad():
            attend(kernel, q, k, v, case)
    except RuntimeError as error:
        text = str(error).strip().splitlines()[0]
        if "No available kernel" in text or "no kernel" in text.lower() or "No viable backend" in text:
            return text
        raise
    return ""


def draw(case: Case, seed: int) -> list[torch.Tensor]:
    """Return queries, keys, values and the gradient of the output, rounded to the dtype, on the CPU."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    dtype: torch.dtype = getattr(torch, case.dtype)
    return [torch.randn(case.shape, generator=generator).to(dtype) for _ in range(4)]


def results(kernel: str, inputs: Sequence[torch.Tensor], case: Case) -> list[torch.Tensor]:
    """Return PARTS by one kernel.

    Args:
        kernel: a key of KERNELS: math, efficient or flash.
        inputs: q, k, v and the gradient of the output.
    """
    import torch

    *leaves, upstream = inputs
    leaves = [tensor.detach().clone().requires_grad_() for tensor in leaves]
    output = attend(kernel, leaves[0], leaves[1], leaves[2], case)
    return [output.detach(), *torch.autograd.grad(output, leaves, upstream)]


def attend(kernel: str, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, case: Case) -> torch.Tensor:
    """Call scaled_dot_product_attention once with no other kernel allowed.

    Args:
        kernel: a key of KERNELS: math, efficient or flash.
        q: queries, shape (batch, heads, tokens, width).
        k: keys, shape (batch, heads, tokens, width).
        v: values, shape (batch, heads, tokens, width).
    """
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    settings: dict[str, Any] = {"is_causal": case.mask == "causal"}
    if case.mask == "padded":
        settings["attn_mask"] = allowed(case).to(q.device)
    with sdpa_kernel(getattr(SDPBackend, KERNELS[kernel])):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, **settings)


def allowed(case: Case) -> torch.Tensor:
    """Return which keys a query may see, (batch, 1, query, key): causal, or the keys within each sequence's length."""
    import torch

    batch, _, length, _ = case.shape
    if case.mask == "causal":
        return torch.ones(batch, 1, length, length, dtype=torch.bool).tril()
    seen = torch.full((batch,), length) if case.mask == "plain" else length - (torch.arange(batch) + 1) * length // 4
    keys = torch.arange(length) < seen[:, None]  # (batch, key)
    return keys[:, None, None, :].expand(batch, 1, length, length)


def exact(inputs: Sequence[torch.Tensor], case: Case) -> list[torch.Tensor]:
    """Return PARTS in fp64 by the definition: softmax(q k^T / sqrt(width)) v over the allowed keys."""
    import torch

    q, k, v = (tensor.clone().requires_grad_() for tensor in inputs[:3])
    scores = q @ k.transpose(-2, -1) / math.sqrt(case.shape[-1])  # (batch, heads, query, key)
    output = scores.masked_fill(~allowed(case), -math.inf).softmax(dim=-1) @ v
    return [output.detach(), *torch.autograd.grad(output, (q, k, v), inputs[3])]


def judge(name: str, ran: Sequence[Result], limit: float) -> list[Check]:
    """Check the worst error of each part, and that everything is finite.

    Args:
        name: name of the checks.
        ran: result of each case.
        limit: largest accepted relative error.
    """
    checks = []
    for number, part in enumerate(PARTS):
        error = numerics.worst(result.errors[number] for result in ran)
        shape = next(result.case.shape for result in ran if result.errors[number] is error)
        checks.append(at_most(f"{name} {part}", error, limit, ERROR_UNIT, f"worst: {shape} of {len(ran)} shapes"))
    holes = sum(result.not_finite for result in ran)
    return [*checks, at_most(f"{name} not finite", holes, 0, "elements")]


def kernel_numbers(kernel: str, checks: Sequence[Check]) -> list[Number]:
    """Return the kernel's largest error."""
    errors = [float(c.measured) for c in checks if c.unit == ERROR_UNIT and c.measured is not None]
    return [Number(name=f"worst {kernel}", value=numerics.worst(errors), unit=ERROR_UNIT)] if errors else []


def poison(device: Device) -> None:
    """Fill memory that kernels will be given with NaN: torch's allocator keeps what is freed here."""
    import torch

    if device.kind != "cpu":
        torch.full((POISON_BYTES // 4,), math.nan, device=device.torch_type)


if __name__ == "__main__":
    sys.exit(entry.main("attention", measure))
