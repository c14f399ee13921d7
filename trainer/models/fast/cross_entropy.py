"""How logits become losses and gradients: torch's operations, compiled, or by a kernel that reads each row once."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from trainer.data.tokens.labels import IGNORED
from trainer.models.fast.proof import (
    AGAIN,
    Choice,
    Trial,
    fastest,
    first_line,
    judged,
    reason,
    relative_error,
    seconds_of,
)
from trainer.models.language.linear_cross_entropy import Head, Softmax, softmax_gradient, wide_product

ROWS = 16  # of the comparison with fp64
# Bytes of one chunk's logits. With full checkpointing the logits would otherwise be the largest tensor of a step.
CHUNK_BYTES = {"off": 7 * 2**28, "selective": 7 * 2**28, "full": 5 * 2**26, "offloaded": 5 * 2**26}
# And with few tokens an eighth of all logits is enough: a product of 256 tokens with 150,000 columns fills a card.
SHARE, ENOUGH_BYTES = 8, 2**26
LEAST_CHUNK, MOST_CHUNK = 256, 16384
# Times as fast as the kernel must be a way that holds a chunk's gradient next to its logits. `plan` counts on the
# kernel: next to eight other runs on one NVIDIA H200 it was timed 25 % slower once; the run held 7 % more than planned.
WITH_GRADIENT = 1.25
# Bytes and tokens of the logits that are timed, at most: torch's operations take five times as much, and that before
# the first step of a run whose steps may take less; smaller ones would fit into a card's cache.
TIMED_BYTES, TIMED = 2**28, 2048


@dataclass(frozen=True, kw_only=True)
class Call:
    """What the loss is called with in training: logits (tokens, vocabulary) of a chunk at a time."""

    tokens: int
    vocabulary: int
    dtype: torch.dtype
    device: torch.device
    checkpointing: str = "off"

    @property
    def chunk(self) -> int:
        """Tokens of a chunk: a power of two whose logits take the bytes above at most."""
        token, most = self.vocabulary * self.dtype.itemsize, CHUNK_BYTES[self.checkpointing]
        if self.checkpointing in ("full", "offloaded"):
            most = min(most, max(ENOUGH_BYTES, self.tokens * token // SHARE))
        most //= token
        size = 1 << max(most, 1).bit_length() - 1
        return max(LEAST_CHUNK, min(size, MOST_CHUNK))

    @property
    def timed(self) -> int:
        """Tokens of the timing."""
        most = max(LEAST_CHUNK, TIMED_BYTES // (self.vocabulary * self.dtype.itemsize))
        return min(self.chunk, self.tokens, most, TIMED)


def candidates() -> dict[str, Callable[[], Softmax]]:
    """Return the implementations by name; where times are alike the earlier is preferred, which holds less."""
    own = {"triton": _triton} if importlib.util.find_spec("triton") is not None else {}
    return {**own, "compiled": _compiled, "plain": lambda: softmax_gradient}


def _without_scatter(logits: Tensor, labels: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the same function in operations that a compiler joins into three passes over the logits."""
    wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
    there = labels != IGNORED
    most = wide.amax(-1, keepdim=True)
    log = (wide - most).exp().sum(-1).log() + most[:, 0]
    losses = log - wide.gather(1, labels.where(there, 0).unsqueeze(1))[:, 0]
    shares = (wide - log.unsqueeze(1)).exp()
    chosen = torch.arange(logits.shape[1], device=logits.device).unsqueeze(0) == labels.unsqueeze(1)
    gradient = torch.where(chosen, shares - 1.0, shares) * scale.where(there, 0.0).unsqueeze(1)
    return losses.where(there, 0.0), gradient.to(logits.dtype)


def _compiled() -> Softmax:
    made: Any = torch.compile(_without_scatter, dynamic=False)
    return made  # type: ignore[no-any-return]


def _triton() -> Softmax:
    from trainer.models.fast.kernels import triton_softmax

    def softmax(logits: Tensor, labels: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
        losses = torch.empty(len(logits), dtype=torch.float32, device=logits.device)
        triton_softmax.launch(logits, labels, scale, losses, ignored=IGNORED)
        return losses, logits

    return softmax


def choose(call: Call, only_name: str | None = None, refused: Mapping[str, str] | None = None) -> tuple[Head, Choice]:
    """Return how the head's losses are formed, and the choice.

    Args:
        only_name: the way of an unfinished run, which alone is tried.
        refused: "compile" and "triton" where code made by them is not to be used, and why; None for none.
    """
    against = {"compiled" if name == "compile" else name: why for name, why in (refused or {}).items()}
    known = {name: make for name, make in candidates().items() if name not in against}
    selected = {name: make for name, make in known.items() if only_name in (None, name)} or {"plain": known["plain"]}
    exact = softmax_gradient(*(_wide(each) for each in drawn(replace(call, tokens=ROWS, device=torch.device("cpu")))))
    made: dict[str, Softmax] = {}
    trials = confirmed([examined(name, make, call, exact, made) for name, make in selected.items()], made, call)
    best = fastest(trials, by=WITH_GRADIENT)
    name = best.name if best else "plain"
    wide = wide_product(call.device, call.dtype)
    head = Head(softmax=made.get(name, softmax_gradient), chunk=call.chunk, wide=wide, in_place=name == "triton")
    left_out = [Trial(name=name, refused=against[name]) for name in candidates() if name in against]
    trials += left_out
    why = f"chunks of {call.chunk:,} tokens; the fastest that is right: {reason(trials)}"
    return head, Choice(name=name, why=why, trials=tuple(trials))


def _wide(value: Tensor) -> Tensor:
    return value.double() if value.is_floating_point() else value


def examined(
    name: str, make: Callable[[], Softmax], call: Call, exact: Sequence[Tensor], made: dict[str, Softmax]
) -> Trial:
    """Compare one way with fp64 on a few rows of the vocabulary's width, and time it on a chunk.

    Args:
        name: of the way, as in `candidates`.
        make: compiles or imports the way; an exception of it is the reason why the way is refused.
        exact: losses (ROWS,) and gradient (ROWS, vocabulary) in fp64, on the host.
        made: takes the way under its name, also where it is refused by its error.
    """
    try:
        made[name] = softmax = make()
        few = [value.to(call.device) for value in drawn(replace(call, tokens=ROWS, device=torch.device("cpu")))]
        found = judged(name, relative_error(softmax(*few), exact), call.dtype)
        if found.refused:
            return found
        return replace(found, seconds=_seconds(softmax, call))
    except Exception as error:  # a compiler may raise whatever its back end raises
        return Trial(name=name, refused=first_line(error))


def confirmed(trials: Sequence[Trial], made: Mapping[str, Softmax], call: Call) -> list[Trial]:
    """Return the trials; where a way that holds more is the fastest, it and the first are timed anew.

    Args:
        trials: in the order of preference: what holds least comes first.
        made: the ways by name.
        call: what is timed.
    """
    found = list(trials)
    for _ in range(AGAIN):
        best, first = fastest(found, by=WITH_GRADIENT), next((each for each in found if not each.refused), None)
        if best is None or best is first:
            break
        for each in (first, best):
            assert each is not None and each.seconds is not None
            least = min(each.seconds, _seconds(made[each.name], call))
            found[found.index(each)] = replace(each, seconds=least)
    return found


def _seconds(softmax: Softmax, call: Call) -> float:
    logits, labels, scale = drawn(replace(call, tokens=call.timed))
    return seconds_of(lambda: softmax(logits, labels, scale), call.device)


def drawn(call: Call) -> tuple[Tensor, Tensor, Tensor]:
    """Return logits, labels of which some carry no loss, and scales; drawn where the call computes."""
    generator = torch.Generator(call.device).manual_seed(0)
    how: dict[str, Any] = {"generator": generator, "device": call.device}
    logits = (4 * torch.randn(call.tokens, call.vocabulary, **how)).to(call.dtype)
    labels = torch.randint(call.vocabulary, (call.tokens,), **how)
    labels[:: max(call.tokens // 4, 1)] = IGNORED
    return logits, labels, torch.rand(call.tokens, **how)
