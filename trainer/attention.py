"""Which attention kernel to use on this card: the fastest whose output and gradients are right, found by running it.

Fused kernels have returned NaN or wrong gradients on some cards and data types (on RDNA among others), without an
error. So each is compared with attention written out in fp64, on shapes like those that will be used.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from trainer.errors import TrainerError

KERNELS = {
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "math": SDPBackend.MATH,
}
CHOICES = ("auto", *KERNELS)
# Relative Frobenius error against fp64 with inputs rounded beforehand. One rounding of the output alone costs 2e-3 in
# bf16 and 2e-4 in fp16; gradients add a few products, each rounded. A wrong mask or scale errs by more than 0.1.
LIMITS = {torch.float64: 1e-12, torch.float32: 1e-4, torch.float16: 5e-3, torch.bfloat16: 3e-2}
ROUNDS = 5

Attention = Callable[[Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What attention is called with: (batch, heads, length, width) for queries, keys and values."""

    batch: int = 2
    heads: int = 4
    length: int = 128
    width: int = 64
    causal: bool = True


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One kernel on this card: its largest relative error over output and gradients, its seconds, why not if not."""

    kernel: str
    error: float
    seconds: float
    refused: str = ""


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """The kernel to use, why, and what each was found to be."""

    kernel: str
    reason: str
    findings: tuple[Finding, ...]

    @contextlib.contextmanager
    def applied(self) -> Iterator[None]:
        """Within the block scaled_dot_product_attention uses this kernel; backward uses the forward's."""
        with sdpa_kernel(KERNELS[self.kernel]):
            yield


def choose_attention(
    requested: str, *, device: str, dtype: torch.dtype, shape: Shape | None = None, seed: int = 0
) -> Chosen:
    """Return the fastest kernel that is right, or the one that was asked for if it is right.

    Raises:
        TrainerError: RM566 where the kernel that was asked for, or every one, is wrong or refuses.
    """
    shape = shape or Shape()
    names = list(KERNELS) if requested == "auto" else [requested]
    findings = tuple(examine(name, device=device, dtype=dtype, shape=shape, seed=seed) for name in names)
    return choose_from(findings, where=f"{device}, {str(dtype).removeprefix('torch.')}, {shape}")


def choose_from(findings: Sequence[Finding], *, where: str) -> Chosen:
    """Return the fastest finding without a refusal.

    Raises:
        TrainerError: RM566 where there is none.
    """
    right = [finding for finding in findings if not finding.refused]
    told = "; ".join(words(finding) for finding in findings)
    if not right:
        raise TrainerError("RM566", what=told, where=where)
    best = min(right, key=lambda finding: finding.seconds)
    return Chosen(kernel=best.kernel, reason=f"the fastest that is right: {told}", findings=tuple(findings))


def words(finding: Finding) -> str:
    """Return a finding in words."""
    if finding.refused:
        return f"{finding.kernel} is not used: {finding.refused}"
    return f"{finding.kernel} errs by {finding.error:.1e} and takes {finding.seconds * 1e3:.2f} ms"


def examine(name: str, *, device: str, dtype: torch.dtype, shape: Shape, seed: int) -> Finding:
    """Run one kernel forward and backward against fp64 and time it; a kernel that refuses says why."""

    def fused(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        with sdpa_kernel(KERNELS[name]):
            return scaled_dot_product_attention(q, k, v, is_causal=shape.causal)

    inputs = draw(shape, device=device, dtype=dtype, seed=seed)
    try:
        error = compare(fused, inputs, causal=shape.causal)
        seconds = timed(fused, inputs)
    except RuntimeError as refusal:  # no kernel for this card, dtype or shape; running out of memory is one, too
        return Finding(kernel=name, error=math.inf, seconds=math.inf, refused=str(refusal).strip().splitlines()[0])
    limit = LIMITS[dtype]
    refused = "" if error <= limit else f"error {error:.1e} against fp64, allowed is {limit:.0e}"
    return Finding(kernel=name, error=error, seconds=seconds, refused=refused)


def draw(shape: Shape, *, device: str, dtype: torch.dtype, seed: int) -> list[Tensor]:
    """Return queries, keys, values and the gradient of the output, rounded to `dtype`; drawn on the CPU."""
    generator = torch.Generator().manual_seed(seed)
    size = (shape.batch, shape.heads, shape.length, shape.width)
    return [torch.randn(size, generator=generator).to(dtype).to(device) for _ in range(4)]


def compare(attention: Attention, inputs: Sequence[Tensor], *, causal: bool) -> float:
    """Return the largest relative error of output and of the three gradients; infinite where one is not finite."""
    found = results(attention, inputs)
    right = results(lambda q, k, v: written_out(q, k, v, causal=causal), [tensor.double().cpu() for tensor in inputs])
    errors = [relative_error(tensor, exact) for tensor, exact in zip(found, right, strict=True)]
    return max(errors) if all(map(math.isfinite, errors)) else math.inf


def results(attention: Attention, inputs: Sequence[Tensor]) -> list[Tensor]:
    """Return the output and the gradients of queries, keys and values."""
    *qkv, upstream = inputs
    leaves = [tensor.detach().clone().requires_grad_() for tensor in qkv]
    output = attention(leaves[0], leaves[1], leaves[2])
    return [output.detach(), *torch.autograd.grad(output, leaves, upstream)]


def written_out(q: Tensor, k: Tensor, v: Tensor, *, causal: bool) -> Tensor:
    """Attention by its definition: softmax(q k^T / sqrt(width)) v, a query seeing no later key where `causal`."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (batch, heads, query, key)
    if causal:
        later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(diagonal=1)
        scores = scores.masked_fill(later, -math.inf)
    return scores.softmax(dim=-1) @ v


def relative_error(found: Tensor, exact: Tensor) -> float:
    """Return the Frobenius norm of the difference over that of `exact`, in fp64 on the CPU."""
    error: float = ((found.double().cpu() - exact).norm() / exact.norm()).item()
    return error


def timed(attention: Attention, inputs: Sequence[Tensor]) -> float:
    """Return the least seconds of a forward and backward over a few rounds, after one that does not count."""
    device = inputs[0].device
    best = math.inf
    for number in range(ROUNDS + 1):
        began = time.perf_counter()
        results(attention, inputs)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        if number:
            best = min(best, time.perf_counter() - began)
    return best
