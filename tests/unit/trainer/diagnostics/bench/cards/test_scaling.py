"""Scaling from one rank to two: figures, efficiencies and faults that the checks find; gloo ranks stand in."""

from __future__ import annotations

from typing import Any

import pytest

from tests.left_out import long
from trainer.diagnostics.bench.cards import scaling
from trainer.diagnostics.bench.cards.scaling_rank import ON_CPU
from trainer.diagnostics.probes import placement
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.verdict import Device

CPU = Device(kind="cpu", name="a CPU", arch="x86_64")


def report(rank: int, **changed: Any) -> list[dict[str, Any]]:
    found: dict[str, Any] = {
        **{"alone": [1.0] * 5, "alone_rows": 100, "alone_losses": [2.0, 1.0]},
        **{"together": [0.8] * 5, "together_rows": 100, "together_losses": [2.0, 1.0], "sha256": "a"},
        **{"doubled": [1.0] * 5, "doubled_rows": 200, "doubled_losses": [2.0, 1.0]},
    }
    cases = [{"phase": case.name} | found | changed for case in ON_CPU]
    return [{"phase": "started", "pid": rank}, {"phase": "joined", "comms": "gloo"}, *cases, {"phase": "done"}]


def failed(*reports: list[dict[str, Any]]) -> list[str]:
    return [check.name for check in scaling.training_checks(reports, CPU) if check.status == "fail"]


def test_efficiency_is_the_rate_of_two_over_twice_that_of_one() -> None:
    (first, *_) = scaling.measured(scaling.torchrun.finished([report(0), report(1)]))
    numbers = {
        number.name.partition(", ")[2]: number.value for number in scaling.figures(first) if "spread" not in number.name
    }
    assert numbers == {
        "one": 100.0,
        "two": 125.0,
        "two, twice the batch": 200.0,
        "efficiency at the same batch": 62.5,
        "efficiency at the same rows a card": 100.0,
    }


def test_faults_are_found() -> None:
    assert failed(report(0), report(1)) == []
    assert len(failed(report(0), report(1, sha256="b"))) == len(ON_CPU)
    assert len(failed(report(0, together_losses=[2.0, 1.99]), report(1))) == len(ON_CPU)
    assert failed(report(0)[:-2], report(1)) == ["cases left out"]


@long
def test_two_gloo_ranks_scale_on_the_cpu_and_are_named_a_stand_in() -> None:
    verdict = scaling.measure(Request(expect="cpu", timeout_seconds=120, seconds=0.05))
    assert verdict.status == "pass", verdict.summary
    assert {number.unit for number in verdict.numbers} == {"rows/s", "%"}
    assert all(number.value > 0 for number in verdict.numbers if number.unit == "rows/s")
    assert "stand-in" in verdict.summary
    assert "no card was measured" in verdict.summary


def test_single_card_has_nothing_to_scale_to(monkeypatch: pytest.MonkeyPatch) -> None:
    card = Device(kind="rocm", name="SIMULATED card", arch="gfx1100")
    monkeypatch.setattr(placement, "place", lambda _: card)
    monkeypatch.setattr(placement, "card_count", lambda: 1)
    assert scaling.measure(Request(expect="rocm")).status == "not-applicable"
