from __future__ import annotations

import pytest

from trainer.distributed.watchdog.heartbeat import SECTIONS, Beat
from trainer.distributed.watchdog.timeouts import Limits
from trainer.distributed.watchdog.verdict import hung_ranks, late, message

LIMITS = Limits(floor=1.0, ceiling=10.0)


def beat(section: str, step: int = 5, entered: float = 0.0) -> Beat:
    zeros = dict.fromkeys(SECTIONS, 0)
    return Beat(pid=1, step=step, section=section, entered=entered, passes=zeros, longest=dict.fromkeys(SECTIONS, 0.0))


def test_late_ranks_are_those_beyond_their_limit() -> None:
    beats = {0: beat("forward", entered=95.0), 1: beat("backward", entered=80.0), 2: beat("end", entered=0.0)}
    found = late(beats, LIMITS, now=100.0, watched_since=0.0)
    assert [(each.rank, each.section, each.seconds, each.limit) for each in found] == [(1, "backward", 20.0, 10.0)]


def test_time_without_a_watcher_does_not_count() -> None:
    assert late({0: beat("forward", entered=0.0)}, LIMITS, now=100.0, watched_since=95.0) == []


@pytest.mark.parametrize(
    ("beats", "states", "blamed"),
    [
        ({0: beat("comms"), 1: beat("comms")}, {0: "S", 1: "T"}, [1]),
        ({0: beat("comms"), 1: beat("comms")}, {0: "S", 1: "D"}, [1]),
        ({0: beat("comms"), 1: beat("backward")}, {0: "S", 1: "R"}, [1]),
        ({0: beat("comms", step=6), 1: beat("comms", step=5)}, {0: "S", 1: "S"}, [1]),
        ({0: beat("comms"), 1: beat("comms")}, {0: "S", 1: "S"}, []),
        ({0: beat("forward")}, {0: "R"}, []),
        ({0: beat("comms"), 1: beat("end", step=9)}, {0: "S", 1: "S"}, []),
    ],
)
def test_rank_that_stopped_is_distinguished_from_those_that_wait(
    beats: dict[int, Beat], states: dict[int, str], blamed: list[int]
) -> None:
    assert hung_ranks(beats, states) == blamed


def test_message_names_which_rank_waits_for_which() -> None:
    beats = {0: beat("comms"), 1: beat("backward")}
    states = {0: "S", 1: "T"}
    text = message(late(beats, LIMITS, now=20, watched_since=0), hung_ranks(beats, states), states)
    assert "rank 0 is in comms at step 5 since 20.0 s (limit 10.0 s; sleeping)" in text
    assert "The others wait for rank 1 (stopped by a signal)" in text


def test_message_names_the_communication_where_all_wait_in_it() -> None:
    beats = {0: beat("comms"), 1: beat("comms")}
    text = message(late(beats, LIMITS, now=20, watched_since=0), [], {0: "S", 1: "S"})
    assert text.endswith("the communication hangs")
