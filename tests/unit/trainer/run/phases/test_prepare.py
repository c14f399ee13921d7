"""Phase 1 of a run: settings are refused before the data are held anywhere, and all ranks compute in one format."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from trainer.config.train import TrainConfig
from trainer.device.precision import Precision
from trainer.distributed.collectives import Ranks
from trainer.run.phases import prepare
from trainer.run.phases.attempt import Attempt
from trainer.runtime.errors import TrainerError


class Differing(Ranks):
    """Two ranks whose formats differ, a STAND-IN."""

    def gather(self, value: Any) -> list[Any]:
        return [value, "bf16"]


def test_formats_that_differ_between_ranks_become_fp32() -> None:
    chosen = Precision(name="fp16", reason="best", device_type="cpu")
    assert prepare.agreed(chosen, Ranks()) is chosen
    agreed = prepare.agreed(chosen, Differing())
    assert (agreed.name, agreed.reason) == ("fp32", "the ranks differ: fp16, bf16")


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"schedule": "inverse-sqrt", "warmup_steps": 5}, None),
        ({"schedule": "inverse-sqrt"}, "RM526"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings: dict[str, Any], code: str | None) -> None:
    attempt = Attempt(config=TrainConfig.of(**settings), name=None, settings=None, bootstrap=Ranks())
    task: Any = SimpleNamespace(train_rows=100)
    if code is None:
        prepare.require_settings(attempt, task)
        return
    with pytest.raises(TrainerError, match=code):
        prepare.require_settings(attempt, task)
