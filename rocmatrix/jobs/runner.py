"""Choice of container or native for a job, with the reason, and a program run to its end with its events.

The trainer is reached through an argument list, a mounted folder and JSON lines on its standard
output; its progress goes to standard error and on to the terminal.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

from rocmatrix.jobs import log as job_log
from rocmatrix.jobs import stderr_tee
from rocmatrix.jobs.programs import BENCH
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.trouble import Stage, Trouble

if TYPE_CHECKING:
    from rocmatrix.containers.runspec import Explanation

Where = Literal["container", "native"]
SECONDS_IF_SENT_TO_BOTH = 3.0  # Ctrl-C reaches every program of the terminal
SECONDS_IF_SENT_HERE = 0.3  # a scheduler may send its signal to the first process alone
SECONDS_TO_END = 45.0  # torchrun gives its ranks 30 s for a checkpoint before it kills them
SENT = ("SIGTERM", "SIGHUP")
Event = dict[str, Any]
Stop = Callable[["subprocess.Popen[str]", BaseException], None]
_WRONG_USAGE = ("RM500", "RM525", "RM590")  # the trainer's: a flag, a benchmark, a probe that it does not know
# The trainer's, before its `start`: settings, a data file or a run's folder of the person's, with which nothing is run.
_WRONG_INPUT = re.compile(
    r"RM(50[2-5]|50[78]|51\d|52[469]|540|54[4-6]|548|55[015-7]|563|57\d|58[0-4]|70\d|71[0-57]|73[0-2])"
)
# The trainer's own words for how the host ended it, whenever that was.
_OF_THE_HOST: Mapping[str, Stage] = {
    **dict.fromkeys(("RM541", "RM542", "RM543"), "disk"),
    **dict.fromkeys(("RM545", "RM554", "RM598"), "signal"),
}


@dataclass(frozen=True, kw_only=True)
class Decision:
    """Container or native, and the reason."""

    where: Where
    why: str


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job ready to start, wherever it runs: files that are to be written first, then one command.

    `environment` is None where the engine or the scheduler sets it; `why` states how this came about, `rows`
    why each setting of its container is there.
    """

    argv: list[str]
    environment: dict[str, str] | None
    why: str
    files: Mapping[Path, str] = field(default_factory=dict)
    rows: tuple[Explanation, ...] = ()

    @property
    def summary(self) -> str:
        """What would happen: each file with its name, and the command as it would be typed."""
        own = {name: value for name, value in (self.environment or {}).items() if os.environ.get(name) != value}
        command = [*(["env"] if own else []), *(f"{name}={value}" for name, value in own.items()), *self.argv]
        files = (f"# {path}\n{text}" for path, text in self.files.items())
        return "\n".join([*files, shlex.join(command)])


@dataclass(frozen=True, kw_only=True)
class Container:
    """A container as the engine inspected it: the image that it was made of, and the labels that it has from it.

    `sealed` is whether the image's labels were written for its own layers; an image derived from it has them, too.
    """

    id: str
    image: str
    labels: Mapping[str, str]
    sealed: bool


@dataclass(frozen=True, kw_only=True)
class Finished:
    """A job that has ended: its exit status, the events it sent, in order, and the end of its standard error.

    `log` is the file with its output, None where none could be kept whole. `container` is what it ran in, None for a
    native job; `trouble` is set where the host ended it.
    """

    status: int
    events: tuple[Event, ...]
    stderr_tail: bytes = b""
    log: Path | None = None
    container: Container | None = None
    trouble: Trouble | None = None

    def last(self, name: str) -> Event | None:
        """Return the last event of a name, or None."""
        return next((event for event in reversed(self.events) if event.get("event") == name), None)

    @property
    def exit_status(self) -> int:
        """The status as a shell states it: 128 and the number of the signal that ended a process."""
        return self.status if self.status >= 0 else 128 - self.status

    @property
    def has_usage_error(self) -> bool:
        """Whether the program reported wrong usage: nothing was run."""
        return self._refused_with in _WRONG_USAGE

    @property
    def has_input_error(self) -> bool:
        """Whether a training reported that it refused its settings, data or folder before it began."""
        return bool(_WRONG_INPUT.fullmatch(self._refused_with))

    @property
    def _refused_with(self) -> str:
        """The code under which the program refused to begin; empty where it began."""
        began = any(event.get("event") in ("probe", "start") for event in self.events)
        return "" if began or self.status == 0 else str((self.last("error") or {}).get("code"))

    @property
    def host_trouble(self) -> Trouble | None:
        """What of the host ended it: as seen from outside, else by the training's own error code."""
        error = self.last("error") or {}
        stage = _OF_THE_HOST.get(str(error.get("code")))
        if self.trouble is not None or stage is None or self.status == 0:
            return self.trouble
        return Trouble(stage=stage, detail=f"{error.get('code')} {error.get('title')}")

    @property
    def was_complete(self) -> bool:
        """Whether a training found its run complete and took no step: started again, or resumed after its last one."""
        if self.status != 0 or self.last("epoch") is not None:
            return False
        resumed = self.last("resumed") or {}
        finished = self.last("done") is not None and resumed.get("from_start") is False
        return finished or (self.last("complete") is not None and self.last("start") is None)

    @property
    def inapplicable(self) -> bool:
        """Whether a bench reached its end, and nothing of what was chosen can be measured here."""
        statuses = {event.get("status") for event in self.events if event.get("event") == "probe"}
        return statuses == {"not-applicable"} and self.last(BENCH.name) is not None and self.status in (0, 1)


def decide(requested: str, *, cards: tuple[str, ...], engine: str | None, why_none: str | None = None) -> Decision:
    """Choose where to run. Raises RM404 for another value of `requested`.

    Args:
        requested: container, native, or auto: the container where an AMD card and an engine are found.
        cards: gfx names of the AMD cards found; empty for none.
        engine: what prevents a container; None if nothing does.
        why_none: why no card was found, for the reason printed; None where that is not known.
    """
    if requested == "container":
        return Decision(where="container", why="asked for with --in container")
    if requested == "native":
        return Decision(where="native", why="asked for with --in native")
    if requested != "auto":
        raise RocmatrixError("RM404", what=f"--in takes container, native or auto, not {requested!r}")
    if not cards:
        return Decision(
            where="native",
            why=f"no AMD GPU that a run could use{f' ({why_none})' if why_none else ''}; running natively",
        )
    if engine is not None:
        return Decision(where="native", why=f"an AMD card ({cards[0]}) is there, but no engine: {engine}")
    return Decision(where="container", why=f"an AMD card ({cards[0]}) and an engine were found")


def native_argv(python: str, arguments: list[str]) -> list[str]:
    """Return the command that runs the trainer with an interpreter of this machine."""
    return [python, "-P", "-m", "trainer", *arguments]


def native_environment(root: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with the checkout first on the module path, and the working folder not on it.

    Raises RM403 for a checkout that no module path can name.
    """
    if os.pathsep in str(root):
        what, why = "the trainer cannot be imported from here", f"PYTHONPATH ends a folder's name at {os.pathsep!r}"
        advice = f"Move the checkout to a folder without {os.pathsep!r} in its path, or use --in container."
        raise RocmatrixError("RM403", what=what, where=str(root), why=why, next=advice)
    path = os.pathsep.join(filter(None, [str(root), environment.get("PYTHONPATH", "")]))
    return {**environment, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"}


class Interrupted(KeyboardInterrupt):
    """A signal of a person's ended this program and the job with it; `finished` is how far the job had come.

    Its text is the signal's name; none for Ctrl-C.
    """

    def __init__(self, finished: Finished, signal_name: str = "") -> None:
        super().__init__(*filter(None, [signal_name]))
        self.finished = finished


def attached(
    argv: list[str],
    *,
    environment: Mapping[str, str] | None = None,
    show: Callable[[Event], None],
    log: Path | None = None,
    own_group_stop: Stop | None = None,
) -> Finished:
    """Run a program to its end and read its events. Raises Interrupted on a signal.

    Lines that are no JSON objects go to standard error: they are text, not events.

    Args:
        argv: the whole command.
        environment: all its variables; None for those of this process.
        show: called with each event as it arrives.
        log: file for all its output; None keeps none.
        own_group_stop: ends the program at a signal to this one, which a terminal does not send to it as well: it is in
            a group of processes of its own. None for a program in this one's group, which `end` waits for.
    """
    events: list[Event] = []
    try:
        with (
            job_log.opened(log) as kept,
            stderr_tee.tee_stderr(sys.stderr, kept.write) as stderr,
            _started(argv, environment, stderr.writable, own_group_stop) as process,
        ):
            assert process.stdout is not None
            for event in _events(process.stdout, kept.line):
                events.append(event)
                show(event)
    except KeyboardInterrupt as error:
        stopped = stopped_by_signal(Finished(status=130, events=tuple(events), log=log))
        raise Interrupted(stopped, str(error)) from error
    return Finished(
        status=process.returncode, events=tuple(events), stderr_tail=stderr.tail, log=log if kept.complete else None
    )


@contextmanager
def _started(
    argv: list[str], environment: Mapping[str, str] | None, stderr: int, own_group_stop: Stop | None
) -> Iterator[subprocess.Popen[str]]:
    """Run a program to its end; an interrupt or a termination of this one ends it, and is waited for.

    It begins with Ctrl-C blocked, which would end Python with a traceback before the trainer has its own answer to it.
    Raises RM201 when the engine's client is not installed.
    """
    group = None if own_group_stop is None else 0
    with interruptible():
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            process = subprocess.Popen(
                argv,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=environment,
                text=True,
                errors="replace",
                process_group=group,
            )
        except OSError as error:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            if not isinstance(error, FileNotFoundError):
                raise
            raise RocmatrixError("RM201", what=f"there is no `{error.filename}` command on the PATH") from error
        with process:
            try:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)  # one that came meanwhile is raised here
                yield process
            except BaseException as stop:
                (own_group_stop or end)(process, stop)
                raise


@contextmanager
def interruptible() -> Iterator[None]:
    """Let a termination, and a terminal that is closed, interrupt as Ctrl-C does; what is ignored stays ignored."""
    heeded = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) is not signal.SIG_IGN]
    previous = {number: signal.signal(number, _interrupt) for number in heeded}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def stopped_by_signal(finished: Finished | None = None) -> Finished:
    """Return the end of a job that a signal to this program ended, as far as it had come."""
    trouble = Trouble(stage="signal", detail="a signal to this program ended it")
    return replace(finished or Finished(status=130, events=()), status=130, trouble=trouble)


def _interrupt(number: int, _: object) -> None:
    raise KeyboardInterrupt(signal.Signals(number).name)


def end(process: subprocess.Popen[str], stop: BaseException) -> None:
    """Wait for a program that the signal has reached as well; signal one that was not reached, then kill it.

    Args:
        process: the program.
        stop: what the signal raised here; its text is the signal's name, none for Ctrl-C.
    """
    seconds = SECONDS_IF_SENT_HERE if str(stop) in SENT else SECONDS_IF_SENT_TO_BOTH
    for signal_sent in (None, signal.SIGTERM, signal.SIGKILL):
        if signal_sent is not None:
            process.send_signal(signal_sent)
        try:
            process.communicate(timeout=seconds if signal_sent is None else SECONDS_TO_END)
            return
        except subprocess.TimeoutExpired:
            continue


def _events(lines: IO[str], keep: Callable[[str], None]) -> Iterator[Event]:
    for line in lines:
        keep(line)
        event = _parsed(line)
        if event is None:
            sys.stderr.write(line)
        else:
            yield event


def _parsed(line: str) -> Event | None:
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) else None
