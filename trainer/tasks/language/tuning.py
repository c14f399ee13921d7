"""Faster ways for language models: when they are tried, and on what shapes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from trainer.config.train import TrainConfig
from trainer.device.precision import DTYPES, Precision


@dataclass(frozen=True, kw_only=True)
class LanguageTuner:
    """See `Tuner`. `method` is that of the task: DPO computes two answers a row."""

    config: TrainConfig
    method: str

    def why_not(self, device: str, precision: Precision) -> str | None:
        """Return why plain torch is used throughout, or None where more is tried."""
        if self.config.fast == "off":
            return "--fast off"
        if torch.device(device).type == "cpu":
            return "on a CPU plain torch is the reference and the only way"
        if precision.name == "fp64":
            return "fp64 is what the others are compared with"
        if self.config.parallel != "ddp":
            return f"--parallel {self.config.parallel} moves weights to other places"
        return None

    def hold(self, model: nn.Module, precision: Precision) -> None:
        """Hold frozen weights in the 16 bits that autocast would round them to at each use."""
        from trainer.models.fast.choose import hold_frozen_weights_in

        if precision.name in ("bf16", "fp16") and self.why_not(precision.device_type, precision) is None:
            hold_frozen_weights_in(model, DTYPES[precision.name])

    def use(
        self, model: nn.Module, device: str, precision: Precision, before: Mapping[str, str] | None
    ) -> dict[str, Any]:
        """Try and choose; see `Tuner.use`."""
        against = self.why_not(device, precision)
        if against:
            return {"blocks": {"name": "plain", "why": against}}
        from trainer.models.fast.choose import Request, use_fast

        config = self.config
        rows = min(config.batch_size, config.micro_batch or config.batch_size) * (2 if self.method == "dpo" else 1)
        request = Request(
            rows=rows,
            tokens=config.sequence,
            dtype=DTYPES[precision.name],
            device=torch.device(device),
            checkpointing=config.activation_checkpointing,
            before=before,
        )
        chosen = use_fast(model, request)
        torch.cuda.empty_cache()  # what the trials took is in the way of a step's larger tensors
        return chosen.facts()
