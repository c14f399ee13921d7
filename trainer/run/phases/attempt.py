"""An attempt of a run: what this process is asked to train."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from trainer.config.train import TrainConfig
from trainer.distributed.collectives import Ranks
from trainer.run.repeated_faults.remedy import Treatment


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """Request of a process: `name` is the unfinished run to resume, `settings` what it was started with."""

    config: TrainConfig
    name: str | None
    settings: dict[str, Any] | None
    bootstrap: Ranks
    treatment: Treatment = field(default_factory=Treatment)
