from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.single import rng
from trainer.diagnostics.probes.verdict import Device, Verdict


@pytest.fixture(autouse=True)
def _algorithms_as_before() -> Any:
    yield
    torch.use_deterministic_algorithms(False)


def failed(verdict: Verdict) -> list[str]:
    return [check.name for check in verdict.checks if check.status == "fail"]


def test_cpu_repeats() -> None:
    verdict = rng.measure(Request(expect="cpu"))
    assert verdict.status == "pass", failed(verdict)
    assert len(verdict.checks) == 2 * 3 + 4 + (5 + 5 + 2 + 3) + 1


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


def standard(*, shift: float = 0.0, scale: float = 1.0) -> torch.Tensor:
    """Numbers of exactly that mean and that variance."""
    drawn = torch.randn(rng.COUNT, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    return (drawn - drawn.mean()) / drawn.std() * scale**0.5 + shift


@pytest.mark.parametrize(
    ("shift", "variance", "failing"),
    [
        (5.9 / 256, 1.0, []),
        (6.1 / 256, 1.0, ["normal mean"]),
        (0.0, 1.0 + 5.9 * 2**0.5 / 256, []),
        (0.0, 1.0 + 6.1 * 2**0.5 / 256, ["normal variance"]),
    ],
)
def test_mean_and_variance_may_be_off_by_six_of_their_own_deviations(
    monkeypatch: pytest.MonkeyPatch, shift: float, variance: float, failing: list[str]
) -> None:
    assert rng.COUNT == 256**2
    numbers = standard(shift=shift, scale=variance)
    monkeypatch.setitem(rng.DRAWS, "normal", lambda *_: numbers)
    checks = rng.shape_checks(Device(kind="cpu", name="a CPU", arch="x86_64"), 1)
    assert [check.name for check in checks if check.status == "fail"] == failing


def test_training_that_does_not_repeat_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    honest, calls = rng.trained, []

    def trained(device: Any, seed: int) -> torch.Tensor:
        calls.append(seed)
        return honest(device, seed + len(calls))

    monkeypatch.setattr(rng, "trained", trained)
    assert failed(rng.measure(Request(expect="cpu"))) == ["training repeats"]


CPU = Device(kind="cpu", name="a CPU", arch="x86_64")


def failing(monkeypatch: pytest.MonkeyPatch, name: str, numbers: torch.Tensor) -> set[str]:
    monkeypatch.setitem(rng.DRAWS, name, lambda *_: numbers)
    return {check.name for check in rng.shape_checks(CPU, 1) if check.status == "fail"}


def drawn(count: int = rng.COUNT) -> torch.Tensor:
    return torch.rand(count, generator=torch.Generator().manual_seed(5))


def kept(ones: torch.Tensor) -> torch.Tensor:
    return (ones >= rng.DROPPED).float() / (1 - rng.DROPPED)


SHAPES: dict[str, tuple[str, Callable[[], torch.Tensor], set[str]]] = {
    "coarse": ("uniform", lambda: (drawn() * 256).floor() / 256, {"uniform repeats"}),
    "a wave shares a number": (
        "uniform",
        lambda: drawn(rng.COUNT // 64).repeat_interleave(64),
        {"uniform neighbours", "uniform repeats"},
    ),
    "narrow": ("uniform", lambda: drawn() / 2 + 0.25, {"uniform variance"}),
    "flat in place of normal": ("normal", lambda: (drawn() - 0.5) * 12**0.5, {"normal fourth moment"}),
    "a wave is dropped at once": (
        "dropout",
        lambda: kept(drawn(rng.COUNT // 64)).repeat_interleave(64),
        {"dropout neighbours"},
    ),
    "nothing is dropped": ("dropout", lambda: torch.ones(rng.COUNT), {"dropout share", "dropout neighbours"}),
    "constant": ("uniform", lambda: torch.full((rng.COUNT,), 0.5), {"uniform variance", "uniform repeats"}),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_numbers_of_the_right_mean_and_another_shape_are_seen(monkeypatch: pytest.MonkeyPatch, shape: str) -> None:
    name, made, expected = SHAPES[shape]
    assert failing(monkeypatch, name, made()) >= expected


@pytest.mark.parametrize(("sigmas", "names"), [(5.5, set()), (6.5, {"dropout share"})])
def test_share_that_is_dropped_may_be_off_by_six_of_its_deviations(
    monkeypatch: pytest.MonkeyPatch, sigmas: float, names: set[str]
) -> None:
    off = sigmas * (rng.DROPPED * (1 - rng.DROPPED)) ** 0.5 / rng.COUNT**0.5
    ordered = torch.arange(rng.COUNT) / rng.COUNT
    apart = ordered[torch.randperm(rng.COUNT, generator=torch.Generator().manual_seed(7))]
    share = rng.DROPPED + off
    numbers = (apart >= share).float() / (1 - share)  # of mean 1, whatever share is dropped
    found = failing(monkeypatch, "dropout", numbers)
    assert found - {"dropout neighbours"} == names  # more dropped ones have more neighbours


def test_sound_numbers_pass_whatever_the_seed() -> None:
    for seed in range(10):
        assert [check.name for check in rng.shape_checks(CPU, seed) if check.status == "fail"] == []
