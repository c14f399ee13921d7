"""Is there memory for a network at all? Asked before the first allocation, with the number that would fit.

The system grants more memory than it has and ends the process later, so a failed allocation is no reliable sign.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from trainer.runtime.errors import TrainerError

COPIES = 5  # of a weight that is trained: AdamW holds two
GIB = 2**30


@dataclass(frozen=True, kw_only=True)
class ParameterCount:
    """Numbers of a network: `all` of them, and those that are `trained`."""

    all: int
    trained: int


def require_memory(
    count: ParameterCount, device: str, *, bytes_each: int = 4, best_on_host: bool = False, remedy: Callable[[int], str]
) -> None:
    """See that weights, gradients and optimizer of a network fit into what is free.

    Weights that are not trained are held once, the others COPIES times, or once less with the best ones on the host.
    Activations are left out: the micro-batch adapts to what remains. `remedy` returns the next step for a number of
    parameters that would fit.

    Args:
        device: name of the device, such as "cuda:0".
        bytes_each: bytes of one weight.
        best_on_host: the best weights are kept on the host, one copy less on the device.
        remedy: returns the next step for a number of parameters that would fit.

    Raises:
        TrainerError: RM521, with what would fit.
    """
    free, copies = free_memory(device), COPIES - (best_on_host and device != "cpu")
    need = (count.all + (copies - 1) * count.trained) * bytes_each
    if free is None or need <= free:
        return
    best = " and the best epoch's weights" if copies == COPIES else ""
    raise TrainerError(
        "RM521",
        what=f"the network has {count.all:,} parameters and needs {need / GIB:,.1f} GiB to be trained",
        where=device,
        why=f"{copies} numbers each for weight, gradient, AdamW{best}; {free / GIB:,.1f} GiB are free",
        next=remedy(free // (copies * bytes_each)),
    )


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
