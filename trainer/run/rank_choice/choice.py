"""Decision of `--ranks auto` before the run begins: by one trial of one rank and one of all cards.

The trials are processes of their own, in a folder that is removed with all they wrote. What follows is the run that
`--ranks N` would be: its command line with the chosen number, and a record of what was measured. Imports no torch.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from trainer.config.sections.run import RunConfig
from trainer.config.train import TrainConfig
from trainer.distributed import torchrun
from trainer.runtime.child_process import Outcome, run_limited
from trainer.runtime.events import emit, say
from trainer.runtime.signals import ends_on_sigterm
from trainer.storage.run_folder import folder_of, to_resume

TRIAL = "TRAINER_RANK_TRIAL"  # set for a trial: the folder that it may write to
LOOK = "TRAINER_RANK_TRIAL_LOOK"  # set where it is to count cards, and to measure nothing
CARDS, RATE = "rank-trial-cards", "rank-trial-rate"  # events of a trial
FASTER = 1.1  # times the rows a second of one rank, or all cards are not taken: a trial differs from the next by less
FEWEST_BATCHES = 10  # of an epoch, for a larger batch to be worth a thought
ONE_LIMIT, MORE_LIMIT, TIMES = 3600.0, 300.0, 3.0  # seconds; the second trial may take TIMES the first's, and MORE
OUT_OF_MEMORY = ("RM521", "RM523", "RM569", "RM586")


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Result of a trial: `cards` and `rate` as its events state them, None where they are missing."""

    cards: dict[str, Any] | None
    rate: dict[str, Any] | None
    fault: str
    code: str
    seconds: float

    @property
    def too_large(self) -> bool:
        """Whether it ended because memory ran out."""
        return self.rate is None and self.code in OUT_OF_MEMORY


@dataclass(frozen=True, kw_only=True)
class RankChoice:
    """The number of ranks, why, and the figures of both trials; `stand_in` where ranks on a CPU imitated cards."""

    ranks: int
    reason: str
    one: dict[str, Any] | None = None
    all: dict[str, Any] | None = None
    stand_in: bool = False
    margin: float = FASTER


def resolved_ranks(words: Sequence[str], config: TrainConfig) -> list[str]:
    """Return the command line of `train` with the number of ranks that `auto` comes to, and the record of why.

    Args:
        words: the trainer's command line, its flags spelled as ours.

    Raises:
        TrainerError: RM550, RM555 where a run is to be resumed and is not there, or runs.
    """
    choice = choose(words, config)
    emit("ranks", **asdict(choice))
    say(f"ranks   {choice.ranks}: {choice.reason}")
    return [*without_ranks(words), f"--ranks={choice.ranks}", f"--rank-choice={json.dumps(asdict(choice))}"]


def choose(words: Sequence[str], config: TrainConfig) -> RankChoice:
    """Return the choice: an unfinished run keeps its number, a new one is measured.

    Args:
        words: the trainer's command line.
    """
    before = ranks_before(config.run)
    with ends_on_sigterm(), scratch(config.run.output) as folder:
        if before is not None:
            return kept(before, trial(words, 1, folder, limit=ONE_LIMIT, look=True))
        say("ranks   auto: one rank is measured for some seconds, then all cards")
        one = trial(words, 1, folder, limit=ONE_LIMIT)
        cards = (one.cards or {}).get("cards", 1)
        if cards == 1 or not (one.rate or one.too_large):
            return single_rank(one)
        report(one, 1)
        more = trial(words, cards, folder, limit=MORE_LIMIT + TIMES * one.seconds)
        report(more, cards)
        return decided(one, more, cards)


def ranks_before(config: RunConfig) -> int | None:
    """Return the ranks of the unfinished run that is to be resumed; None where none is, or it does not state them."""
    if not config.resume or not (name := to_resume(config.output, config.resume, config.run)):
        return None
    stored = folder_of(config.output, name).settings(lambda found: found if isinstance(found, dict) else None)
    ranks = (stored or {}).get("world_size")
    return ranks if isinstance(ranks, int) and ranks >= 1 else None


def kept(before: int, seen: Trial) -> RankChoice:
    """Return the number that the unfinished run had, at most as many as there are cards now; a CPU sets no limit."""
    found = seen.cards or {}
    cards = before if found.get("stand_in") else found.get("cards", before)
    here = "" if cards >= before else f"; {cards} can be started now"
    reason = f"the run to resume was trained by {before}{here}; nothing was measured"
    return RankChoice(ranks=min(before, cards), reason=reason)


def single_rank(one: Trial) -> RankChoice:
    """Return one rank, where there is nothing to compare it with."""
    found = one.cards or {}
    if found.get("cards") == 1:
        return RankChoice(ranks=1, reason=f"{found['why']}; nothing was measured")
    return RankChoice(ranks=1, reason=f"the trial of one rank came to no figure: {one.fault}")


def decided(one: Trial, more: Trial, cards: int) -> RankChoice:
    """Return what two trials come to.

    Args:
        cards: number of ranks in the second.
    """
    stand_in = bool((one.cards or {}).get("stand_in"))
    ranks, reason = verdict(one, more, cards)
    note = " (a stand-in: gloo ranks on the CPU; no card was measured)" if stand_in else ""
    return RankChoice(ranks=ranks, reason=reason + note, one=one.rate, all=more.rate, stand_in=stand_in)


def verdict(one: Trial, more: Trial, cards: int) -> tuple[int, str]:
    """Return the number of ranks and the reason as a sentence.

    Args:
        cards: number of ranks in the second trial.
    """
    if more.rate is None:
        return 1, f"{cards} ranks came to no figure: {more.fault}"
    if one.rate is None:
        return cards, f"one rank came to no figure: {one.fault}"
    times = more.rate["rows_per_second"] / one.rate["rows_per_second"]
    figures = (
        f"{cards} ranks train {more.rate['rows_per_second']:,.0f} rows/s, one {one.rate['rows_per_second']:,.0f}, at "
        f"the same batch of {one.rate['batch_size']:,}: {times:.2f} times, and {FASTER:g} is asked for"
    )
    return (cards, figures) if times >= FASTER else (1, figures + advice(one.rate, more.rate, cards))


def advice(one: dict[str, Any], more: dict[str, Any], cards: int) -> str:
    """Return what all cards would do with as many rows on each as one has alone; empty where that gains nothing.

    Args:
        one: rate of one rank.
        more: rate of all, with `larger` where that was measured.
        cards: number of ranks in the second trial.
    """
    larger = more.get("larger")
    if not larger or larger["rows_per_second"] < FASTER * one["rows_per_second"]:
        return ""
    return (
        f". With --batch-size {larger['batch_size']} --ranks {cards} it would be {larger['rows_per_second']:,.0f}, "
        "which is another training: fewer steps an epoch"
    )


def report(done: Trial, ranks: int) -> None:
    """Print what a trial found.

    Args:
        ranks: number of its ranks.
    """
    if done.rate is None:
        say(f"ranks   {ranks}: no figure; {done.fault}")
        return
    found = done.rate
    comms = f", {found['comms']}" if "comms" in found else ""
    how = f"{found['step']} steps{comms}"
    say(f"ranks   {ranks}: {found['rows_per_second']:,.0f} rows/s, batch {found['batch_size']:,} ({how})")


def trial(words: Sequence[str], ranks: int, folder: Path, *, limit: float, look: bool = False) -> Trial:
    """Run a trial to its end; nothing of it is left but its events.

    Args:
        words: the trainer's command line.
        ranks: number of its ranks.
        folder: folder that it may write to.
        limit: time limit in seconds.
        look: count cards only.
    """
    arguments = [*without_ranks(words), f"--ranks={ranks}"]
    plain = [sys.executable, "-m", "trainer", *arguments]
    argv = plain if ranks == 1 else torchrun.command(arguments, ranks=ranks, max_restarts=0)
    environment = {**os.environ, TRIAL: str(folder)} | ({LOOK: "1"} if look else {})
    return read(run_limited(argv, seconds=limit, env=environment), limit)


def read(outcome: Outcome, limit: float) -> Trial:
    """Return a trial by its events; text among them is passed over.

    Args:
        limit: time limit in seconds that it ran under.
    """
    events = [event for line in outcome.stdout.splitlines() if (event := parsed(line)) is not None]
    found = {event.pop("event"): event for event in events}
    error = found.get("error", {})
    ended = f"not at its end after {limit:g} s" if outcome.timed_out else f"ended with status {outcome.returncode}"
    words = " ".join(str(error[part]) for part in ("code", "what", "why") if error.get(part))
    return Trial(
        cards=found.get(CARDS),
        rate=found.get(RATE),
        fault=words or ended,
        code=str(error.get("code", "")),
        seconds=outcome.seconds,
    )


def parsed(line: str) -> dict[str, Any] | None:
    """Return a line as an event, None for any other line."""
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) and isinstance(event.get("event"), str) else None


def without_ranks(words: Sequence[str]) -> list[str]:
    """Return a command line without the number of ranks, given as a flag or by --set."""
    left, rest = [], list(words)
    while rest:
        word = rest.pop(0)
        flag, equals, value = word.partition("=")
        value = value if equals else (rest[0] if rest else "")
        if flag == "--ranks" or (flag == "--set" and value.startswith("ranks.ranks=")):
            rest = rest if equals else rest[1:]
        else:
            left.append(word)
    return left


@contextlib.contextmanager
def scratch(output: Path) -> Iterator[Path]:
    """Hand out a folder where the run will write, for rows on disk; it is removed, and what was made for it.

    Args:
        output: parent of the run's folder; made where it is absent, and removed again.

    Raises:
        OSError: where it cannot be written.
    """
    made = [each for each in (output, *output.parents) if not each.exists()]
    output.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(prefix=".ranks-", dir=output) as folder:
            yield Path(folder).absolute()
    finally:
        for each in made:
            with contextlib.suppress(OSError):  # another program put something there
                each.rmdir()
