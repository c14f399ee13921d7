from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trainer.distributed.watchdog.heartbeat import SECTIONS, Beat
from trainer.distributed.watchdog.timeouts import LEARNED_AFTER, PATIENCE, Limits

LIMITS = Limits(floor=2.0, ceiling=100.0)


def beat(passes: int = LEARNED_AFTER, **longest: float) -> Beat:
    return Beat(
        pid=1,
        step=0,
        section="start",
        entered=0.0,
        passes=dict.fromkeys(SECTIONS, passes),
        longest={name: longest.get(name, 0.0) for name in SECTIONS},
    )


def test_ceiling_holds_before_enough_passes() -> None:
    assert LIMITS.of(beat(passes=LEARNED_AFTER - 1, forward=0.1), "forward") == 100


def test_afterwards_the_longest_stay_counts_between_floor_and_ceiling() -> None:
    assert LIMITS.of(beat(forward=1.5), "forward") == PATIENCE * 1.5
    assert LIMITS.of(beat(forward=0.001), "forward") == 2
    assert LIMITS.of(beat(forward=60), "forward") == 100


def test_rank_that_waits_for_others_is_given_their_time_too() -> None:
    known = beat(backward=1.0, comms=0.5)
    assert LIMITS.of(known, "comms") == PATIENCE * 1.5
    assert (LIMITS.of(known, "comms") or 0) > (LIMITS.of(known, "backward") or 0)


def test_start_has_the_ceiling_and_the_end_no_limit() -> None:
    assert LIMITS.of(beat(start=0.1), "start") == 100
    assert LIMITS.of(beat(), "end") is None


@given(
    section=st.sampled_from([name for name in SECTIONS if name != "end"]),
    passes=st.integers(0, 50),
    longest=st.floats(0, 1e6),
    floor=st.floats(0.1, 10),
    span=st.floats(0, 1e4),
)
def test_absent_limit_leaves_floor_and_ceiling(
    section: str, passes: int, longest: float, floor: float, span: float
) -> None:
    limits = Limits(floor=floor, ceiling=floor + span)
    limit = limits.of(beat(passes=passes, **dict.fromkeys(SECTIONS, longest)), section)
    assert limit is not None
    assert floor <= limit <= floor + span
