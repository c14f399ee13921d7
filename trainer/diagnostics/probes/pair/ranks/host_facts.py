"""Facts of a machine where two of its cards fail: read from its files, and by a trial in another process.

Facts only, never words in a log. Sources: ROCm/rccl src/misc/shmutils.cc, ROCm/ROCm docs/conceptual/iommu.rst and
gpu-isolation.md, the kernel's Documentation/ABI/testing/sysfs-kernel-iommu_groups.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trainer.diagnostics.probes.pair.ranks import ipc
from trainer.diagnostics.probes.pair.ranks.ddp_rank import WORLD

SHM_NEEDED = 128 << 20  # bytes; RCCL takes about 9.6 MB a channel and peer, and Docker gives 64 MiB in all
# Not GPU_DEVICE_ORDINAL, which OpenCL alone reads (ROCm/clr: rocclr/device/rocm/rocdevice.cpp, amd::IS_HIP).
HIDING = ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")
ROOT = Path("/")


@dataclass(frozen=True, kw_only=True)
class HostFacts:
    """Facts of this machine: `ipc_error` is empty where another process opened card memory, None if not tried."""

    shm_free: int
    iommu_translates: bool
    cards_seen: int
    cards_here: int
    hiding: Mapping[str, str]
    ipc_error: str | None

    @property
    def ipc_denied(self) -> str:
        """Why another process could not open card memory; empty where it could, whatever bytes it then read."""
        return "" if self.ipc_error == ipc.OTHER_BYTES else self.ipc_error or ""

    @property
    def shm(self) -> str:
        """The room in /dev/shm, as text."""
        return f"/dev/shm has {self.shm_free / 2**20:.0f} MiB free"

    @property
    def iommu(self) -> str:
        """What the IOMMU does, as text."""
        return f"the IOMMU {'translates' if self.iommu_translates else 'passes through or is off'}"


def read(cards: int, *, ipc_seconds: float = 0.0) -> HostFacts:
    """Read the facts of this machine, where torch sees `cards`.

    Another process is asked to open card memory for as long as `ipc_seconds`; with 0 it is not asked.
    """
    return HostFacts(
        shm_free=free_bytes(ROOT / "dev/shm"),
        iommu_translates=iommu_translates(ROOT),
        cards_seen=cards,
        cards_here=cards_here(ROOT),
        hiding={name: os.environ[name] for name in HIDING if name in os.environ},
        ipc_error=ipc.error(ipc_seconds) if ipc_seconds and cards >= WORLD else None,
    )


def free_bytes(folder: Path) -> int:
    """Free bytes of the file system at `folder`, 0 where there is none."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return 0
    return found.f_bavail * found.f_frsize


def iommu_translates(root: Path) -> bool:
    """Return whether an IOMMU is on and translates: groups exist whose type is not `identity`."""
    kinds = [text(path) for path in (root / "sys/kernel/iommu_groups").glob("*/type")]
    return any(kind and kind != "identity" for kind in kinds)


def cards_here(root: Path) -> int:
    """Count this machine's cards, seen by torch or not: KFD's nodes with compute units, else NVIDIA's list."""
    nodes = [text(path) for path in (root / "sys/class/kfd/kfd/topology/nodes").glob("*/properties")]
    units = [line.split()[1] for node in nodes for line in node.splitlines() if line.startswith("simd_count ")]
    return sum(unit != "0" for unit in units) or len(list((root / "proc/driver/nvidia/gpus").glob("*")))


def text(path: Path) -> str:
    """Return the text of a small file, stripped; empty where it cannot be read."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""
