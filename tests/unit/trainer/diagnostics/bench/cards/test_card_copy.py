"""Copies between all pairs of cards; on a CPU two gloo ranks stand in, and are named so."""

from __future__ import annotations

from typing import Any

import pytest

from tests.left_out import long
from trainer.diagnostics.bench.cards import card_copy
from trainer.diagnostics.probes import placement
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.pair import p2p
from trainer.diagnostics.probes.verdict import Check, Device, equal

CARD = Device(kind="rocm", name="SIMULATED card", arch="gfx1100")


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, int]]:
    """Simulated cards: three, of which 0 and 1 reach each other; a copy takes the time of doing nothing."""
    made: list[tuple[str, str, int]] = []
    monkeypatch.setattr(placement, "place", lambda _: CARD)
    monkeypatch.setattr(placement, "card_count", lambda: 3)
    monkeypatch.setattr(p2p, "peers", lambda pair: tuple(pair) == (0, 1))
    monkeypatch.setattr(card_copy, "copies", lambda *way: made.append(way) or (lambda: None))
    monkeypatch.setattr(card_copy, "exchange_of", lambda pair: lambda: None)
    monkeypatch.setattr(card_copy.timing.numerics, "wait_for", lambda _: None)
    monkeypatch.setattr(p2p, "check", lambda way, *_: equal(" to ".join(way), 1, 1))
    return made


def test_pairs_are_copied_in_both_directions(simulated: list[tuple[str, str, int]]) -> None:
    verdict = card_copy.measure(Request(expect="rocm", seconds=0.01))
    assert verdict.status == "pass", verdict.summary
    ways = {(source, target) for source, target, _ in simulated}
    assert len(ways) == len(verdict.checks) == 6
    assert "3 pair(s) of 3 cards" in verdict.summary
    assert "through the host's memory: cards 0 and 2, 1 and 2" in verdict.summary
    peers = {number.name: number.value for number in verdict.numbers if number.unit == "0 or 1"}
    assert list(peers.values()) == [1.0, 0.0, 0.0]
    assert {number.unit for number in verdict.numbers} == {"0 or 1", "µs", "GB/s", "%"}


def test_wrong_bytes_fail_the_benchmark(simulated: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(way: tuple[str, str], *_: Any) -> Check:
        return equal(" to ".join(way), 0 if way == ("cuda:2", "cuda:1") else 1, 1)

    monkeypatch.setattr(p2p, "check", check)
    verdict = card_copy.measure(Request(expect="rocm", seconds=0.01))
    assert (verdict.status, "cuda:2 to cuda:1" in verdict.summary) == ("fail", True)


def test_single_card_has_no_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement, "place", lambda _: CARD)
    monkeypatch.setattr(placement, "card_count", lambda: 1)
    assert card_copy.measure(Request(expect="rocm")).status == "not-applicable"


@long
def test_messages_between_gloo_ranks_stand_in_on_the_cpu() -> None:
    verdict = card_copy.measure(Request(expect="cpu", timeout_seconds=120))
    assert verdict.status == "pass", verdict.summary
    assert [number.unit for number in verdict.numbers if number.unit != "%"] == ["µs", "GB/s", "GB/s"]
    assert "stand-in" in verdict.summary
    assert "no card was measured" in verdict.summary


def test_message_that_came_back_otherwise_is_found() -> None:
    sizes = [{"phase": str(size), "wrong": 3, "seconds": [0.1] * 11} for size in card_copy.SIZES_CPU]
    reports = [[{"phase": "started"}, *sizes, {"phase": "done"}] for _ in range(2)]
    assert [check.status for check in card_copy.message_checks(reports)] == ["fail", "pass"]
    missing = [[{"phase": "started"}, *sizes[1:], {"phase": "done"}] for _ in range(2)]
    assert [check.status for check in card_copy.message_checks(missing)] == ["fail", "fail"]
