"""A name for a process that no other one bears later: its machine, that machine's boot, its number and its start."""

from __future__ import annotations

import os
from pathlib import Path

PROC = Path("/proc")


def host() -> str:
    """Name where process numbers mean the same: the machine, and the namespace of its processes."""
    try:
        return f"{os.uname().nodename} {(PROC / 'self' / 'ns' / 'pid').readlink()}"
    except OSError:
        return os.uname().nodename


def boot() -> str:
    """Return the kernel's name for this boot, empty where it gives none."""
    try:
        return (PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def process(pid: int) -> str:
    """Name a process by its number and start; another one may have the number later. A dead one has no start."""
    try:
        stat = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return f"{pid}:"
    return f"{pid}:" if stat[0] in "ZX" else f"{pid}:{stat[19]}"


def runs(named: str) -> bool:
    """Whether a process of this host and boot, as `process` named it, still runs."""
    number = named.partition(":")[0]
    return number.isdigit() and named == process(int(number))
