"""Every check of the doctor under a stable code: what it asks, why that matters, and where it was read.

The source of `docs/doctor.md`. D1xx driver and nodes, D2xx cards and links, D3xx limits of the host, D4xx the
engine, D5xx how the cards are doing now. Codes are never reused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "note", "warning", "error", "unknown", "not applicable"]


@dataclass(frozen=True, kw_only=True)
class Check:
    """One question the doctor asks."""

    code: str
    title: str
    why: str
    source: str


def _catalog(*rows: tuple[str, str, str, str]) -> dict[str, Check]:
    return {code: Check(code=code, title=title, why=why, source=source) for code, title, why, source in rows}


CHECKS = _catalog(
    (
        "D101",
        "The amdgpu driver is loaded",
        "every card is reached through it; a container brings libraries and no driver",
        "ROCm/TheRock:dockerfiles (no kernel driver inside)",
    ),
    (
        "D102",
        "The driver serves the cell's ROCm",
        "AMD tests a driver with the ROCm releases near its own; farther apart, calls fail or are missing",
        "rocm.docs.amd.com, user and kernel-space support matrix; matrix/hosts.yaml",
    ),
    (
        "D103",
        "The kernel is not known to be bad for the card",
        "some kernels hang or lose a card under compute, although a desktop runs on them",
        "matrix/hosts.yaml",
    ),
    (
        "D104",
        "Every AMD card is in the KFD topology",
        "ROCm finds cards there and nowhere else; the driver leaves out what it cannot compute on",
        "Linux, drivers/gpu/drm/amd/amdkfd/kfd_device.c",
    ),
    (
        "D105",
        "No card is hidden by a container",
        "the kernel answers EPERM for a card whose render node was not given to this container",
        "Linux, drivers/gpu/drm/amd/amdkfd/kfd_topology.c (node_show)",
    ),
    (
        "D110",
        "/dev/kfd can be opened",
        "every compute queue is made through it",
        "rocm.docs.amd.com, install-on-linux, how-to/docker",
    ),
    (
        "D111",
        "The render nodes can be opened",
        "a card's memory is mapped through its own node; KFD without it ends as HSA error 0x1008",
        "ROCm/legacy-rocm-build#3144, #2860",
    ),
    (
        "D112",
        "The nodes' groups are known by number",
        "a group's name means another number, or nothing, inside an image, so runs are given the numbers",
        "ROCm/ROCm-docker#90, #116",
    ),
    (
        "D201",
        "PCIe atomics reach the card",
        "without them the host and a card cannot signal each other by atomics, and kernels that do so fault or hang",
        "Linux, amdkfd/kfd_topology.c (kfd_set_iolink_no_atomics); ROCm documentation, PCIe atomics",
    ),
    (
        "D202",
        "The link has all the card's lanes",
        "half the lanes is half the speed to the host and, without XGMI, between cards",
        "Linux, drivers/pci/pci-sysfs.c; radeon docs, recommended system configuration for multi-GPU",
    ),
    (
        "D203",
        "The link runs at the card's speed",
        "a link of an older generation, or one trained down, carries less; an idle card slows its link by itself",
        "Linux, drivers/pci/pci-sysfs.c",
    ),
    (
        "D204",
        "Resizable BAR is on",
        "without it other devices reach 256 MiB of the card's memory, and cards cannot read each other over PCIe",
        "ROCm/ROCm:docs/how-to/Bar-Memory.rst",
    ),
    (
        "D205",
        "No integrated GPU is in the way",
        "it counts as a device, breaks collectives and switches hipBLASLt off for the whole process",
        "ROCm/ROCm#4437; ROCm/rccl#876; pytorch v2.9.1:aten/src/ATen/Context.cpp",
    ),
    (
        "D206",
        "Cards reach each other's memory",
        "else every exchange between them is copied through the host",
        "Linux, amdkfd/kfd_topology.c (p2p_links); ROCm/ROCm:docs/conceptual/iommu.rst",
    ),
    (
        "D207",
        "Partitions are what was meant",
        "a partitioned card shows as several small ones, each with a share of its memory",
        "Linux, amdgpu/amdgpu_gfx.c (current_compute_partition)",
    ),
    (
        "D301",
        "The IOMMU passes cards through",
        "with several cards a translating IOMMU slows their exchange, and collectives have hung on it",
        "ROCm/ROCm:docs/conceptual/iommu.rst; ROCm/rccl-tests#50",
    ),
    (
        "D302",
        "NUMA balancing is off",
        "the kernel moves pages that cards have mapped, and every move stalls the card",
        "rocm.docs.amd.com, docs-6.3.3, prerequisite system validation before training",
    ),
    (
        "D303",
        "/dev/shm is large enough",
        "data loader workers and RCCL exchange through it; a native run has the host's, and a full one is a bus error",
        "pytorch/pytorch#40632",
    ),
    (
        "D304",
        "Memory can be locked",
        "network adapters with RDMA pin their buffers; cards do without",
        "ROCm/TheRock, container options of its CI",
    ),
    (
        "D305",
        "The visible devices agree",
        "ROCR_VISIBLE_DEVICES filters first and HIP's names count what is left, so two filters can leave nothing",
        "ROCm/ROCm:docs/conceptual/gpu-isolation.md; ROCm/ROCR-Runtime#155; ray-project/ray#52701",
    ),
    (
        "D401",
        "A container engine answers",
        "cells are built and run by it; natively, only what fits the host's Python runs",
        "rocmatrix.containers.engine",
    ),
    (
        "D402",
        "The engine is new enough",
        "devices by CDI name (amd.com/gpu=0) work from Docker 25, --gpus for AMD from 29.3, and --device everywhere",
        "instinct.docs.amd.com, container toolkit, running workloads",
    ),
    (
        "D403",
        "The image fits on the disk",
        "a build that runs out of space leaves nothing to use",
        "public reports: 28.9 GB for a bare base with the wheels of ROCm 7.2",
    ),
    (
        "D501",
        "No power profile holds the cards back",
        "at level `low` clocks stay at the bottom, and `manual` keeps what somebody set by hand",
        "Linux, Documentation/gpu/amdgpu/thermal.rst (power_dpm_force_performance_level)",
    ),
    (
        "D502",
        "The cards are cool",
        "near the limit a card slows down, and past it the driver shuts it off",
        "Linux, Documentation/gpu/amdgpu/thermal.rst (hwmon)",
    ),
    (
        "D503",
        "Nothing throttles the cards now",
        "a throttled card trains slower, and with several cards all wait for it",
        "Linux, drivers/gpu/drm/amd/include/kgd_pp_interface.h (gpu_metrics)",
    ),
)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What one check saw. `fix` is the exact command, or the setting where no command reaches it."""

    code: str
    status: Status
    seen: str
    fix: str | None = None

    @property
    def check(self) -> Check:
        """The question behind it."""
        return CHECKS[self.code]

    def described(self) -> dict[str, str | None]:
        """Return it as plain data."""
        entry = self.check
        told = {"code": self.code, "title": entry.title, "status": self.status, "seen": self.seen}
        return {**told, "why": entry.why, "fix": self.fix, "source": entry.source}
