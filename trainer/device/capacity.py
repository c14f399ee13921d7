"""Check before the first allocation that a network fits into memory, with the number of parameters that would fit.

The system grants more memory than it has and ends the process later, so a failed allocation is no reliable sign.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainer.device import unified_memory
from trainer.device.unified_memory import Shared
from trainer.runtime.errors import TrainerError

if TYPE_CHECKING:
    import torch

COPIES = 5  # of a weight that is trained: AdamW holds two
ADAMW_STATES = 2.0
GIB = 2**30


@dataclass(frozen=True, kw_only=True)
class ParameterCount:
    """Numbers of a network: `all` of them, and those that are `trained`."""

    all: int
    trained: int


def require_memory(
    count: ParameterCount,
    device: str,
    *,
    bytes_each: int = 4,
    best_on_host: bool = False,
    states: float = ADAMW_STATES,
    remedy: Callable[[int], str],
) -> None:
    """See that weights, gradients and optimizer of a network fit into what is free.

    Weights that are not trained are held once, the others COPIES times, or once less with the best ones on the host.
    Activations are left out: the micro-batch adapts to what remains. `remedy` returns the next step for a number of
    parameters that would fit.

    Args:
        device: name of the device, such as "cuda:0".
        bytes_each: bytes of one weight.
        best_on_host: the best weights are kept on the host, one copy less on the device.
        states: numbers of the size of a weight that the optimizer holds of each, at least.
        remedy: returns the next step for a number of parameters that would fit.

    Raises:
        TrainerError: RM521, with what would fit.
    """
    free, held_here = free_memory(device), not best_on_host or device == "cpu"
    copies = COPIES - ADAMW_STATES + states - (not held_here)
    need = (count.all + (copies - 1) * count.trained) * bytes_each
    if free is None or need <= free:
        return
    best = " and the best epoch's weights" if held_here else ""
    optimizer = "AdamW" if states == ADAMW_STATES else "the optimizer"
    raise TrainerError(
        "RM521",
        what=f"the network has {count.all:,} parameters and needs {need / GIB:,.1f} GiB to be trained",
        where=device,
        why=f"{copies:g} numbers each for weight, gradient, {optimizer}{best}; {free / GIB:,.1f} GiB are free",
        next=remedy(int(free / (copies * bytes_each))),
    )


def free_memory(device: str, root: Path = Path("/")) -> int | None:
    """Return the bytes that are free on a device, for a CPU those of the machine or of its control group.

    Args:
        device: name of the device, such as "cuda:0".
        root: folder that holds proc and sys.
    """
    if device.startswith("cuda"):
        return card_memory(device, root)[0]
    found = [each for each in (_available(root), _group_free(root)) if each is not None]
    return min(found, default=None)


def card_memory(device: torch.device | str, root: Path = Path("/")) -> tuple[int, int]:
    """Return the bytes that a card has free and has in all; memory that it shares with the host is counted once.

    Args:
        device: torch's device or its name.
        root: folder that holds proc and sys.
    """
    import torch

    free, total = torch.cuda.mem_get_info(device)
    shared = shared_memory(device, root)
    if shared is None:
        return int(free), int(total)
    return min(int(free), int(total), shared.free), min(int(total), shared.total)


def shared_memory(device: torch.device | str, root: Path = Path("/")) -> Shared | None:
    """Return what a GPU without memory of its own may take; None for a card with its own, or without AMD's driver.

    Args:
        device: torch's device or its name.
        root: folder that holds proc and sys.
    """
    import torch

    if not torch.version.hip:
        return None
    properties = torch.cuda.get_device_properties(device)
    if not unified_memory.is_integrated(properties):
        return None
    address = unified_memory.address_of(properties) or unified_memory.only_address(root)
    if address is None:
        return None
    pools = unified_memory.pools_of(address, root)
    return None if pools is None else unified_memory.shared_by(pools, available=free_memory("cpu", root))


def limit_shared_memory(device: torch.device | str, root: Path = Path("/")) -> dict[str, Any] | None:
    """Keep torch's allocator below what a GPU without memory of its own may take; return that for the record.

    Beyond it the kernel would end a process of the machine. Torch's own error is recovered from. None where nothing is
    shared.

    Args:
        device: torch's device or its name.
        root: folder that holds proc and sys.
    """
    import torch

    shared = shared_memory(device, root)
    if shared is None:
        return None
    total = int(torch.cuda.mem_get_info(device)[1])
    limit = int(unified_memory.SHARE * shared.free)
    torch.cuda.set_per_process_memory_fraction(min(1.0, limit / total), device)
    return {**shared.facts(), "limit": min(limit, total)}


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
