"""Choice of the attention kernel on this card: the first whose output and gradients are right, found by running it.

Fused kernels have returned NaN or wrong gradients on some cards and data types (on RDNA among others), without an
error. So each is compared with attention written out in fp64, on shapes like those that will be used. The order is
fixed, flash before efficient before math: times vary, and the same command is to give the same bits.
"""

from __future__ import annotations

import importlib.util
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from trainer.config.choices import ATTENTION_KERNELS as KERNELS
from trainer.device.precision import DTYPES, Precision
from trainer.distributed.collectives import Ranks
from trainer.models.kernels import only
from trainer.models.transformer import use_kernel
from trainer.runtime.errors import TrainerError
from trainer.runtime.events import emit, say
from trainer.tasks.task import AttentionShape

SINCE = "2.3"  # torch.nn.attention
MOST_SCORES = 2**21  # of the trial's attention weights: 16 MiB in fp64
# Relative Frobenius error against fp64 with inputs rounded beforehand. One rounding of the output alone costs 2e-3 in
# bf16 and 2e-4 in fp16; gradients add a few products, each rounded. A wrong mask or scale errs by more than 0.1.
LIMITS = {torch.float64: 1e-12, torch.float32: 1e-4, torch.float16: 5e-3, torch.bfloat16: 3e-2}
ROUNDS = 5
ASK_FOR_NONE = "Use --attention auto, which takes the first kernel that is right."
FASTER = 1.5  # from here on a kernel that is not used is named for its speed

Attention = Callable[[Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Shape of attention's inputs: (batch, heads, length, width) for queries, keys and values."""

    batch: int = 2
    heads: int = 4
    length: int = 128
    width: int = 64
    causal: bool = True


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One kernel on this card: its largest relative error over output and gradients, its seconds, why not if not.

    `wrong` is true where it computed something else, false where it is absent; the latter has infinite error and time.
    """

    kernel: str
    error: float
    seconds: float
    refused: str = ""
    wrong: bool = False

    def facts(self) -> dict[str, Any]:
        """Return the fields as JSON holds them: null for what is not finite."""
        numbers = {name: getattr(self, name) for name in ("error", "seconds")}
        finite = {name: value if math.isfinite(value) else None for name, value in numbers.items()}
        return {"kernel": self.kernel, **finite, "refused": self.refused, "wrong": self.wrong}


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """The kernel to use, why, and what each was found to be, on the worst of the ranks."""

    kernel: str
    reason: str
    findings: tuple[Finding, ...]

    def facts(self) -> dict[str, Any]:
        """Return what metadata and log state."""
        return {"kernel": self.kernel, "reason": self.reason, "findings": [each.facts() for each in self.findings]}


def choose_attention(
    requested: str,
    *,
    device: str,
    dtype: torch.dtype,
    shape: Shape | None = None,
    seed: int = 0,
    ranks: Ranks | None = None,
) -> Chosen:
    """Return the first kernel that is right on all ranks, or the one that was asked for if it is right; a collective.

    Args:
        requested: value of `--attention`: a kernel's name, or auto.
        device: name of the device, such as "cuda:0".
        dtype: type of queries, keys and values.
        seed: seed of the random numbers.

    Raises:
        TrainerError: RM566 where the kernel that was asked for, or every one, is wrong or refuses, RM562 where this
            torch offers no choice of kernel.
    """
    require_kernels()
    shape, ranks = shape or Shape(), ranks or Ranks()
    names = KERNELS if requested == "auto" else (requested,)
    own = [examine(name, device=device, dtype=dtype, shape=shape, seed=seed) for name in names]
    findings = [worst(listed) for listed in zip(*ranks.gather(own), strict=True)]
    where = f"{device}, {str(dtype).removeprefix('torch.')}, {shape}"
    if requested == "auto":
        return choose_from(findings, where=where)
    return choose_from(findings, where=where, why="asked for", remedy=ASK_FOR_NONE)


def attend(
    model: nn.Module,
    attention: AttentionShape | None,
    requested: str = "auto",
    *,
    rows: int,
    device: str,
    precision: Precision,
    ranks: Ranks,
    before: str | None = None,
) -> Chosen | None:
    """Choose the kernel of a model with attention, use it, and report it; None for a model without. A collective.

    `before` is the kernel that an unfinished run was begun with: `auto` keeps it, for its bits, as long as it is right.

    Args:
        model: network whose attention is set.
        requested: value of `--attention`: a kernel's name, or auto.
        rows: rows of a micro-batch.
        device: name of the device, such as "cuda:0".
        before: kernel that an unfinished run was begun with; None for a new run.

    Raises:
        TrainerError: RM562 and RM566 as `choose_attention` does.
    """
    if attention is None:
        return None
    how: dict[str, Any] = {"device": device, "dtype": DTYPES[precision.name], "ranks": ranks}
    how["shape"] = shape_of(attention, rows)
    tried = before if before and requested == "auto" else requested
    try:
        chosen = choose_attention(tried, **how)
    except TrainerError:
        if tried == requested:
            raise
        chosen = choose_attention("auto", **how)
    use_kernel(model, chosen.kernel)
    if ranks.is_main:
        report(chosen, device, before)
    return chosen


def shape_of(attention: AttentionShape, rows: int) -> Shape:
    """Return the shape of the run's own attention, with fewer rows where fp64 on the host would take long."""
    most = max(1, MOST_SCORES // (attention.heads * attention.length**2))
    return Shape(batch=min(rows, most), **vars(attention))


def report(chosen: Chosen, device: str, before: str | None) -> None:
    """Report which kernel is used and why; as a warning where one computes wrong values, or a resumed run has another.

    Args:
        device: name of the device, such as "cuda:0".
        before: kernel that an unfinished run was begun with; None for a new run.
    """
    emit("attention", **chosen.facts())
    for finding in chosen.findings:
        if finding.wrong:
            emit("attention_wrong", code="RM558", kernel=finding.kernel, device=device, reason=finding.refused)
            say(f"RM558 attention kernel {finding.kernel} is wrong on {device} and not used: {finding.refused}")
    if before not in (None, chosen.kernel):
        emit("rounding_changes", changes=[f"attention {before} is now {chosen.kernel}"])
        say(f"resume  results will not be bit-identical to the original run: attention {before} is now {chosen.kernel}")
    say(f"attention {chosen.kernel}: {chosen.reason}")


def require_kernels() -> None:
    """Raise RM562 in a torch whose attention offers no choice of kernel."""
    if importlib.util.find_spec("torch.nn.attention") is None:
        what = f"attention by a kernel of one's choice needs torch {SINCE} or later, this is {torch.__version__}"
        raise TrainerError("RM562", what=what, next="Use --network mlp or residual, or a cell with a later torch.")


def worst(found: Sequence[Finding]) -> Finding:
    """Return one kernel's finding over all ranks: wrong on one is wrong, and the slowest counts."""
    return max(found, key=lambda one: (one.wrong, bool(one.refused), one.seconds))


def choose_from(
    findings: Sequence[Finding], *, where: str, why: str = "the first that is right", remedy: str = ""
) -> Chosen:
    """Return the first finding without a refusal.

    Args:
        findings: findings in order of preference.
        where: device and shape, for the message.
        why: reason that is recorded for the choice.
        remedy: next step for the message; empty for the catalog's.

    Raises:
        TrainerError: RM566 where there is none, with `remedy` or the catalog's next step.
    """
    listed = "; ".join(described(finding) for finding in findings)
    right = [finding for finding in findings if not finding.refused]
    if not right:
        raise TrainerError("RM566", what=listed, where=where, next=remedy)
    first, fastest = right[0], min(right, key=lambda finding: finding.seconds)
    reason = f"{why}: {listed}"
    if first.seconds > FASTER * fastest.seconds:
        name, times = fastest.kernel, first.seconds / fastest.seconds
        reason += f"; {name} was {times:.1f} times as fast in this trial, --attention {name} takes it"
    return Chosen(kernel=first.kernel, reason=reason, findings=tuple(findings))


def described(finding: Finding) -> str:
    """Return a finding as text."""
    if finding.refused:
        return f"{finding.kernel} is not used: {finding.refused}"
    return f"{finding.kernel} errs by {finding.error:.1e} and takes {finding.seconds * 1e3:.2f} ms"


def examine(name: str, *, device: str, dtype: torch.dtype, shape: Shape, seed: int) -> Finding:
    """Run one kernel forward and backward against fp64 and time it; a kernel that refuses gives its reason.

    Args:
        name: name of the kernel.
        device: name of the device, such as "cuda:0".
        dtype: type of queries, keys and values.
        seed: seed of the random numbers.
    """

    def fused(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        with only(name):
            return scaled_dot_product_attention(q, k, v, is_causal=shape.causal)

    inputs = draw(shape, device=device, dtype=dtype, seed=seed)
    try:
        error = compare(fused, inputs, causal=shape.causal)
        seconds = timed(fused, inputs)
    except RuntimeError as refusal:  # no kernel for this card, dtype or shape; running out of memory is one, too
        return Finding(kernel=name, error=math.inf, seconds=math.inf, refused=reason_of(refusal))
    limit = LIMITS[dtype]
    refused = "" if error <= limit else f"error {error:.1e} against fp64, allowed is {limit:.0e}"
    return Finding(kernel=name, error=error, seconds=seconds, refused=refused, wrong=bool(refused))


def reason_of(refusal: RuntimeError) -> str:
    """Return torch's first line without its claim that all kernels are turned off: the trial leaves one on."""
    return str(refusal).strip().splitlines()[0].partition(" This is likely due to turning off")[0]


def draw(shape: Shape, *, device: str, dtype: torch.dtype, seed: int) -> list[Tensor]:
    """Return queries, keys, values and the gradient of the output, rounded to `dtype`; drawn on the CPU.

    Args:
        device: name of the device, such as "cuda:0".
        dtype: type of the tensors.
        seed: seed of the random numbers.
    """
    generator = torch.Generator().manual_seed(seed)
    size = (shape.batch, shape.heads, shape.length, shape.width)
    return [torch.randn(size, generator=generator).to(dtype).to(device) for _ in range(4)]


def compare(attention: Attention, inputs: Sequence[Tensor], *, causal: bool) -> float:
    """Return the largest relative error of output and of the three gradients; infinite where one is not finite.

    Args:
        inputs: queries, keys, values and the gradient of the output.
        causal: a query sees no later key.
    """
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
    """Attention by its definition: softmax(q k^T / sqrt(width)) v, a query seeing no later key where `causal`.

    Args:
        q: queries, shape (rows, heads, tokens, width).
        k: keys, shape (rows, heads, tokens, width).
        v: values, shape (rows, heads, tokens, width).
        causal: a query sees no later key.
    """
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
