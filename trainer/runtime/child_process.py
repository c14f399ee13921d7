"""Run a child process with time and memory limits; a crash or hang affects only its own result.

The program gets a session of its own, files instead of pipes for its output, and a time limit. At the end
everything it started is killed. The process group alone would not do: torchrun puts each rank in a session
of its own. So every descendant is also found by a mark in the environment it inherited.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from trainer.runtime.memory_limit import Watched

MARK = "TRAINER_PROBE_MARK"
OUTPUT_LIMIT_BYTES = 1 << 20
REAP_SECONDS = 5.0


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """End of a program. `returncode` is negative for a signal, None for a process that would not die."""

    returncode: int | None
    timed_out: bool
    stdout: str
    stderr: str
    seconds: float
    filled_bytes: int | None = None  # what it and its children held when they were killed for it

    @property
    def signal_name(self) -> str | None:
        """The signal that ended the program (`SIGSEGV`), if one did."""
        if self.returncode is None or self.returncode >= 0:
            return None
        try:
            return signal.Signals(-self.returncode).name
        except ValueError:  # real-time signals have numbers only
            return f"signal {-self.returncode}"

    def stderr_tail(self, lines: int = 20) -> str:
        """Return the last lines of stderr, where a failure usually gives its reason."""
        return "\n".join(self.stderr.splitlines()[-lines:])


def run_limited(
    argv: Sequence[str], *, seconds: float, env: Mapping[str, str] | None = None, memory_bytes: int | None = None
) -> Outcome:
    """Run `argv` for at most `seconds`, then kill all that it started, however it ended.

    With `memory_bytes` it is killed, too, once it and its children hold more than that of host memory.

    Args:
        argv: the command, its program first.
        seconds: time limit.
        env: the whole environment; None inherits this process's.
        memory_bytes: limit of host memory, children included; None for no limit.

    Raises:
        OSError: when the program cannot be started at all.
    """
    mark, started = uuid.uuid4().hex, time.monotonic()
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        process = subprocess.Popen(
            argv,
            env=_marked_environment(os.environ if env is None else env, mark),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
        watched = Watched(pid=process.pid, limit_bytes=memory_bytes)
        timed_out, returncode = _wait(process, mark, seconds, watched)
        return Outcome(
            returncode=returncode,
            timed_out=timed_out,
            stdout=_text(stdout),
            stderr=_text(stderr),
            seconds=time.monotonic() - started,
            filled_bytes=watched.filled_bytes,
        )


def _marked_environment(env: Mapping[str, str], mark: str) -> dict[str, str]:
    # A nested run keeps the outer mark, so that the outer limit reaches its processes too.
    return {**env, MARK: f"{env.get(MARK, '')}/{mark}"}


def _wait(process: subprocess.Popen[bytes], mark: str, seconds: float, watched: Watched) -> tuple[bool, int | None]:
    deadline, timed_out = time.monotonic() + seconds, False
    try:
        watched.raise_oom_score()
        while _runs(process, watched.patience(deadline)):
            timed_out = time.monotonic() >= deadline
            if timed_out or watched.is_full():
                break
    finally:  # an interrupt of this process must not leave the other one behind
        returncode = _end(process, mark)
    return timed_out, returncode


def _runs(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return True
    return False


def _end(process: subprocess.Popen[bytes], mark: str) -> int | None:
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    kill_marked(mark)
    try:
        return process.wait(timeout=REAP_SECONDS)
    except subprocess.TimeoutExpired:  # stuck in the driver (state D): SIGKILL waits until the driver returns
        return None


def kill_marked(mark: str) -> None:
    """Kill every process that has `mark` in the environment it was started with."""
    deadline = time.monotonic() + REAP_SECONDS
    while (pids := _marked(mark)) and time.monotonic() < deadline:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def _marked(mark: str) -> list[int]:
    needle = mark.encode()
    return [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/environ") if needle in _bytes(path)]


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it ended meanwhile, or belongs to another user
        return b""


def _text(file: IO[bytes]) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - OUTPUT_LIMIT_BYTES))
    return file.read().decode(errors="replace")
