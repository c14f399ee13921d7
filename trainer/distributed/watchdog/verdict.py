"""Finding from heartbeats: which rank is late, and which of the late ones stopped by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trainer.distributed.watchdog.heartbeat import Beat
from trainer.distributed.watchdog.process_state import STATES
from trainer.distributed.watchdog.timeouts import Limits

STOPPED = ("T", "t", "D")


@dataclass(frozen=True, kw_only=True)
class LateRank:
    """A rank beyond its limit: where it is, for how many seconds, and how many were allowed."""

    rank: int
    section: str
    step: int
    seconds: float
    limit: float


def late(beats: Mapping[int, Beat], limits: Limits, *, now: float, watched_since: float) -> list[LateRank]:
    """Return the ranks that are beyond their limit at `now`, seconds of the monotonic clock.

    Time before `watched_since` is not held against them: the watcher did not run then, perhaps since all was paused.

    Args:
        beats: last heartbeat by rank.
        now: seconds of the monotonic clock.
        watched_since: start of the present watch, on the same clock.
    """
    found = []
    for rank, beat in sorted(beats.items()):
        limit, seconds = limits.of(beat, beat.section), now - max(beat.entered, watched_since)
        if limit is not None and seconds > limit:
            found.append(LateRank(rank=rank, section=beat.section, step=beat.step, seconds=seconds, limit=limit))
    return found


def hung_ranks(beats: Mapping[int, Beat], states: Mapping[int, str]) -> list[int]:
    """Return the ranks that stopped by themselves, as opposed to those that wait for them; empty if none stands out.

    In this order: ranks that Linux calls stopped; ranks that are not in `comms` while others are; ranks at the
    lowest step. Where all ranks wait in `comms` at the same step, it is the communication that hangs.
    """
    running = {rank: beat for rank, beat in beats.items() if beat.section != "end"}
    stopped = [rank for rank in running if states.get(rank) in STOPPED]
    elsewhere = [rank for rank, beat in running.items() if beat.section != "comms"]
    behind = [rank for rank, beat in running.items() if beat.step < max(b.step for b in running.values())]
    return next((ranks for ranks in (stopped, elsewhere, behind) if 0 < len(ranks) < len(running)), [])


def message(late_ranks: list[LateRank], blamed: list[int], states: Mapping[int, str]) -> str:
    """Return the finding as one sentence or two for a person.

    Args:
        late_ranks: ranks beyond their limit.
        blamed: ranks that the others wait for.
        states: state of each rank's process, as text.
    """
    reported = [
        f"rank {each.rank} is in {each.section} at step {each.step} since {each.seconds:.1f} s"
        f" (limit {each.limit:.1f} s; {STATES.get(states.get(each.rank, ''), 'gone')})"
        for each in late_ranks
    ]
    if blamed:
        who = ", ".join(f"rank {rank} ({STATES.get(states.get(rank, ''), 'gone')})" for rank in blamed)
        return f"{'; '.join(reported)}. The others wait for {who}"
    if len(late_ranks) > 1 and {each.section for each in late_ranks} == {"comms"}:
        return f"{'; '.join(reported)}. All wait for each other: the communication hangs"
    return "; ".join(reported)
