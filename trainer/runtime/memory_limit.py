"""Host memory of a process and its children, so that one that fills it is ended before others are affected.

Only memory of their own counts: anonymous and shared pages, not the libraries that all map.
Files: Documentation/filesystems/proc.rst of the kernel, "status", "task/<tid>/children", "oom_score_adj".
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from trainer.runtime.listing import matching

PROC = Path("/proc")
CGROUP = Path("/sys/fs/cgroup")
LOOK_EVERY_SECONDS = 0.25
SHARE = 0.8  # of what is available; the rest is for the system, and for what is taken between two looks
OOM_SCORE = "1000"  # should memory run out between two looks, the kernel takes this process and no other


@dataclass(kw_only=True)
class Watched:
    """A process whose memory is looked at; `filled_bytes` is what it held when it passed its limit."""

    pid: int
    limit_bytes: int | None
    filled_bytes: int | None = field(default=None, init=False)

    def patience(self, deadline: float) -> float:
        """Seconds until the next look, or until `deadline` without a limit."""
        left = max(0.0, deadline - time.monotonic())
        return left if self.limit_bytes is None else min(LOOK_EVERY_SECONDS, left)

    def is_full(self) -> bool:
        """Return whether it holds more than it may."""
        if self.limit_bytes is not None and (held := held_bytes(self.pid)) > self.limit_bytes:
            self.filled_bytes = held
        return self.filled_bytes is not None

    def raise_oom_score(self) -> None:
        """Make it the kernel's first choice when memory runs out; its children inherit that."""
        if self.limit_bytes is not None:
            with contextlib.suppress(OSError):  # it has ended, or /proc is read-only
                (PROC / str(self.pid) / "oom_score_adj").write_text(OOM_SCORE)


def held_bytes(pid: int) -> int:
    """Return the bytes that `pid` and its descendants hold for themselves; 0 for one that has ended."""
    return sum(_own_bytes(each) for each in {pid, *descendants(pid)})


def descendants(pid: int) -> Iterator[int]:
    """Yield every process below `pid`, nearest first."""
    for file in matching(PROC / str(pid) / "task", "*/children"):
        for child in map(int, _text(file).split()):
            yield child
            yield from descendants(child)


def available_bytes() -> int:
    """Return the bytes that processes can still allocate here, or in the control group if it allows less."""
    here = _kib(_text(PROC / "meminfo"), "MemAvailable:")
    limit, used = _text(CGROUP / "memory.max").strip(), _text(CGROUP / "memory.current").strip()
    return min(here, int(limit) - int(used)) if limit.isdigit() and used.isdigit() else here


def fair_share() -> int:
    """Return the bytes that one probe may hold here: SHARE of those available."""
    return int(SHARE * available_bytes())


def _own_bytes(pid: int) -> int:
    status = _text(PROC / str(pid) / "status")
    return _kib(status, "RssAnon:") + _kib(status, "RssShmem:")


def _kib(text: str, name: str) -> int:
    found = (line.split()[1] for line in text.splitlines() if line.startswith(name))
    return 1024 * int(next(found, "0"))


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # it has ended, or this kernel or mount does not show it
        return ""
