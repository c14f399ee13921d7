"""How a way is tried, judged, voted on and chosen, each by itself: no process starts, and the store is a dictionary."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import Any

import pytest

from trainer.distributed.transports import selection
from trainer.distributed.transports.link import Link
from trainer.distributed.transports.selection import Choice, Place, Verdict, choose, judge, slowest, trial, vote
from trainer.distributed.transports.transport import GLOO, HOST, NCCL, NCCL_NO_P2P, Transport
from trainer.runtime.child_process import Outcome
from trainer.runtime.errors import TrainerError

PLACE = Place(rank=1, world=2, device="cuda:1", address="host:99", rendezvous_id="run-7")


class Kept:
    """A store in memory; `silent` is what waiting for a key that is missing raises."""

    def __init__(self, silent: str = "") -> None:
        self.values: dict[str, bytes] = {}
        self.waited: list[tuple[list[str], timedelta]] = []
        self.silent = silent

    def set(self, key: str, value: str) -> None:
        self.values[key] = value.encode()

    def get(self, key: str) -> bytes:
        return self.values[key]

    def wait(self, keys: list[str], timeout: timedelta) -> None:
        self.waited.append((keys, timeout))
        if self.silent:
            raise RuntimeError(self.silent)


def verdict(rank: int, cause: str = "", **more: float) -> Verdict:
    return Verdict(transport="gloo", rank=rank, cause=cause, seconds=0.1, **more)


def test_trial_is_a_process_of_its_own_with_the_ways_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}

    def run(argv: Sequence[str], **more: Any) -> Outcome:
        given.update(more, argv=list(argv))
        return Outcome(returncode=1, timed_out=False, stdout="", stderr="", seconds=1.23456)

    monkeypatch.setattr(selection, "run_limited", run)
    monkeypatch.setenv("KEPT", "yes")
    found = trial(NCCL_NO_P2P, PLACE, seconds=7.5)
    assert given["argv"] == [
        *(sys.executable, "-m", "trainer.distributed.transports.attempt", "--transport", "nccl-no-p2p"),
        *("--device", "cuda:1", "--store", "host:99", "--rank", "1", "--world", "2", "--seconds", "7.5"),
        *("--prefix", "run-7/comms/nccl-no-p2p"),
    ]
    assert given["seconds"] == 7.5
    assert {"KEPT": "yes", "NCCL_P2P_DISABLE": "1", "NCCL_DEBUG": "WARN"}.items() <= given["env"].items()
    cause = "ended by status 1 in 'start'"
    assert found == Verdict(transport="nccl-no-p2p", rank=1, cause=cause, seconds=1.235)


def test_messages_of_nccl_are_as_a_person_requested_them() -> None:
    assert selection.environment(GLOO, {"NCCL_DEBUG": "INFO"}) == {"NCCL_DEBUG": "INFO"}
    assert selection.environment(GLOO, {}) == {"NCCL_DEBUG": "WARN"}


def outcome(*records: Any, **changes: Any) -> Outcome:
    stdout = "".join(f"{json.dumps(record)}\n" for record in records)
    settings = {"returncode": 0, "timed_out": False, "stderr": "", "seconds": 61.6}
    return Outcome(stdout=f"words\n{stdout}", **(settings | changes))


DONE = {"done": {"wrong": "", "seconds": {"256": 0.5, "262144": 1.0, "8388608": 2.0}}}


@pytest.mark.parametrize(
    ("ended", "expected"),
    [
        (outcome({"begin": "a"}, DONE, {"begin": "b"}), {"small_s": 0.5, "large_s": 2.0}),
        (outcome({"begin": "a"}, {"begin": "b"}, timed_out=True), {"cause": "hung in 'b', ended after 62 s"}),
        (outcome({"done": {"wrong": "3 of 5", "seconds": {}}}, timed_out=True), {"cause": "3 of 5"}),
        (outcome(returncode=None, stderr="one\ntwo"), {"cause": "ended by status None in 'start': two"}),
        (outcome(DONE, returncode=3), {"cause": "ended by status 3 in 'start'", "small_s": 0.5, "large_s": 2.0}),
        (outcome(returncode=-9), {"cause": "ended by SIGKILL in 'start'"}),
    ],
)
def test_verdict_of_a_trial_is_of_its_findings_and_its_end(ended: Outcome, expected: dict[str, Any]) -> None:
    blank = {"transport": "gloo", "rank": 3, "cause": "", "seconds": 61.6, "small_s": 0.0, "large_s": 0.0}
    assert asdict(judge(GLOO, 3, ended)) == blank | expected


def test_vote_sets_ones_own_verdict_and_returns_all_in_rank_order() -> None:
    store, others = Kept(), verdict(0, "no card")
    keys = [f"run-7/comms/gloo/verdict/{rank}" for rank in range(2)]
    store.set(keys[0], json.dumps(asdict(others)))
    mine = verdict(1, small_s=0.5)
    assert vote(GLOO, PLACE, store, mine, seconds=7.0) == [others, mine]
    assert json.loads(store.values[keys[1]]) == asdict(mine)
    assert store.waited == [(keys, timedelta(seconds=37))]


def test_rank_that_does_not_answer_is_rm561_with_the_stores_first_line() -> None:
    with pytest.raises(TrainerError, match="RM561") as caught:
        vote(GLOO, PLACE, Kept("timed out\nmore"), verdict(1), seconds=1.0)
    assert (caught.value.what, caught.value.why) == ("not all ranks reported their trial of gloo", "timed out")


def test_link_is_as_the_slowest_rank_saw_it() -> None:
    found = slowest([verdict(0, small_s=1e-5, large_s=0.02), verdict(1, small_s=3e-5, large_s=0.01)], 2)
    assert found == Link(latency_s=3e-5, bus_bytes_per_s=4 * 8_388_608 / 0.02)


def climbed(
    monkeypatch: pytest.MonkeyPatch, verdicts: dict[str, list[Verdict]], ways: Sequence[Transport], **more: float
) -> tuple[Choice, list[Any]]:
    """Choose among `ways` whose trials come to `verdicts`; return the choice and what was reported."""
    timeouts: list[float] = []

    def tried(transport: Transport, place: Place, *, seconds: float) -> Verdict:
        assert place is PLACE
        timeouts.append(seconds)
        return verdicts[transport.name][1]

    def voted(transport: Transport, place: Place, store: Any, mine: Verdict, *, seconds: float) -> list[Verdict]:
        assert (place, store, mine) == (PLACE, "store", verdicts[transport.name][1])
        timeouts.append(seconds)
        return verdicts[transport.name]

    events: list[Any] = []
    monkeypatch.setattr(selection, "trial", tried)
    monkeypatch.setattr(selection, "vote", voted)
    report = lambda *given, **fields: events.append((given, fields))  # noqa: E731
    found = choose(ways, PLACE, "store", report=report, **more)  # type: ignore[arg-type]
    assert set(timeouts) == {more.get("seconds", 60.0)}
    return found, events


GOOD = [verdict(0, small_s=1e-5, large_s=0.01), verdict(1, small_s=1e-5, large_s=0.02)]


def test_first_way_that_passes_on_all_ranks_is_taken_with_the_causes_of_those_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    verdicts = {"nccl": [verdict(0, "a"), verdict(1, "b")], "gloo": [verdict(0), verdict(1, "c")], "host": GOOD}
    found, events = climbed(monkeypatch, verdicts, [NCCL, GLOO, HOST], seconds=5.0)
    link = slowest(GOOD, 2)
    reason = "passed its probe on 2 ranks; nccl did not: rank 0: a; rank 1: b; gloo did not: rank 1: c"
    assert found == Choice(transport=HOST, reason=reason, link=link)
    assert events == [
        (("comms",), {"route": "nccl", "passed": False, "cause": "rank 0: a; rank 1: b", "link": None}),
        (("comms",), {"route": "gloo", "passed": False, "cause": "rank 1: c", "link": None}),
        (("comms",), {"route": "host", "passed": True, "cause": "", "link": link.as_dict()}),
    ]


def test_way_is_tried_for_a_minute_and_the_first_alone_where_it_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    found, events = climbed(monkeypatch, {"gloo": GOOD}, [GLOO, HOST])
    assert (found.transport, found.reason, len(events)) == (GLOO, "passed its probe on 2 ranks", 1)


def test_transports_that_all_fail_are_rm561_with_every_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    bad = [verdict(0), verdict(1, "c")]
    with pytest.raises(TrainerError, match="RM561") as caught:
        climbed(monkeypatch, {"nccl": bad, "gloo": bad}, [NCCL, GLOO])
    assert caught.value.what == "nccl did not: rank 1: c\ngloo did not: rank 1: c"
    assert caught.value.where == "2 ranks"
