"""D3xx and D4xx: limits of the host, its container engine and its disk."""

from __future__ import annotations

import os

from packaging.version import InvalidVersion, Version

from rocmatrix.containers.device_selection import READ_BY_HIP, VISIBILITY, handed, usable_nodes
from rocmatrix.doctor.catalog import Finding, check
from rocmatrix.doctor.host import Host
from rocmatrix.host.hardware import Hardware
from rocmatrix.runtime.errors import RocmatrixError

GIB = 1024**3
SHARED_MEMORY = 8 * GIB  # what a GPU run is given in its container, rocmatrix.containers.least_privilege
ROCM_IMAGE, CPU_IMAGE = 35 * GIB, 5 * GIB  # an image of ROCm 7.2 was reported with 28.9 GB, and its build needs room
CDI_ENGINE, GPUS_ENGINE = Version("25.0"), Version("29.3")
RECORDED = "a recorded tree does not hold it"
PASSTHROUGH_FIX = (
    "sudo sed -i 's/^GRUB_CMDLINE_LINUX=\"/&iommu=pt /' /etc/default/grub && sudo update-grub && sudo reboot "
    "(Fedora and RHEL: sudo grubby --update-kernel=ALL --args=iommu=pt)"
)


@check(
    "D301",
    title="The IOMMU passes cards through",
    why="with several cards a translating IOMMU slows their exchange, and collectives have hung on it; AMD advises "
    "iommu=pt for Instinct and for Radeon without P2P, and the default for Radeon with P2P",
    source="ROCm/ROCm:docs/conceptual/iommu.rst; ROCm/rccl-tests#50",
)
def iommu(host: Host) -> Finding:
    """Check that the IOMMU passes cards through (D301).

    The kernel's group of each card decides; its command line only where groups are not reported.

    A processor's graphics are hidden from runs, and exchange nothing.
    """
    cards = [group[0] for group in host.hardware.physical_cards if not group[0].integrated]
    if len(cards) < 2:
        return Finding(code="D301", status="not applicable", seen="there is one card at most")
    kinds = {card.pci_address: host.iommu_types.get(card.pci_address or "") for card in cards}
    known = {str(address): kind for address, kind in kinds.items() if kind}
    if known:
        translating = sorted(address for address, kind in known.items() if kind != "identity")
        if not translating and len(known) < len(kinds):
            return _by_command_line(host)
        if not translating:
            return Finding(code="D301", status="ok", seen="every card's group is passed through (identity)")
        seen = f"{', '.join(translating)}: the IOMMU translates ({', '.join(sorted(set(known.values())))})"
        return _translated(host, seen)
    return _by_command_line(host)


def _translated(host: Host, seen: str) -> Finding:
    """Return the finding on an IOMMU that translates: AMD's default for Radeon cards with P2P, else slow at best."""
    if not _copy_over_pcie(host.hardware):
        return Finding(code="D301", status="warning", seen=seen, fix=PASSTHROUGH_FIX)
    why = "as AMD documents it for Radeon cards that reach each other over PCIe"
    fix = f"only where collectives are slow or hang: {PASSTHROUGH_FIX}"
    return Finding(code="D301", status="note", seen=f"{seen}, {why}", fix=fix)


def _copy_over_pcie(machine: Hardware) -> bool:
    """Return whether Radeon cards read each other's memory over PCIe. Instinct cards, gfx9, use XGMI for it."""
    cards = {card.node: card for card in machine.cards if not card.integrated}
    if any((card.gfx or "gfx9").startswith("gfx9") for card in cards.values()):
        return False
    between = (link for link in machine.links if link.source in cards and link.target in cards)
    return any(link.peer_dma and not link.xgmi for link in between)


def _by_command_line(host: Host) -> Finding:
    if host.command_line is None:
        return Finding(
            code="D301", status="unknown", seen="neither IOMMU groups nor a kernel command line are reported"
        )
    if "iommu=pt" in host.command_line.split():
        return Finding(code="D301", status="ok", seen="iommu=pt is on the kernel's command line")
    if not host.iommu:
        seen = "the IOMMU is off; AMD advises passing through (iommu=pt) rather than off"
        return Finding(code="D301", status="note", seen=seen, fix=PASSTHROUGH_FIX)
    return _translated(host, "an IOMMU is on, and iommu=pt is not on the kernel's command line")


@check(
    "D302",
    title="NUMA balancing is off",
    why="the kernel moves pages that cards have mapped, and every move stalls the card",
    source="rocm.docs.amd.com, docs-6.3.3, prerequisite system validation before training",
)
def numa_balancing(host: Host) -> Finding:
    """Check that NUMA balancing is off (D302). On one node there is nothing to balance."""
    if not host.hardware.cards:
        return Finding(code="D302", status="not applicable", seen="no card to be stalled")
    if host.numa_balancing is None:
        seen = "the kernel has no such switch" if host.numa_nodes else "/proc is not to be seen here"
        return Finding(code="D302", status="ok" if host.numa_nodes else "unknown", seen=seen)
    if host.numa_balancing == 0 or host.numa_nodes == 1:
        return Finding(code="D302", status="ok", seen=f"{host.numa_balancing}, on {host.numa_nodes} NUMA node(s)")
    seen = f"numa_balancing is {host.numa_balancing} on {host.numa_nodes} NUMA nodes"
    fix = "sudo sysctl -w kernel.numa_balancing=0 (to keep it: a line in /etc/sysctl.d/90-rocm.conf)"
    return Finding(code="D302", status="warning", seen=seen, fix=fix)


@check(
    "D303",
    title="/dev/shm is large enough",
    why="data loader workers and RCCL exchange through it; a native run has the host's, and a full one is a bus error",
    source="pytorch/pytorch#40632",
)
def shared_memory(host: Host) -> Finding:
    """Check that /dev/shm is large enough (D303)."""
    size = host.shared_memory_bytes
    if size is None:
        return Finding(code="D303", status="unknown", seen=RECORDED)
    needed = SHARED_MEMORY if host.hardware.cards else GIB
    seen = f"{size / GIB:.1f} GiB here; runs in containers get their own"
    if size >= needed:
        return Finding(code="D303", status="ok", seen=seen)
    fix = f"sudo mount -o remount,size={needed // GIB}G /dev/shm"
    return Finding(code="D303", status="warning", seen=f"{seen}, and a native run wants {needed // GIB} GiB", fix=fix)


@check(
    "D304",
    title="Memory can be locked",
    why="network adapters with RDMA pin their buffers; cards do without",
    source="ROCm/TheRock, container options of its CI",
)
def locked_memory(host: Host) -> Finding:
    """Check the limit of locked memory (D304), which matters only with RDMA adapters."""
    if host.memlock is None:
        return Finding(code="D304", status="unknown", seen="/proc/self/limits is not to be seen here")
    if not host.rdma or host.memlock == "unlimited":
        need = "an RDMA adapter is here" if host.rdma else "no RDMA adapter is here"
        return Finding(code="D304", status="ok", seen=f"the limit is {host.memlock} bytes; {need}")
    seen = f"an RDMA adapter is here, and the limit is {host.memlock} bytes"
    fix = "echo '* - memlock unlimited' | sudo tee /etc/security/limits.d/90-rdma.conf, then log in again"
    return Finding(code="D304", status="warning", seen=seen, fix=fix)


@check(
    "D305",
    title="The visible devices agree",
    why="ROCR_VISIBLE_DEVICES filters first and HIP's names count what is left, so two filters can leave nothing",
    source="ROCm/ROCm:docs/conceptual/gpu-isolation.md; ROCm/ROCR-Runtime#155; ray-project/ray#52701",
)
def visible(host: Host) -> Finding:
    """Check that the variables of visible devices agree (D305)."""
    if host.environment is None:
        return Finding(code="D305", status="unknown", seen=RECORDED)
    visible_set = {name: host.environment[name] for name in READ_BY_HIP if name in host.environment}
    idle = [name for name in VISIBILITY if name not in READ_BY_HIP and host.environment.get(name)]
    if idle and not visible_set:
        seen = f"{idle[0]}={host.environment[idle[0]]} chooses for OpenCL alone, and HIP does not read it"
        fix = f"export ROCR_VISIBLE_DEVICES={host.environment[idle[0]]}"
        return Finding(code="D305", status="warning", seen=seen, fix=fix)
    words = ", ".join(f"{name}={value}" for name, value in visible_set.items())
    if not visible_set:
        return Finding(code="D305", status="ok", seen="none is set")
    second = [name for name in visible_set if name != "ROCR_VISIBLE_DEVICES"]
    # HIP counts what ROCr leaves from 0, so the same absolute number may mean nothing there
    if "ROCR_VISIBLE_DEVICES" in visible_set and second:
        fix = f"unset {' '.join(second)}"
        return Finding(code="D305", status="warning", seen=f"two filters in a row: {words}", fix=fix)
    if len({visible_set[name] for name in second}) > 1:
        fix = f"unset {' '.join(second[1:])}"
        return Finding(code="D305", status="error", seen=f"they contradict each other: {words}", fix=fix)
    return Finding(code="D305", status="ok", seen=words)


@check(
    "D401",
    title="A container engine answers",
    why="cells are built and run by it; natively, only what fits the host's Python runs",
    source="rocmatrix.containers.engine",
)
def engine(host: Host) -> Finding:
    """Check that a container engine answers (D401). A native run needs none, so its absence is no error."""
    if host.engine is None:
        return Finding(code="D401", status="unknown", seen=RECORDED)
    if host.engine.version is None:
        fix = "sudo systemctl start docker, or run natively: --in native"
        return Finding(code="D401", status="warning", seen=host.engine.obstacle or "none", fix=fix)
    seen = f"Docker {host.engine.version}"
    if host.engine.kept:
        why, step = host.engine.kept
        return Finding(code="D401", status="warning", seen=f"{seen}, {why}", fix=f"{step[0].lower()}{step[1:]}")
    return _rootless(host, seen) if "rootless" in host.engine.security else Finding(code="D401", status="ok", seen=seen)


def _rootless(host: Host, seen: str) -> Finding:
    """State what a rootless engine can open: what its user can without further groups."""
    seen = f"{seen}, rootless: a run is root inside, which is you outside"
    chosen = [card for card in host.hardware.cards if not card.integrated] or list(host.hardware.cards)
    passed = handed(host.hardware, chosen, all_shown=True)
    try:
        usable_nodes(host.hardware, passed, user=f"{os.getuid()}:{os.getgid()}", rootless=True)
    except RocmatrixError as error:
        return Finding(code="D401", status="warning", seen=f"{seen}. {error.what}", fix=error.next)
    return Finding(code="D401", status="ok", seen=seen)


@check(
    "D402",
    title="The engine is new enough",
    why="devices by CDI name (amd.com/gpu=0) work from Docker 25, --gpus for AMD from 29.3, and --device everywhere",
    source="instinct.docs.amd.com, container toolkit, running workloads",
)
def engine_age(host: Host) -> Finding:
    """Check the engine's version (D402). --device works with every engine, so an older one is a note."""
    if host.engine is None or host.engine.version is None:
        return Finding(code="D402", status="not applicable" if host.engine else "unknown", seen="no engine to ask")
    try:
        version = Version(host.engine.version.partition("+")[0].partition("-")[0])
    except InvalidVersion:
        return Finding(code="D402", status="unknown", seen=f"{host.engine.version} is no version")
    if not host.hardware.cards:
        return Finding(code="D402", status="not applicable", seen=f"{version}; there is no card to pass on")
    cdi = ", ".join(host.engine.cdi_devices) or f"no CDI device in {', '.join(host.engine.cdi_folders) or 'any folder'}"
    if version >= GPUS_ENGINE:
        return Finding(code="D402", status="ok", seen=f"{version}: --device, CDI names and --gpus; {cdi}")
    where = "CDI names" if version >= CDI_ENGINE else "--device only"
    fix = "update the engine to 29.3 for --gpus; runs of this project use --device and need none of it"
    return Finding(code="D402", status="note", seen=f"{version} knows {where}, not --gpus for AMD; {cdi}", fix=fix)


@check(
    "D403",
    title="The image fits on the disk",
    why="a build that runs out of space leaves nothing to use",
    source="public reports: 28.9 GB for a bare base with the wheels of ROCm 7.2",
)
def disk(host: Host) -> Finding:
    """Check the free space on the engine's disk (D403), which a native run does not use."""
    if host.disk is None:
        seen = "the engine's folder is not to be seen here" if host.engine else RECORDED
        return Finding(code="D403", status="unknown", seen=seen)
    gpu = host.cell.architecture is not None if host.cell else bool(host.hardware.cards)
    needed, kind = (ROCM_IMAGE, "a ROCm") if gpu else (CPU_IMAGE, "a CPU")
    seen = f"{host.disk.free_bytes / GIB:.0f} GiB free below {host.disk.path}; {kind} image wants {needed // GIB}"
    if host.disk.free_bytes >= needed:
        return Finding(code="D403", status="ok", seen=seen)
    fix = "docker system df, then docker image prune and docker builder prune; or move the engine's data-root"
    return Finding(code="D403", status="warning", seen=f"{seen}: no image can be built, a native run can go", fix=fix)
