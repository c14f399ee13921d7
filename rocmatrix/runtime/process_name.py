"""A unique name for a process: its machine, that machine's boot, its number and its start."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

PROC = Path("/proc")
MACHINE_ID = Path("/etc/machine-id")  # machine-id(5): not to be shown to others as it is


def host() -> str:
    """Name where process numbers mean the same: the machine, and the namespace of its processes.

    Two machines may have one host name, and their first namespaces one number; their machine ids differ.
    """
    parts = [os.uname().nodename]
    for found in (_namespace, _machine):
        try:
            parts.append(found())
        except OSError:
            continue
    return " ".join(filter(None, parts))


def _namespace() -> str:
    return str((PROC / "self" / "ns" / "pid").readlink())


def _machine() -> str:
    name = MACHINE_ID.read_bytes().strip()
    return hashlib.sha256(b"rocmatrix " + name).hexdigest()[:16] if name else ""


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
    """Return whether a process of this host and boot, as `process` named it, still runs."""
    number = named.partition(":")[0]
    return number.isdigit() and named == process(int(number))
