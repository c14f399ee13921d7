"""The watcher's process: `python -m trainer.distributed.watchdog.watcher`, started by the first rank of a machine.

It imports no torch, so that it starts at once and costs a few megabytes. It ends with the rank that started it,
whose end closes its standard input.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import select
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from trainer.distributed.watchdog import process_state
from trainer.distributed.watchdog.card_events import CardEvents, sentence, watch_cards
from trainer.distributed.watchdog.heartbeat import Beat, read_beat
from trainer.distributed.watchdog.timeouts import Limits
from trainer.distributed.watchdog.verdict import LateRank, hung_ranks, late, message
from trainer.runtime.errors import TrainerError
from trainer.runtime.events import emit, say

DUMP_SIGNAL = signal.SIGUSR2  # SIGUSR1 is what Slurm sends before it ends a job
DUMP_SECONDS = 3.0
PAUSED_SECONDS = 2.0  # a gap this long between two looks means that the watcher itself was stopped


@dataclass(frozen=True, kw_only=True)
class Watch:
    """Subject of the watcher: the folder of the attempt with a heartbeat and a file for stacks of each of `ranks`."""

    folder: Path
    ranks: tuple[int, ...]
    limits: Limits
    attempt: int = 0
    restarts: int = 0  # how many the launcher allows in all
    interval: float = 0.2

    def beat_file(self, rank: int) -> Path:
        """Return the file of the rank's heartbeat."""
        return self.folder / f"rank{rank}.beat"

    def stack_file(self, rank: int) -> Path:
        """Return the file that receives the rank's stacks."""
        return self.folder / f"rank{rank}.stacks.txt"


def watch(task: Watch) -> int:
    """Look until the starter ends (0) or a rank hangs (3: all ranks here were ended). Reports resets of cards."""
    begun = looked = time.monotonic()
    events = watch_cards()
    while not _starter_ended(task.interval):
        now = time.monotonic()
        if now - looked > task.interval + PAUSED_SECONDS:
            begun = now
        looked = now
        beats = read_all(task)
        events.poll()
        if found := late(beats, task.limits, now=now, watched_since=begun):
            end_ranks(task, beats, found, events)
            return 3
    report_resets(events)
    return 0


def report_resets(events: CardEvents) -> None:
    """Report cards that were reset while ranks ran: a rank that such a reset ends leaves no message."""
    events.poll()
    resets = events.resets()
    if resets:
        emit("card_reset", what=sentence(resets), events=[asdict(event) for event in events.seen])
        say(f"watchdog: {sentence(resets)}.")
    events.close()


def read_all(task: Watch) -> dict[int, Beat]:
    """Return the heartbeats of the ranks that are there; the launcher handles one that has ended."""
    beats = {rank: read_beat(task.beat_file(rank)) for rank in task.ranks}
    return {rank: beat for rank, beat in beats.items() if beat and process_state.alive(beat.pid)}


def end_ranks(task: Watch, beats: Mapping[int, Beat], found: list[LateRank], events: CardEvents) -> None:
    """Dump the stacks of every rank here, say what was found, and kill them: SIGKILL ends stopped ones, too.

    Args:
        beats: last heartbeat by rank.
        found: ranks beyond their limit.
        events: what the kernel reported of the cards since the watch began.
    """
    states = {rank: process_state.state(beat.pid) for rank, beat in beats.items()}
    blamed = hung_ranks(beats, states)
    stacks = dump(task, beats, states)
    events.poll()
    report(task, beats, found, states=states, blamed=blamed, stacks=stacks, events=events)
    events.close()
    for beat in beats.values():
        with contextlib.suppress(ProcessLookupError):
            os.kill(beat.pid, signal.SIGKILL)


def dump(task: Watch, beats: Mapping[int, Beat], states: Mapping[int, str]) -> dict[int, str]:
    """Make each rank write its stacks; return for each the file, or why there is none.

    The handler is C code that needs no GIL. A stopped rank is continued, or it would never handle the signal.

    Args:
        beats: last heartbeat by rank.
        states: state of each rank's process, as text.
    """
    for rank, beat in beats.items():
        with contextlib.suppress(ProcessLookupError):
            os.kill(beat.pid, DUMP_SIGNAL)
            if states[rank] == "T":
                os.kill(beat.pid, signal.SIGCONT)
    deadline = time.monotonic() + DUMP_SECONDS
    while time.monotonic() < deadline and not all(map(_written, map(task.stack_file, beats))):
        time.sleep(0.02)
    missing = f"none within {DUMP_SECONDS:g} s"
    return {rank: str(path) if _written(path := task.stack_file(rank)) else missing for rank in beats}


def report(
    task: Watch,
    beats: Mapping[int, Beat],
    found: list[LateRank],
    *,
    states: Mapping[int, str],
    blamed: list[int],
    stacks: Mapping[int, str],
    events: CardEvents,
) -> None:
    """Write hang.json next to the stacks, one event to stdout, text to stderr; the last attempt's is an error.

    Args:
        beats: last heartbeat by rank.
        found: ranks beyond their limit.
        states: state of each rank's process, as text.
        blamed: ranks that the others wait for.
        stacks: file with the stacks of each rank, or the reason for which there is none.
        events: what the kernel reported of the cards since the watch began.
    """
    record: dict[str, Any] = {
        "attempt": task.attempt,
        "restarts_allowed": task.restarts,
        "late": [asdict(each) for each in found],
        "blamed": blamed,
        "ranks": {rank: _rank_record(beat, states[rank]) for rank, beat in beats.items()},
        "stacks": dict(stacks),
        "cards": process_state.cards(),
        "card_events": [asdict(event) for event in events.seen],
    }
    (task.folder / "hang.json").write_text(json.dumps(record, indent=2) + "\n")
    what = ". ".join(filter(None, [message(found, blamed, states), sentence(events.resets())]))
    left = task.restarts - task.attempt
    if left > 0:
        emit("hang", what=what, folder=str(task.folder), blamed=blamed, restarts_left=left)
        say(f"watchdog: {what}. Stacks are in {task.folder}; ended, to be started again ({left} left).")
        return
    why = f"it was started again {task.restarts} times before" if task.restarts else "no restart was allowed"
    error = TrainerError("RM560", what=what, where=str(task.folder), why=why)
    emit("error", **error.parts())
    say(error.render())


def _rank_record(beat: Beat, state: str) -> dict[str, Any]:
    meaning = process_state.STATES.get(state, state)
    return {**asdict(beat), "state": state, "meaning": meaning, "kernel": process_state.kernel_function(beat.pid)}


def _written(path: Path) -> bool:
    """Return whether the file holds a whole dump: faulthandler ends each with the main thread's last frame."""
    return path.exists() and path.stat().st_size > 0


def _starter_ended(seconds: float) -> bool:
    """Wait `seconds`, or less if the starter ends; the pipe stays open while it is merely stopped."""
    readable, _, _ = select.select([sys.stdin], [], [], seconds)
    return bool(readable) and not os.read(sys.stdin.fileno(), 1)


def main(argv: Sequence[str] | None = None) -> int:
    """Read the flags that `guard` gives, and watch."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--ranks", type=lambda text: tuple(map(int, text.split(","))), required=True)
    parser.add_argument("--floor", type=float, required=True)
    parser.add_argument("--ceiling", type=float, required=True)
    parser.add_argument("--attempt", type=int, default=0)
    parser.add_argument("--restarts", type=int, default=0)
    given = vars(parser.parse_args(argv))
    limits = Limits(floor=given.pop("floor"), ceiling=given.pop("ceiling"))
    for number in (signal.SIGINT, signal.SIGTERM):  # Ctrl-C reaches the whole group; the ranks' end is what counts
        signal.signal(number, signal.SIG_IGN)
    return watch(Watch(limits=limits, **given))


if __name__ == "__main__":
    sys.exit(main())
