"""A rank's side of the watchdog: its heartbeat, its stack dump on a signal, and on one rank the watcher."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from trainer.distributed.watchdog.heartbeat import HeartbeatWriter
from trainer.distributed.watchdog.timeouts import Limits
from trainer.distributed.watchdog.watcher import DUMP_SIGNAL, Watch
from trainer.runtime.errors import TrainerError
from trainer.runtime.paths import SOURCE_ROOT

WATCHER = "trainer.distributed.watchdog.watcher"
END_SECONDS = 5.0


def launch_number(name: str, otherwise: int = 0) -> int:
    """Return a launcher's environment variable as a number, `otherwise` where it is not set.

    Raises:
        TrainerError: RM500 where it is set to something else.
    """
    text = os.environ.get(name, str(otherwise))
    if text.isascii() and text.isdigit():
        return int(text)
    what = f"the environment variable {name} is {text!r}, and a launcher such as torchrun sets it to a number"
    raise TrainerError("RM500", what=what, next=f"For a run of one process: env -u {name} …")


@dataclass(frozen=True, kw_only=True)
class Launch:
    """Launch parameters that torchrun passes by environment variables; a plain process is one rank of one."""

    rank: int = 0
    local_rank: int = 0
    local_world: int = 1
    attempt: int = 0
    restarts: int = 0

    @classmethod
    def from_environment(cls) -> Launch:
        """Return what torchrun set. Raises RM500 for a variable that is no number."""
        names = {
            "rank": "RANK",
            "local_rank": "LOCAL_RANK",
            "local_world": "LOCAL_WORLD_SIZE",
            "attempt": "TORCHELASTIC_RESTART_COUNT",
            "restarts": "TORCHELASTIC_MAX_RESTARTS",
        }
        return cls(**{field: launch_number(name) for field, name in names.items() if name in os.environ})

    @property
    def ranks_here(self) -> tuple[int, ...]:
        """The ranks of this machine: torchrun numbers them in a row."""
        first = self.rank - self.local_rank
        return tuple(range(first, first + self.local_world))


@contextlib.contextmanager
def guarded(folder: Path, *, limits: Limits | None) -> Iterator[HeartbeatWriter | None]:
    """Give a rank its heartbeat below `folder`, and have it watched; nothing of either where `limits` is None.

    Each attempt has a folder of its own, so that a restart leaves the stacks of the hang before it alone. What a
    healthy attempt leaves is removed.
    """
    if limits is None:
        yield None
        return
    launch = Launch.from_environment()
    here = folder / f"attempt{launch.attempt}"
    watch = Watch(
        folder=here,
        ranks=launch.ranks_here,
        limits=limits,
        attempt=launch.attempt,
        restarts=launch.restarts,
    )
    with contextlib.ExitStack() as stack:
        stack.callback(_remove_if_empty, here)
        heartbeat = stack.enter_context(HeartbeatWriter(watch.beat_file(launch.rank)))
        stack.callback(watch.beat_file(launch.rank).unlink, missing_ok=True)
        stack.enter_context(stacks_on_signal(watch.stack_file(launch.rank)))
        if launch.local_rank == 0:
            stack.enter_context(watcher(watch))
        yield heartbeat


@contextlib.contextmanager
def stacks_on_signal(path: Path) -> Iterator[None]:
    """Write the stacks of all threads to `path` on DUMP_SIGNAL, by C code that needs no GIL."""
    with path.open("w") as file:
        faulthandler.register(DUMP_SIGNAL, file=file, all_threads=True)
        try:
            yield
        finally:
            faulthandler.unregister(DUMP_SIGNAL)
    if path.stat().st_size == 0:
        path.unlink()


@contextlib.contextmanager
def watcher(watch: Watch) -> Iterator[subprocess.Popen[bytes]]:
    """Run the watcher as a process of its own until the block ends; it ends with this process, however that ends."""
    limits = ["--floor", str(watch.limits.floor), "--ceiling", str(watch.limits.ceiling)]
    ranks = ["--ranks", ",".join(map(str, watch.ranks)), "--folder", str(watch.folder)]
    tries = ["--attempt", str(watch.attempt), "--restarts", str(watch.restarts)]
    argv = [sys.executable, "-m", WATCHER, *limits, *ranks, *tries]
    # In a session of its own: Ctrl-C to the rank's group, while the watcher still starts, would be its traceback.
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, env=_environment(), start_new_session=True)
    try:
        yield process
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(timeout=END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _remove_if_empty(folder: Path) -> None:
    """Remove an attempt's folder and the one above it; the other ranks' files may still be there."""
    with contextlib.suppress(OSError):
        folder.rmdir()
        folder.parent.rmdir()


def _environment() -> dict[str, str]:
    """This environment, in which the child finds the same trainer."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(SOURCE_ROOT), os.environ.get("PYTHONPATH", "")])),
    }
