"""State of a process by Linux, and of the cards by the driver, when a rank hangs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trainer.runtime.listing import matching

STATES = {
    "R": "running",
    "S": "sleeping",
    "D": "waiting in the kernel, where no signal reaches it (a disk or the GPU driver)",
    "T": "stopped by a signal",
    "t": "stopped by a debugger",
    "Z": "dead",
    "X": "dead",
}
GONE = "gone"


def state(pid: int, proc: Path = Path("/proc")) -> str:
    """Return the letter of STATES for process `pid`, or `gone`."""
    try:
        text = (proc / str(pid) / "stat").read_text()
    except OSError:
        return GONE
    return text.rpartition(")")[2].split()[0]  # the name before it may hold anything, brackets too


def alive(pid: int, proc: Path = Path("/proc")) -> bool:
    """Return whether process `pid` exists and has not ended."""
    return state(pid, proc) not in (GONE, "Z", "X")


def kernel_function(pid: int, proc: Path = Path("/proc")) -> str:
    """Return the kernel function in which the process waits, empty where Linux does not report it."""
    try:
        name = (proc / str(pid) / "wchan").read_text().strip()
    except OSError:
        return ""
    return "" if name == "0" else name


def cards(drm: Path = Path("/sys/class/drm")) -> list[dict[str, Any]]:
    """Return what amdgpu reports of each card: busy in percent and power in watts; empty without AMD cards.

    A card that is 100 % busy and draws idle power has a hung kernel or collective (ROCm/rccl#1129).
    """
    return [
        {"card": busy.parent.parent.name, "busy_percent": _number(busy), "power_w": _power(busy.parent)}
        for busy in matching(drm, "card[0-9]*/device/gpu_busy_percent")
    ]


def _power(device: Path) -> float | None:
    for name in ("power1_average", "power1_input"):
        for file in matching(device, f"hwmon/hwmon*/{name}"):
            microwatts = _number(file)
            return None if microwatts is None else microwatts / 1e6
    return None


def _number(path: Path) -> float | None:
    try:
        return float(path.read_text())
    except (OSError, ValueError):
        return None
