"""Is there memory for a network at all? Asked before the first allocation, with the number that would fit.

The system grants more memory than it has and ends the process later, so a failed allocation is no reliable sign.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

from trainer.runtime.errors import TrainerError

COPIES = 5  # weights, gradients, two of AdamW, and the best epoch's weights
GIB = 2**30

Count = Callable[[Sequence[int]], int]  # widths of layers, inputs first, to the number of weights


def require_memory(widths: Sequence[int], device: str, *, bytes_each: int = 4, count: Count | None = None) -> None:
    """See that weights, gradients and optimizer of a network of these `widths` fit into what is free.

    `count` returns the weights of such a network, for None an MLP's. Activations are left out: the micro-batch adapts
    to what remains.

    Raises:
        TrainerError: RM521, with the widths that would fit.
    """
    free, count = free_memory(device), count or parameters
    need = count(widths) * COPIES * bytes_each
    if free is None or need <= free:
        return
    fitting = ",".join(map(str, shrunk(widths, free // (COPIES * bytes_each), count)[1:-1]))
    raise TrainerError(
        "RM521",
        what=f"the network has {count(widths):,} parameters and needs {need / GIB:,.1f} GiB to be trained",
        where=device,
        why=f"{COPIES} numbers each for weight, gradient, AdamW and the best epoch; {free / GIB:,.1f} GiB are free",
        next=f"--hidden-layers {fitting} would fit",
    )


def parameters(widths: Sequence[int]) -> int:
    """Return the weights and biases of Linear layers of these widths, inputs first."""
    return sum((wide + 1) * next_wide for wide, next_wide in pairwise(widths))


def shrunk(widths: Sequence[int], most: int, count: Count = parameters) -> list[int]:
    """Return `widths` with the hidden ones scaled down alike until there are at most `most` parameters, at least 1."""
    first, *hidden, last = widths
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        fits = count([first, *(max(1, int(width * middle)) for width in hidden), last]) <= most
        low, high = (middle, high) if fits else (low, middle)
    return [first, *(max(1, int(width * low)) for width in hidden), last]


def free_memory(device: str, root: Path = Path("/")) -> int | None:
    """Return the bytes that are free on a device, for a CPU those of the machine or of its control group."""
    if device.startswith("cuda"):
        import torch

        return int(torch.cuda.mem_get_info(device)[0])
    found = [each for each in (_available(root), _group_free(root)) if each is not None]
    return min(found, default=None)


def _available(root: Path) -> int | None:
    path = root / "proc/meminfo"
    match = re.search(r"^MemAvailable:\s+(\d+) kB", path.read_text() if path.is_file() else "", re.MULTILINE)
    return int(match[1]) * 1024 if match else None


def _group_free(root: Path) -> int | None:
    """Return what a container's limit leaves: cgroup v2's memory.max less memory.current."""
    try:
        limit, used = ((root / f"sys/fs/cgroup/memory.{name}").read_text().strip() for name in ("max", "current"))
    except OSError:
        return None
    return max(0, int(limit) - int(used)) if limit.isdigit() and used.isdigit() else None
