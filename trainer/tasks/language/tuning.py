"""Faster ways for language models: when they are tried, and on what shapes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from trainer.device.precision import DTYPES
from trainer.tasks.task import Computing


@dataclass(frozen=True, kw_only=True)
class LanguageTuner:
    """See `Tuner`. `requested` is the value of --fast, `tokens` those of a row; pairs: a row is two sequences."""

    requested: str
    tokens: int
    pairs: bool

    def why_not(self, computing: Computing) -> str | None:
        """Return why plain torch is used throughout, or None where more is tried."""
        if self.requested == "off":
            return "--fast off"
        if torch.device(computing.device).type == "cpu":
            return "on a CPU plain torch is the reference and the only way"
        if computing.precision.name == "fp64":
            return "fp64 is what the others are compared with"
        if computing.parallel != "ddp":
            return f"--parallel {computing.parallel} moves weights to other places"
        return None

    def hold(self, model: nn.Module, computing: Computing) -> None:
        """Hold frozen weights in the 16 bits that autocast would round them to at each use."""
        from trainer.models.fast.choose import hold_frozen_weights_in

        if computing.precision.name in ("bf16", "fp16") and self.why_not(computing) is None:
            hold_frozen_weights_in(model, DTYPES[computing.precision.name])

    def use(self, model: nn.Module, computing: Computing) -> dict[str, Any]:
        """Try and choose; see `Tuner.use`."""
        against = self.why_not(computing)
        if against:
            return {"blocks": {"name": "plain", "why": against}}
        from trainer.models.fast.choose import Request, use_fast

        request = Request(
            rows=computing.rows * (2 if self.pairs else 1),
            tokens=self.tokens,
            dtype=DTYPES[computing.precision.name],
            device=torch.device(computing.device),
            checkpointing=computing.checkpointing,
            before=computing.before,
        )
        chosen = use_fast(model, request)
        torch.cuda.empty_cache()  # what the trials took is in the way of a step's larger tensors
        return chosen.facts()
