"""The probe on this CPU's memory, a small piece, and its verdicts on made-up cards."""

from __future__ import annotations

import pytest
import torch

from trainer.device import capacity
from trainer.diagnostics.probes import placement
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.memory import bandwidth, holding, patterns, probe
from trainer.diagnostics.probes.memory.holding import GIB, MIB, Room
from trainer.diagnostics.probes.memory.patterns import PATTERNS, Wrong
from trainer.diagnostics.probes.verdict import Device, Verdict

XT = Device(kind="rocm", name="AMD Radeon RX 7900 XT", arch="gfx1100")
ROOM = Room(free=19 * GIB, requested=10 * GIB)
SPEEDS = {"read": 500.0, "write": 700.0, "copy": 650.0}
RIGHT = dict.fromkeys(PATTERNS, Wrong(words=0))


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bandwidth, "CPU_SECONDS", 0.01)
    monkeypatch.setattr(bandwidth, "ON_CPU", MIB)
    monkeypatch.setattr(holding, "ON_CPU", 5 * MIB)
    monkeypatch.setattr(probe, "compute_units", lambda: 42)  # as torch counts an RX 7900 XT's


def failing(verdict: Verdict) -> list[str]:
    return [check.name for check in verdict.checks if check.status == "fail"]


def test_piece_of_host_memory_is_called_one() -> None:
    verdict = probe.measure(Request(expect="cpu"))
    assert verdict.status == "pass"
    assert verdict.summary.startswith("A small piece of host memory, 5 MiB, kept all patterns; no card's memory")
    statuses = {check.name: check.status for check in verdict.checks}
    assert statuses == dict.fromkeys(["comparison", "held", *PATTERNS], "pass") | {"bandwidth": "not-applicable"}
    assert {number.name for number in verdict.numbers} == {
        *("seed", "tested", "free"),
        *(f"{kind} bandwidth" for kind in bandwidth.LEAST),
    }


@pytest.mark.parametrize("at", [0, 5 * MIB // 8 - 1])
def test_flipped_bit_at_either_end_fails_each_pattern(monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    size, count = probe.SMALL // 8, iter(range(10**9))

    def store(view: torch.Tensor, words: torch.Tensor) -> None:
        view.copy_(words)
        begin = (next(count) % 2) * size
        if begin <= at < begin + view.numel():
            view[at - begin] ^= 1 << 40

    monkeypatch.setattr(patterns, "store", store)
    verdict = probe.measure(Request(expect="cpu"))
    assert failing(verdict) == list(PATTERNS)
    assert f"first at byte {at * 8} of what is held, bits {1 << 40:#x}" in verdict.summary


def test_comparison_that_finds_nothing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "differing", lambda view, words: torch.tensor(0))
    assert failing(probe.measure(Request(expect="cpu"))) == ["comparison"]


@pytest.mark.parametrize(("tested", "failing"), [(9.0, []), (8.9, ["held"]), (0.0, ["held"])])
def test_memory_that_is_free_and_cannot_be_had_fails(tested: float, failing: list[str]) -> None:
    found = probe.checks(XT, ROOM, int(tested * GIB), RIGHT, SPEEDS)
    assert [check.name for check in found if check.status == "fail"] == failing


def test_half_the_bandwidth_fails_on_a_card_whose_patterns_are_right() -> None:
    halved = {kind: speed / 2 for kind, speed in SPEEDS.items()}
    found = probe.checks(XT, ROOM, ROOM.requested, RIGHT, halved)
    assert [check.name for check in found if check.status == "fail"] == [f"{kind} bandwidth" for kind in SPEEDS]
    assert not [check for check in probe.checks(XT, ROOM, ROOM.requested, RIGHT, SPEEDS) if check.status == "fail"]


def test_patterns_that_the_time_did_not_reach_are_named_and_not_passed() -> None:
    held = probe.hold(Device(kind="cpu", name="", arch=""), 8 * MIB)
    found = probe.try_all(held, Device(kind="cpu", name="", arch=""), 1, ends=0.0)
    assert [name for name, wrong in found.items() if wrong] == ["address"]
    assert {probe.judged(name, wrong).status for name, wrong in found.items()} == {"pass", "not-applicable"}
    assert not any(probe.try_all([], XT, 1, ends=1e12).values())


def test_sentence_on_a_card_has_its_share_and_its_speeds() -> None:
    words = probe.summarise(
        XT, Room(free=19 * GIB, requested=4 * GIB, why="it is slow"), 4 * GIB, SPEEDS, len(PATTERNS)
    )
    assert words == (
        "4.0 of 19.0 GiB free on AMD Radeon RX 7900 XT kept all patterns, no more, as it is slow; "
        "GB/s: read 500, write 700, copy 650."
    )


def test_sentence_counts_the_patterns_where_the_time_was_too_short() -> None:
    room = Room(free=19 * GIB, requested=19 * GIB)
    words = probe.summarise(XT, room, 19 * GIB, SPEEDS, len(PATTERNS) - 1)
    assert f"kept {len(PATTERNS) - 1} of {len(PATTERNS)} patterns" in words
    assert "all patterns" not in words


class Full:
    """A SIMULATED card: its free bytes in the order of the questions; each allocation is refused."""

    def __init__(self, *free: int, total: int = 20 * GIB) -> None:
        self.free, self.total, self.allocations = list(free), total, 0

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(placement, "place", lambda expect: XT)
        monkeypatch.setattr(capacity, "free_memory", lambda device: self.free.pop(0))
        monkeypatch.setattr(capacity, "card_memory", lambda device: (0, self.total))
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: object())
        monkeypatch.setattr(torch, "ones", self.refused)
        monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)

    def refused(self, *size: int, **how: object) -> torch.Tensor:
        self.allocations += 1
        raise torch.cuda.OutOfMemoryError("injected")


@pytest.mark.parametrize("free", [0, 1, holding.LEAST_FREE - 1])
def test_card_that_other_programs_fill_gets_a_verdict_and_nothing_is_allocated(
    free: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = Full(free)
    card.install(monkeypatch)
    verdict = probe.measure(Request(expect="rocm"))
    assert (verdict.status, failing(verdict), card.allocations) == ("fail", ["room"], 0)
    assert "other programs hold the card's memory" in verdict.summary
    assert {each.name: each.value for each in verdict.numbers}["free"] == round(free / MIB, 1)


@pytest.mark.parametrize(
    ("total", "words"),
    [
        (512 * MIB, "shows 512 MiB in all: give the processor's graphics more"),
        (2 * holding.LEAST_FREE - 1, "more in the firmware's setup"),
        (2 * holding.LEAST_FREE, "other programs hold the card's memory"),
    ],
)
def test_card_of_little_memory_is_not_blamed_on_other_programs(
    total: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = Full(400 * MIB, total=total)
    card.install(monkeypatch)
    verdict = probe.measure(Request(expect="rocm"))
    assert (verdict.status, failing(verdict), card.allocations) == ("fail", ["room"], 0)
    assert words in verdict.summary


def test_card_that_fills_meanwhile_gets_a_verdict_with_both_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    card = Full(GIB, GIB, 3 * MIB)  # asked before, by the bandwidth, and after memory ran out
    card.install(monkeypatch)
    verdict = probe.measure(Request(expect="rocm"))
    assert (verdict.status, failing(verdict), card.allocations) == ("fail", ["room"], 1)
    assert "1024 MiB were free at first" in verdict.summary
    assert {each.name: each.value for each in verdict.numbers} == {"free": 3.0}


def test_bandwidth_of_a_full_card_asks_for_no_more_than_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def ones(size: int, device: str) -> torch.Tensor:
        sizes.append(size)
        raise torch.cuda.OutOfMemoryError("injected")

    monkeypatch.setattr(capacity, "free_memory", lambda device: 8 * MIB)
    monkeypatch.setattr(torch, "ones", ones)
    with pytest.raises(torch.cuda.OutOfMemoryError):
        bandwidth.measure(XT)
    assert sizes == [MIB // 4]
