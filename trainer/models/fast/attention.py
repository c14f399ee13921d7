"""Which attention kernel a decoder uses: the fastest of those whose output and gradients are right on this card."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from trainer.models.decoder.config import AttentionConfig
from trainer.models.fast.proof import Choice, Trial, fastest, first_line, judged, reason, relative_error, seconds_of
from trainer.models.kernels import only

KERNELS = ("flash", "cudnn", "efficient", "math")  # the order decides where times are alike
# Attention is a small part of a step, and copies of keys and values for each query head are held from forward to
# backward in every layer: a kernel that needs them is used where it is faster by this factor.
WITH_COPIES = 1.25
MOST_LENGTH = 2048  # of the comparison with fp64, whose scores grow with its square
MOST_SCORES = 2**28  # of the timing of the kernel that holds all scores
TIMED = 2**13  # tokens of the timing at least: of fewer the launches are timed, and the choice was left to chance


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """Causal attention by one of torch's kernels; `grouped`: it takes fewer key heads than query heads as they are."""

    name: str
    grouped: bool = False

    @property
    def label(self) -> str:
        """The name for records."""
        return f"{self.name}, grouped" if self.grouped else self.name

    def __call__(self, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        """Return (rows, heads, tokens, width)."""
        groups = query.shape[1] // key.shape[1]
        more: dict[str, Any] = {"enable_gqa": True} if self.grouped and groups > 1 else {}
        if groups > 1 and not self.grouped:
            key, value = key.repeat_interleave(groups, dim=1), value.repeat_interleave(groups, dim=1)
        with only(self.name):
            return scaled_dot_product_attention(query, key, value, is_causal=True, scale=scale, **more)


@dataclass(frozen=True, kw_only=True)
class Call:
    """What attention is called with in training, for the trials."""

    config: AttentionConfig
    scale: float
    rows: int
    tokens: int
    device: torch.device
    dtype: torch.dtype

    @property
    def small(self) -> Call:
        """One key head with its query heads, of one row: exact attention of it fits on the host."""
        groups = self.config.heads // self.config.kv_heads
        heads = replace(self.config, heads=max(groups, 2), kv_heads=1 if groups > 1 else 2)
        return replace(self, config=heads, rows=1, tokens=min(self.tokens, MOST_LENGTH))


def choose(
    call: Call, only_name: str | None = None, refused: Mapping[str, str] | None = None
) -> tuple[Kernel | None, Choice]:
    """Return the kernel and the choice; no kernel where all are wrong or refuse.

    Args:
        only_name: the label of the one kernel to try, of an unfinished run.
        refused: kernels by name that are not to be tried, and why; None for none.
    """
    grouped = call.config.heads != call.config.kv_heads
    kernels = [Kernel(name=name, grouped=form) for name in KERNELS for form in ((True, False) if grouped else (False,))]
    selected = [kernel for kernel in kernels if only_name in (None, kernel.label)]
    exact = results(partial(written_out, scale=call.scale), [each.double().cpu() for each in drawn(call.small)])
    trials = _tried(selected, call, exact, refused or {})
    kernel = leanest(selected, trials)
    if kernel is None:
        return None, Choice(name="torch's choice", why=reason(trials), trials=tuple(trials))
    scores = "" if kernel.name == "math" else " and holds no scores"
    why = f"the fastest that is right{scores}: {reason(trials)}"
    return kernel, Choice(name=kernel.label, why=why, trials=tuple(trials))


def _tried(kernels: Sequence[Kernel], call: Call, exact: Sequence[Tensor], against: Mapping[str, str]) -> list[Trial]:
    """Return the trials; math is timed only where nothing else is right.

    All scores of the timing took 4 GiB, more than the steps of a run with full checkpointing did, and no time makes
    math the choice next to a kernel without them.
    """
    trials: list[Trial] = []
    for kernel in kernels:
        if kernel.name in against:
            trials.append(Trial(name=kernel.label, refused=against[kernel.name]))
            continue
        fused = any(not trial.refused for one, trial in zip(kernels, trials, strict=False) if one.name != "math")
        trials.append(examined(kernel, call, exact, timed=kernel.name != "math" or not fused))
    return trials


def leanest(kernels: Sequence[Kernel], trials: Sequence[Trial]) -> Kernel | None:
    """Return the fastest kernel that is right, of those that hold least; None where none is right.

    math holds scores, (rows, heads, tokens, tokens) in every layer: it is used where nothing else is right. Next come
    kernels that need copies of keys and values.

    Args:
        kernels: what was tried.
        trials: their trials, in the same order.
    """
    both = list(zip(kernels, trials, strict=True))
    fused = [pair for pair in both if pair[0].name != "math" and not pair[1].refused]
    bests = [fastest([trial for kernel, trial in fused or both if kernel.grouped == form]) for form in (True, False)]
    best = fastest([each for each in bests if each is not None], by=WITH_COPIES)
    return next((kernel for kernel, trial in both if trial is best), None)


def examined(kernel: Kernel, call: Call, exact: Sequence[Tensor], *, timed: bool = True) -> Trial:
    """Compare one kernel with fp64 on the small call, and time it on the whole one.

    Args:
        exact: output and gradients of the small call in fp64 on the host, in the order of `results`.
        timed: False leaves the timing out.
    """
    work = partial(kernel, scale=call.scale)
    try:
        found = judged(kernel.label, relative_error(results(work, drawn(call.small)), exact), call.dtype)
        if found.refused or not timed:
            return found
        rows = _rows(kernel, call)
        inputs = drawn(replace(call, rows=rows))
        return replace(found, seconds=seconds_of(lambda: results(work, inputs), call.device) * call.rows / rows)
    except (RuntimeError, ImportError, TypeError, AttributeError) as refusal:  # no such kernel for card, dtype or torch
        return Trial(name=kernel.label, refused=first_line(refusal).partition(" This is likely due to turning off")[0])


def _rows(kernel: Kernel, call: Call) -> int:
    """Return the rows of the timing: at least all, as small calls measure launches; fewer where scores are held."""
    if kernel.name == "math":
        return max(1, min(call.rows, MOST_SCORES // (call.config.heads * call.tokens**2)))
    return max(call.rows, TIMED // call.tokens)


def drawn(call: Call) -> list[Tensor]:
    """Return query, key, value and the gradient of the output, laid out as a projection leaves them."""
    config = call.config
    small = call.rows * call.tokens <= MOST_LENGTH  # drawn on the host, so that host and card get the same numbers
    where = torch.device("cpu") if small else call.device
    generator = torch.Generator(where).manual_seed(0)
    return [
        torch.randn(call.rows, call.tokens, heads, config.head_dim, generator=generator, device=where)
        .to(call.dtype)
        .to(call.device)
        .transpose(1, 2)
        for heads in (config.heads, config.kv_heads, config.kv_heads, config.heads)
    ]


def results(work: Callable[..., Tensor], inputs: Sequence[Tensor]) -> list[Tensor]:
    """Return the output and the gradients of query, key and value."""
    *parts, upstream = inputs
    leaves = [part.detach().requires_grad_() for part in parts]
    output = work(*leaves)
    return [output.detach(), *torch.autograd.grad(output, leaves, upstream)]


def written_out(query: Tensor, key: Tensor, value: Tensor, *, scale: float) -> Tensor:
    """Return attention by its definition, causal softmax(scale q k^T) v, shaped as `query`.

    Memory grows with the square of the tokens.

    Args:
        query: (rows, heads, tokens, head_dim).
        key: (rows, kv_heads, tokens, head_dim); each key head serves heads / kv_heads query heads.
        value: as `key`.
        scale: factor of the scores, before the softmax.
    """
    groups = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(groups, dim=1), value.repeat_interleave(groups, dim=1)
    scores = query @ key.transpose(-2, -1) * scale
    later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=query.device).triu(diagonal=1)
    return scores.masked_fill(later, -torch.inf).softmax(dim=-1) @ value
