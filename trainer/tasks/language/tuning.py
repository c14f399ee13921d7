"""Faster ways for language models: when they are tried, and on what shapes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from trainer.device.precision import DTYPES
from trainer.models.pretrained.own_class import OwnClassDecoder
from trainer.tasks.task import ComputeContext


@dataclass(frozen=True, kw_only=True)
class LanguageTuner:
    """See `Tuner`. `requested` is the value of --fast, `tokens` those of a sequence; sequences: of a row."""

    requested: str
    tokens: int
    sequences: int = 1

    def why_not(self, context: ComputeContext) -> str | None:
        """Return why plain torch is used throughout, or None where more is tried."""
        if self.requested == "off":
            return "--fast off"
        if torch.device(context.device).type == "cpu":
            return "on a CPU plain torch is the reference and the only way"
        if context.precision.name == "fp64":
            return "fp64 is what the others are compared with"
        if context.parallel != "ddp":
            return f"--parallel {context.parallel} moves weights or tokens to other ranks"
        return None

    def hold(self, model: nn.Module, context: ComputeContext, *, replaced: bool) -> None:
        """Hold frozen weights in the 16 bits that autocast would round them to at each use.

        Args:
            model: network, changed in place.
            context: device, precision and what was refused.
            replaced: whether a load of all frozen weights follows.
        """
        from trainer.models.fast.choose import hold_frozen_weights_in

        if context.precision.name in ("bf16", "fp16") and self.why_not(context) is None:
            hold_frozen_weights_in(model, DTYPES[context.precision.name], replaced=replaced)

    def use(self, model: nn.Module, context: ComputeContext) -> dict[str, Any]:
        """Try and choose; see `Tuner.use`."""
        against = self.why_not(context)
        if against is None and isinstance(model.decoder, OwnClassDecoder):
            against = "the network is computed by transformers' own class"
        if against:
            return {"blocks": {"name": "plain", "why": against}}
        from trainer.models.fast.block_trial import Request
        from trainer.models.fast.choose import use_fast

        request = Request(
            rows=context.rows * self.sequences,
            tokens=self.tokens,
            dtype=DTYPES[context.precision.name],
            device=torch.device(context.device),
            checkpointing=context.checkpointing,
            before=context.before,
            refused=context.refused,
        )
        chosen = use_fast(model, request)
        torch.cuda.empty_cache()  # what the trials took is in the way of a step's larger tensors
        return chosen.facts()
