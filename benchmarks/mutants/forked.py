"""A pytest plugin: run the tests once a mutant, each time in a fork of the process that holds them."""

from __future__ import annotations

import gc
import os
import resource
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol
from mutmut.mutation.trampoline import set_mutant_under_test
from mutmut.state import state
from mutmut.utils.format_utils import mangled_name_from_mutant_name

CPU_LEAST, CPU_TIMES = 4, 10  # seconds of processor time for a mutant, and so many times what its tests took
WALL_SECONDS = 300  # for one that waits for what never comes; the wait for a core of a busy machine does not count
MEMORY_BYTES = 3 << 30  # more than the tests hold already


class Loop:
    """Run the tests once to see which functions each reaches, then those of its function for each mutant."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self.outcome: dict[str, str] = {}
        self.broken: list[str] = []
        self._seconds: dict[str, float] = {}
        self._reached: dict[str, list[pytest.Item]] = defaultdict(list)
        self._kills: Counter[tuple[str, str]] = Counter()  # by function and test

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Take the place of pytest's own loop."""
        self._order(session.items)
        gc.collect()
        gc.freeze()  # what is there already is not looked at again in a fork, and so not copied
        for place, name in enumerate([] if self.broken else self.names):
            Path("progress").write_text(f"{place} of {len(self.names)}\n")
            tests = self._reached.get(mangled_name_from_mutant_name(name), [])
            self.outcome[name] = self._try(name, tests) if tests else "no tests"
        return True

    def _order(self, items: Sequence[pytest.Item]) -> None:
        set_mutant_under_test("stats")
        for place, item in enumerate(items):
            state()._stats.clear()
            began = time.process_time()
            if fails(item, items[place + 1] if place + 1 < len(items) else None):
                self.broken.append(item.nodeid)
            self._seconds[item.nodeid] = time.process_time() - began
            for function in state()._stats:
                self._reached[function].append(item)
        set_mutant_under_test("")
        for tests in self._reached.values():
            tests.sort(key=lambda test: self._seconds[test.nodeid])

    def _try(self, name: str, tests: Sequence[pytest.Item]) -> str:
        """Run the tests on a mutant up to the first that fails: those first that killed others of its function."""
        function = mangled_name_from_mutant_name(name)
        first = sorted(tests, key=lambda test: -self._kills[function, test.nodeid])
        seconds = CPU_LEAST + CPU_TIMES * sum(self._seconds[test.nodeid] for test in tests)
        killer, writer = os.pipe()
        sys.stdout.flush()
        child = os.fork()
        if not child:
            with suppress(BaseException):  # of whatever kind: the child must not go on as a second parent
                limit(int(seconds))
                set_mutant_under_test(name)
                following = [*first[1:], None]
                place = next((n for n, pair in enumerate(zip(first, following, strict=True)) if fails(*pair)), None)
                os.write(writer, b"" if place is None else str(place).encode())
                os._exit(place is not None)
            os._exit(1)
        os.close(writer)
        outcome = ended(child)
        with os.fdopen(killer, "rb", buffering=0) as stream:
            os.set_blocking(killer, False)  # what a mutant left running may hold the other end
            if written := stream.read(20):
                self._kills[function, first[int(written)].nodeid] += 1
        return outcome


def fails(item: pytest.Item, following: pytest.Item | None) -> bool:
    """Run one test and return whether it failed; `following` says which fixtures to keep."""
    return any(report.failed for report in runtestprotocol(item, nextitem=following, log=False))


def limit(seconds: int) -> None:
    """Bound this process, and let it write to no one."""
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + MEMORY_BYTES, held + MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    os.setpgid(0, 0)
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)


def ended(child: int) -> str:
    """Wait for a mutant's process and return what became of it; one that is too slow is ended with its own children."""
    began = time.monotonic()
    while True:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            break
        elapsed = time.monotonic() - began
        if elapsed > WALL_SECONDS and elapsed - waited(child) > WALL_SECONDS:
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return "timeout"
        time.sleep(0.005)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # what a mutant left running
    if os.WIFSIGNALED(status):
        return "timeout" if os.WTERMSIG(status) == signal.SIGXCPU else "crashed"
    return "survived" if os.WEXITSTATUS(status) == 0 else "killed"


def waited(process: int) -> float:
    """Return the seconds that a process was ready to run and other programs had the cores; 0 where it is unknown."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{process}/schedstat").read_text().split()[1]) / 1e9
    return 0.0
