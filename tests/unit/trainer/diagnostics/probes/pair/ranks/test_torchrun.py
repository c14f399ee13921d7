"""With more than two cards each takes part in a pair, and the verdict names those that did. Cards are SIMULATED."""

import pytest

from trainer.diagnostics.probes import placement, runner
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.pair.ranks import cause_search, judge, torchrun
from trainer.diagnostics.probes.pair.ranks.ddp_rank import CARDS
from trainer.diagnostics.probes.verdict import Device, equal, parse
from trainer.runtime.child_process import Outcome

IDS = tuple(f"0000:{bus:02x}:00" for bus in range(8))


@pytest.mark.parametrize("cards", range(2, 10))
def test_pairs_of_any_number_of_cards_hold_each_card(cards):
    chosen = torchrun.pairs(cards)
    assert {card for pair in chosen for card in pair} == set(range(cards))
    assert all(len(set(pair)) == 2 for pair in chosen)
    assert len(chosen) == (cards + 1) // 2


@pytest.fixture
def simulated(monkeypatch):
    """Return a function: how many cards are there and which of them is silent, to the verdict and the pairs tried."""

    def measure(cards, silent=None):
        tried = []

        def run_ranks(module, device, seed, limit, *, backend="", environment=None):
            pair = tuple(map(int, environment[CARDS].split(",")))
            tried.append(pair)
            reports = [
                [
                    {"phase": "started", "pid": rank},
                    {"phase": "joined", "card": IDS[card]},
                    *([] if card == silent else [{"phase": "done"}]),
                ]
                for rank, card in enumerate(pair)
            ]
            return Outcome(returncode=int(silent in pair), timed_out=False, stdout="", stderr="", seconds=1), reports

        monkeypatch.setattr(torchrun, "run_ranks", run_ranks)
        monkeypatch.setattr(placement, "card_ids", lambda: IDS[:cards])
        monkeypatch.setattr(judge.host_facts, "read", lambda *_, **__: None)
        monkeypatch.setattr(cause_search, "explained", lambda verdict, *_: verdict)
        device = Device(kind="rocm", name="SIMULATED", arch="gfx942")
        subject = judge.Subject(
            probe="two_gpu_step", module="m", did="stepped", place=torchrun.Place(ran_on=device, cards=cards),
            checks=lambda _: [equal("x", 1, 1)], numbers=lambda _: [], transports=cause_search.TRANSPORTS,
        )  # fmt: skip
        return judge.measure(subject, Request(expect="rocm", timeout_seconds=600)), tried

    return measure


@pytest.mark.parametrize("cards", [2, 3, 8])
def test_verdict_names_the_cards_of_every_pair(simulated, cards):
    verdict, tried = simulated(cards)
    assert (verdict.status, set(verdict.cards), verdict.present) == ("pass", set(IDS[:cards]), IDS[:cards])
    assert tuple(tried) == torchrun.pairs(cards)
    assert parse(verdict.to_json()) == verdict


@pytest.mark.parametrize("silent", range(8))
def test_silent_card_fails_the_probe_and_is_not_named(simulated, silent):
    verdict, tried = simulated(8, silent)
    assert verdict.status == "fail"
    assert IDS[silent] not in verdict.cards
    assert set(tried[silent // 2 :]) == {torchrun.pairs(8)[silent // 2]}  # what is tried again is the pair that failed


def test_cards_without_an_address_and_partitions_of_one_are_distinguished(monkeypatch):
    addresses = ["0000:03:00", "0000:03:00", None, "0000:43:00"]
    monkeypatch.setattr(placement, "card_count", lambda: 4)
    monkeypatch.setattr(placement, "pci_address", lambda index: addresses[index])
    assert placement.card_ids() == ("0000:03:00#0", "0000:03:00#1", "card 2", "0000:43:00")


def test_probe_of_two_cards_has_time_for_every_pair(tmp_path):
    (tmp_path / "dri").mkdir()
    for count, pairs in ((0, 1), (2, 1), (3, 2), (8, 4)):
        for number in range(count):
            (tmp_path / "dri" / f"renderD{128 + number}").touch()
        assert runner.pairs_here(tmp_path) == pairs
