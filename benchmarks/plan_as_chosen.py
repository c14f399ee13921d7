"""Plan with the ways that a run's trials chose, and not with those that are expected: what is left is the plan's own.

Used by benchmarks.plan_error for the runs of benchmarks.plan_card, whose choices are on record.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor

from trainer.models.decoder.attention import Attention
from trainer.models.fast import attention, own_gelu
from trainer.models.fast.choose import OWN_GELU
from trainer.models.language.linear_cross_entropy import Head, softmax_gradient
from trainer.models.pretrained.families import decoder_config
from trainer.run.memory_plan import faster
from trainer.run.memory_plan.shapes import Program


def differs(program: Program, chosen: Mapping[str, str]) -> bool:
    """Return whether a run chose another way than the plan expects on a card with a compiler.

    Args:
        chosen: name of the way of each part.
    """
    config, kernel = decoder_config(program.raw).attention, program.attention[0]
    label = f"{kernel}, grouped" if kernel == "flash" and config.heads != config.kv_heads else kernel
    expected = (chosen["attention"], chosen["loss"]) == (label, "triton") and "plain" not in chosen["blocks"]
    return not expected or _has_own_gelu(program) != (chosen["blocks"] == OWN_GELU)


def _has_own_gelu(program: Program) -> bool:
    """Return whether own kernels of GELU are expected: of the shapes here GPT-2 alone has such a layer."""
    large = program.rows * program.sequence >= own_gelu.LEAST
    return large and (program.raw["model_type"], program.adapter, program.precision) == ("gpt2", "none", "bf16")


@contextlib.contextmanager
def as_chosen(chosen: Mapping[str, str]) -> Iterator[None]:
    """Have the plan compute as `chosen` has it, within the context.

    Args:
        chosen: name of the way of each part, as metadata.json has them under `fast`.
    """
    before = {name: getattr(faster, name) for name in ("_attention", "_blocks", "_head")}
    ours = {
        "_attention": partial(_attention, label=chosen.get("attention", "torch's choice")),
        "_blocks": partial(_blocks, name=chosen.get("blocks", "plain"), expected=before["_blocks"]),
        "_head": partial(_head, name=chosen.get("loss", "plain"), expected=before["_head"]),
    }
    for name, function in ours.items():
        setattr(faster, name, function)
    try:
        yield
    finally:
        for name, function in before.items():
            setattr(faster, name, function)


def _attention(decoder: Any, program: Any, *, label: str) -> None:
    name, _, form = label.partition(", ")
    if name == "torch's choice":
        return
    kernel = attention.Kernel(name=name, grouped=form == "grouped")
    for module in decoder.modules():
        if isinstance(module, Attention):
            module.kernel = kernel


def _blocks(decoder: Any, dtype: torch.dtype, compile_: Any, *, own: bool, tile: int, name: str, expected: Any) -> None:
    if name == "plain":
        stream = torch.float32 if dtype == torch.float16 else dtype
        decoder.model.stream = stream if dtype.itemsize == 2 else None
        return
    expected(decoder, dtype, None if "plain elementwise" in name else compile_, own=name == OWN_GELU, tile=tile)


def _head(decoder: Any, program: Any, dtype: torch.dtype, *, name: str, expected: Any) -> Head:
    head: Head = expected(decoder, program, dtype)
    softmax = {"triton": head.softmax, "compiled": _compiled}.get(name, softmax_gradient)
    return Head(softmax=softmax, chunk=head.chunk, wide=head.wide, in_place=name == "triton")


def _compiled(logits: Tensor, labels: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """Hold what compiled code does: the gradient next to the logits, and nothing of fp32 but numbers of each token."""
    return torch.empty(len(logits), dtype=torch.float32, device=logits.device), torch.empty_like(logits)
