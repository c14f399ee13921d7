"""`./invokew watch`: the cards now, as a table that is redrawn or as JSON lines; a run's events next to them."""

from __future__ import annotations

import math
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rocmatrix.cli.commands.common import print_json_line
from rocmatrix.cli.commands.doctor import TREE, tree
from rocmatrix.cli.options.command import command
from rocmatrix.runtime.console import say
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.input.named_path import expanded
from rocmatrix.runtime.option import option

if TYPE_CHECKING:
    from types import FrameType

    from rich.console import Console

    from rocmatrix.host.sysfs import Files
    from rocmatrix.host.watch import snapshot
    from rocmatrix.host.watch.run_events import Event, Follower

LEAST_SECONDS, MOST_SECONDS = 0.1, 86_400.0


@dataclass(frozen=True, kw_only=True)
class Watch:
    """Options of `watch`."""

    once: bool = option("print one snapshot, then exit", default=False)
    every: float = option("seconds between two snapshots", default=2.0, metavar="SECONDS")
    json: bool = option("print JSON lines, as on a pipe; what is not reported is null", default=False)
    run: str = option("a run's folder, such as TRAINING/NAME: its events, next to the cards", metavar="PATH")
    sysfs: str = option(TREE, metavar="PATH")


@command(
    Watch,
    about="Show the cards now: load, memory, temperature, power, clocks, throttling, link, processes.",
    examples=("./invokew watch --run TRAINING/NAME", "./invokew watch --json --every 10 > cards.jsonl"),
)
def watch(args: Watch) -> None:
    """Look at the cards until Ctrl-C, which ends it with status 0. Raises RM301, RM310, RM404, RM427."""
    from rocmatrix.host.watch import snapshot

    if not LEAST_SECONDS <= args.every <= MOST_SECONDS or math.isnan(args.every):
        what = f"--every takes {LEAST_SECONDS} to {MOST_SECONDS:.0f} seconds, not {args.every}"
        raise RocmatrixError("RM404", what=what, next="Give --every a number of seconds, such as 2.")
    files, source = _tree(args)
    run = _run(args.run)
    cards = snapshot.Watch(files)
    if not cards.machine.cards:
        _report_none(cards, files, run)
    session = Session(cards=cards, run=run, source=source)
    try:
        with _ended_by_sigterm():
            show(session, args)
    except KeyboardInterrupt:
        say()


@dataclass(frozen=True, kw_only=True)
class Session:
    """A watch: the cards, a run where one was named, and where the cards are read from."""

    cards: snapshot.Watch
    run: Follower | None
    source: str

    def data(self) -> Iterator[Event]:
        """Yield one snapshot as plain data: the cards, then the run's new events."""
        from rocmatrix.host.watch.described import described

        yield described(self.cards.take(), source=self.source)
        for event in self.run.events() if self.run else ():
            state = self.run.state if self.run else ""
            yield {"event": "run", "run": self.run.final.name if self.run else "", "state": state, "record": event}

    def lines(self, seen: list[Event], *, width: int) -> list[str]:
        """Return one snapshot as lines; the run's new events are added to `seen`.

        Args:
            seen: events of the run so far, newest last.
            width: columns of the terminal.
        """
        from rocmatrix.host.watch import frame
        from rocmatrix.runtime import text_table

        lines = frame.lines(self.cards.take(), width=width, source=self.source)
        if self.run:
            seen += self.run.events()
            del seen[:-100]
            lines += ["", *(part for line in self.run.words(seen) for part in text_table.wrapped(line, width))]
        return lines


def show(session: Session, args: Watch) -> None:
    """Print snapshots in the form that was asked for, or that the standard output takes."""
    from rocmatrix.runtime import text_table

    seen: list[Event] = []
    if args.json or not (sys.stdout.isatty() or args.once):
        for _ in _times(args):
            for event in session.data():
                print_json_line(event)
    elif args.once:
        print("\n".join(session.lines(seen, width=text_table.width())))
    else:
        _draw(session, args, seen)


def _draw(session: Session, args: Watch, seen: list[Event]) -> None:
    """Draw each snapshot over the one before; on a terminal that cannot, below it."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console(highlight=False)
    if console.is_dumb_terminal:
        for _ in _times(args):
            print("\n".join(session.lines(seen, width=console.width)), flush=True)
        return
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
        for _ in _times(args):
            live.update(Text("\n".join(session.lines(seen, width=_columns(console)))), refresh=True)


def _columns(console: Console) -> int:
    """Return the terminal's columns now: a person may have changed its size."""
    return console.size.width


def _times(args: Watch) -> Iterator[None]:
    """Yield at each moment for a snapshot: at once, then every so many seconds."""
    due = time.monotonic()
    while True:
        yield
        if args.once:
            return
        due = max(due + args.every, time.monotonic())
        time.sleep(due - time.monotonic() if due > time.monotonic() else 0)


def _tree(args: Watch) -> tuple[Files, str]:
    from rocmatrix.host import simulated
    from rocmatrix.host.sysfs import Files

    if args.sysfs:
        return Files(tree(args.sysfs)), "recorded tree"
    root = simulated.root()
    return (Files(root), "simulated machine") if root else (Files(Path("/")), "this machine")


def _run(folder: str) -> Follower | None:
    from rocmatrix.host.watch import run_events

    if not folder:
        return None
    found = run_events.run_of(expanded(folder))
    if found is None:
        raise RocmatrixError("RM427", what="no run is in this folder, and none was begun there", where=folder)
    return found


def _report_none(cards: snapshot.Watch, files: Files, run: Follower | None) -> None:
    """Report that there is no card; the run alone is followed where one was named. Raises RM301."""
    from rocmatrix.host.pci_device import other_makers

    machine = cards.machine
    others = other_makers(files)
    what = machine.unusable or machine.reason or "no AMD card was found"
    if others or machine.nvidia:
        what += f"; of other makers: {', '.join(others) or 'NVIDIA (/dev/nvidia*)'}, which this command does not read"
    if run is None:
        raise RocmatrixError("RM301", what=what, next="Run `./invokew doctor`: it examines driver and cards.")
    say(f"no card is watched: {what}")


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """End by SIGTERM as by Ctrl-C, with status 143: a terminal gets its cursor back."""

    def end(number: int, frame: FrameType | None) -> None:
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
