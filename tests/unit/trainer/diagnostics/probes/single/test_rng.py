from __future__ import annotations

from typing import Any

import pytest
import torch

from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.single import rng
from trainer.diagnostics.probes.verdict import Verdict


@pytest.fixture(autouse=True)
def _algorithms_as_before() -> Any:
    yield
    torch.use_deterministic_algorithms(False)


def failed(verdict: Verdict) -> list[str]:
    return [check.name for check in verdict.checks if check.status == "fail"]


def test_cpu_repeats() -> None:
    verdict = rng.measure(Request(expect="cpu"))
    assert verdict.status == "pass", failed(verdict)
    assert len(verdict.checks) == 2 * 3 + 4 + 7 + 1


FAULTS = {
    "ignores the seed": (lambda g, w: torch.from_numpy(__import__("numpy").random.randn(rng.COUNT)).float(), "same"),
    "always the same": (lambda g, w: torch.linspace(-1.7, 1.7, rng.COUNT), "another"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_generator_that_does_not_listen_is_seen(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    draw, words = FAULTS[fault]
    monkeypatch.setitem(rng.DRAWS, "normal", draw)
    names = failed(rng.measure(Request(expect="cpu")))
    assert any(name.startswith("normal by") and words in name for name in names)


@pytest.mark.parametrize(
    ("draw", "name"),
    [
        (lambda g, w: torch.randn(rng.COUNT, generator=g) + 0.1, "normal mean"),
        (lambda g, w: torch.randn(rng.COUNT, generator=g) * 1.2, "normal variance"),
        (lambda g, w: torch.randn(rng.COUNT // 2, generator=g).repeat(2), "normal repeats"),
    ],
)
def test_numbers_of_another_distribution_are_seen(monkeypatch: pytest.MonkeyPatch, draw: Any, name: str) -> None:
    monkeypatch.setitem(rng.DRAWS, "normal", draw)
    assert name in failed(rng.measure(Request(expect="cpu")))


def test_training_that_does_not_repeat_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    honest, calls = rng.trained, []

    def trained(device: Any, seed: int) -> torch.Tensor:
        calls.append(seed)
        return honest(device, seed + len(calls))

    monkeypatch.setattr(rng, "trained", trained)
    assert failed(rng.measure(Request(expect="cpu"))) == ["training repeats"]
