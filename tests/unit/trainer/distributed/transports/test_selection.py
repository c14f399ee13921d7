"""The choice with real trials: two ranks as threads here, each trial a process of its own over gloo on the CPU."""

from __future__ import annotations

from typing import Any

import pytest
import torch.distributed as dist

from tests.fixtures.transports import climb, faulty
from tests.left_out import long
from trainer.distributed.transports import selection
from trainer.distributed.transports.selection import Place, environment, judge, vote
from trainer.distributed.transports.transport import GLOO, HOST, NCCL, NCCL_NO_P2P, Transport
from trainer.runtime.child_process import Outcome
from trainer.runtime.errors import TrainerError


@long
def test_wrong_sum_and_an_abort_lead_to_the_next_transport_and_all_ranks_agree(
    store: dist.TCPStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in faulty("nccl:abort,gloo:wrong-sum").items():
        monkeypatch.setenv(name, value)
    choices, events = climb(store, [NCCL, GLOO, HOST], seconds=60)
    assert [choice.transport.name for choice in choices] == ["host", "host"]
    assert [(event["route"], event["passed"]) for event in events] == [("nccl", False), ("gloo", False), ("host", True)]
    assert "rank 0: ended by" in events[0]["cause"]
    assert "rank 0: 1 of 256 sums differ" in events[1]["cause"]
    assert events[2]["cause"] == ""
    assert events[2]["link"]["bus_bytes_per_s"] > 1e6
    assert "gloo did not: rank 0: 1 of 256 sums differ" in choices[0].reason


def test_rank_that_fails_fails_the_transport_for_all(store: dist.TCPStore, monkeypatch: pytest.MonkeyPatch) -> None:
    causes = {("nccl", 1): "no card", ("gloo", 0): "", ("gloo", 1): "", ("nccl", 0): ""}

    def trial(transport: Transport, place: Place, *, seconds: float) -> selection.Verdict:
        cause = causes[transport.name, place.rank]
        return selection.Verdict(
            transport=transport.name, rank=place.rank, cause=cause, seconds=0.1, small_s=1e-5, large_s=1e-2
        )

    monkeypatch.setattr(selection, "trial", trial)
    choices, events = climb(store, [NCCL, GLOO], seconds=5)
    assert [choice.transport.name for choice in choices] == ["gloo", "gloo"]
    assert events[0]["cause"] == "rank 1: no card"


def test_rank_that_never_answers_is_an_error_not_a_hang(store: dist.TCPStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "VOTE_MARGIN_S", 0.2)
    place = Place(rank=0, world=2, device="cpu", address="")
    mine = selection.Verdict(transport="gloo", rank=0, cause="", seconds=0.1)
    with pytest.raises(TrainerError, match="RM561"):
        vote(GLOO, place, store, mine, seconds=0.1)


def outcome(stdout: str = "", **changes: Any) -> Outcome:
    settings = {"returncode": 0, "timed_out": False, "stderr": "", "seconds": 1.0}
    return Outcome(stdout=stdout, **(settings | changes))


DONE = '{"done": {"wrong": "", "seconds": {"256": 0.5, "8388608": 2.0}}}\n'


@pytest.mark.parametrize(
    ("ended", "cause"),
    [
        (outcome(DONE), ""),
        (outcome(""), "ended by status 0 in 'start'"),  # no finding is no pass
        (outcome('{"begin": "x"}\n', returncode=-11, stderr="a\nb"), "ended by SIGSEGV in 'x': b"),
        (outcome(DONE, returncode=-6), "ended by SIGABRT in 'start'"),  # right sums, then a crash at its end
        (outcome(DONE, timed_out=True, returncode=-9), "hung in 'start', ended after 1 s"),
        (outcome('{"done": {"wrong": "3 of 5", "seconds": {}}}\n', returncode=1), "3 of 5"),
    ],
)
def test_attempt_passes_only_with_right_sums_and_a_clean_end(ended: Outcome, cause: str) -> None:
    assert judge(GLOO, 0, ended).cause == cause


def test_times_reach_the_verdict() -> None:
    verdict = judge(GLOO, 0, outcome(DONE))
    assert (verdict.small_s, verdict.large_s) == (0.5, 2.0)


def test_transport_without_peer_access_sets_the_variable_whatever_was_there() -> None:
    assert environment(NCCL_NO_P2P, {"NCCL_P2P_DISABLE": "0"})["NCCL_P2P_DISABLE"] == "1"
    assert "NCCL_P2P_DISABLE" not in environment(NCCL, {})


def test_vote_takes_the_error_of_torch_for_silence() -> None:
    assert issubclass(dist.DistStoreError, RuntimeError)
