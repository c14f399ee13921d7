"""Memory that an APU's GPU shares with the processor: the one pool that HIP takes from, counted once.

An APU has a carve-out (`vram`: set in the firmware, no part of the host's memory) and GTT (pages of the host's memory,
mapped for the GPU on demand up to a limit). amdgpu serves all that HIP allocates from one of them: from GTT where the
carve-out is smaller than GTT, else from the carve-out (`apu_prefer_gtt` in drivers/gpu/drm/amd/amdgpu/amdgpu_ttm.c of
Linux). The sum of both cannot be had, and HIP's own numbers disagree with each other on such a machine: 120 GiB free of
62.5 in all (ROCm/legacy-rocm-build#6004). What GTT may still take is also limited by ttm's `pages_limit`, and by what
the host has left: beyond that the kernel ends a process. Read from files; nothing here has run on an APU.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from trainer.device import architectures

MODULES = ("amdttm", "ttm")  # the driver package's own, which is used where it is loaded; the kernel's
SHARE = 0.9  # of what GTT may still take: the host's programs take pages of the same memory meanwhile


@dataclass(frozen=True, kw_only=True)
class Pools:
    """Bytes of an APU's two pools, and ttm's limit of all pages that it may map; None where none is reported."""

    vram_total: int
    vram_used: int
    gtt_total: int
    gtt_used: int
    pages_limit: int | None = None

    @property
    def name(self) -> str:
        """The pool that HIP takes from: gtt or vram."""
        return "gtt" if self.vram_total < self.gtt_total else "vram"

    @property
    def total(self) -> int:
        """Bytes of that pool."""
        if self.name == "vram":
            return self.vram_total
        return self.gtt_total if self.pages_limit is None else min(self.gtt_total, self.pages_limit)

    @property
    def used(self) -> int:
        """Bytes of that pool in use, by all programs."""
        return self.vram_used if self.name == "vram" else self.gtt_used


@dataclass(frozen=True, kw_only=True)
class Shared:
    """Memory of an APU that a process may take: `free` of `total` bytes, from `pool`, and why."""

    pool: str
    free: int
    total: int
    why: str

    def facts(self) -> dict[str, Any]:
        """Return what metadata.json holds."""
        return asdict(self)


def pools_of(address: str, root: Path = Path("/")) -> Pools | None:
    """Return the pools of the GPU at a PCI address, such as 0000:c5:00.0; None where its driver reports none.

    Args:
        address: PCI address.
        root: folder that holds sys.
    """
    folder = root / "sys/bus/pci/devices" / address
    names = {field: f"mem_info_{field}" for field in ("vram_total", "vram_used", "gtt_total", "gtt_used")}
    found = {field: _number(folder / name) for field, name in names.items()}
    numbers = {field: value for field, value in found.items() if value is not None}
    if len(numbers) < len(names):
        return None
    return Pools(**numbers, pages_limit=_pages_limit(root))


def only_address(root: Path = Path("/")) -> str | None:
    """Return the PCI address of the one GPU that amdgpu drives, for a torch that reports none; None for several.

    Args:
        root: folder that holds sys.
    """
    driven = root / "sys/bus/pci/drivers/amdgpu"
    found = [path.name for path in driven.glob("*:*:*.*")] if driven.is_dir() else []
    return found[0] if len(found) == 1 else None


def _pages_limit(root: Path) -> int | None:
    paths = (root / f"sys/module/{name}/parameters/pages_limit" for name in MODULES)
    pages = next((number for path in paths if (number := _number(path)) is not None), None)
    return pages * os.sysconf("SC_PAGE_SIZE") if pages else None


def _number(path: Path) -> int | None:
    with contextlib.suppress(OSError, ValueError):
        return int(path.read_text())
    return None


def shared_by(pools: Pools, *, available: int | None) -> Shared:
    """Return what may be taken of the pool that HIP takes from.

    Args:
        pools: as the driver reports them.
        available: bytes that the host can still give, which bound GTT; None where that is not known.
    """
    free = max(0, pools.total - pools.used)
    what = "the carve-out is smaller" if pools.name == "gtt" else "GTT is no larger"
    why = f"HIP takes from {pools.name}, as {what}"
    if pools.name == "gtt" and available is not None and available < free:
        free, why = available, f"{why}; the host has less left than GTT would allow"
    return Shared(pool=pools.name, free=free, total=pools.total, why=why)


def is_integrated(properties: Any) -> bool:
    """Return whether a GPU has no memory of its own, by torch's properties of it or by its architecture."""
    if getattr(properties, "is_integrated", 0):
        return True
    known: Mapping[str, Any] = architectures.KNOWN.get(
        str(getattr(properties, "gcnArchName", "")).partition(":")[0], {}
    )
    return bool(known.get("integrated"))


def address_of(properties: Any) -> str | None:
    """Return the PCI address that torch reports of a device; None where it does not."""
    numbers = [getattr(properties, f"pci_{part}_id", None) for part in ("domain", "bus", "device")]
    if any(number is None for number in numbers):
        return None
    domain, bus, device = numbers
    return f"{domain:04x}:{bus:02x}:{device:02x}.0"
