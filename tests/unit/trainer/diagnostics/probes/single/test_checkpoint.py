from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.left_out import long
from trainer.diagnostics.probes import runner
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.registry import Probe
from trainer.diagnostics.probes.single import checkpoint

FORGETTING = """
    import sys
    from trainer.diagnostics.probes.single import checkpoint
    from trainer.diagnostics.probes import entry
    honest = checkpoint.load

    def load(content):
        state = honest(content)
        for moments in state["optimizer"]["state"].values():
            moments["exp_avg"].zero_()  # what is lost when the optimizer is not kept
        return state

    checkpoint.load = load
    checkpoint.MODULE = "trainer.diagnostics.probes.single.checkpoint"
    sys.exit(checkpoint.main())
"""


@pytest.fixture(autouse=True)
def _algorithms_as_before() -> Any:
    yield
    torch.use_deterministic_algorithms(False)


@long
def test_killed_training_resumes_to_the_same_bits() -> None:
    probe = Probe(
        name="checkpoint", module="trainer.diagnostics.probes.single.checkpoint", summary="", timeout_seconds=120
    )
    verdict = runner.run(probe, "cpu")
    assert verdict.status == "pass", f"{verdict.summary}\n{verdict.stderr_tail}"
    assert next(n.value for n in verdict.numbers if n.name == "resumed after") >= checkpoint.KILL_AFTER


def test_moments_that_were_not_kept_are_seen(make_probe: Any) -> None:
    verdict = runner.run(make_probe(FORGETTING, name="checkpoint"), "cpu")
    assert [check.name for check in verdict.checks if check.status == "fail"] == ["weights against undisturbed"]


def test_training_that_ends_by_itself_or_keeps_nothing_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(folder: Path, request: Request, seed: int) -> int:
        return 1

    monkeypatch.setattr(checkpoint, "kill_training", dies)
    verdict = checkpoint.measure(Request(expect="cpu"))
    assert [check.name for check in verdict.checks if check.status == "fail"] == [
        "the training was killed",
        "checkpoints kept",
    ]
