"""Sums over ranks: two gloo ranks on the CPU stand in for cards, and are named so."""

from __future__ import annotations

import pytest

from tests.left_out import long
from trainer.diagnostics.bench import all_reduce
from trainer.diagnostics.probes import placement
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.verdict import Verdict


def units(verdict: Verdict) -> dict[str, str]:
    return {number.name: number.unit for number in verdict.numbers if number.unit != "%"}


@long
def test_two_gloo_ranks_add_up_on_the_cpu() -> None:
    verdict = all_reduce.measure(Request(expect="cpu", timeout_seconds=120))
    assert verdict.status == "pass", verdict.summary
    assert units(verdict) == {"1 MiB": "GB/s", "16 MiB": "GB/s"}
    assert "no card was measured" in verdict.summary


def test_single_card_is_not_enough_for_a_sum_and_gloo_does_not_stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    card = placement.Device(kind="rocm", name="SIMULATED card", arch="gfx1100")
    monkeypatch.setattr(placement, "place", lambda _: card)
    monkeypatch.setattr(placement, "card_count", lambda: 1)
    assert all_reduce.measure(Request(expect="rocm")).status == "not-applicable"
