"""The host's AMD cards, driver and device nodes, read from sysfs: no ROCm needed.

Everything is read below a root given as a parameter, so a recorded tree can stand in for a machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rocmatrix.host import unusable_cards
from rocmatrix.host.link import Link
from rocmatrix.host.pci_device import Adapter, PciDevice, amd_display_devices, read_adapter
from rocmatrix.host.processors import INTEGRATED, NUMBERS
from rocmatrix.host.sysfs import DeviceNode, Files, TopologyNode, read_nodes
from rocmatrix.matrix import gfx
from rocmatrix.matrix.naming import device_ids

SYSTEM_HEAP = 0
FRAME_BUFFER_HEAPS = (1, 2)  # FB_PUBLIC and FB_PRIVATE of kfd_sysfs.h
NEWEST_WITHOUT_IDS = 110000  # gfx_target_version from which every discrete card has a unique id


@dataclass(frozen=True, kw_only=True)
class Card:
    """One GPU node of the KFD topology; a partition of a card (CPX) is one too.

    `index` counts GPU nodes in numeric order, as ROCr does. What an old kernel does not report is None.
    """

    index: int
    node: int
    gfx: str | None
    integrated: bool
    memory_bytes: int | None
    compute_units: int | None
    unique_id: int | None
    gpu_id: int | None
    device_id: int | None
    pci_address: str | None
    render_minor: int | None
    render: DeviceNode | None
    hive_id: int | None = None
    partition: int = 0
    adapter: Adapter | None = None

    @property
    def render_path(self) -> str | None:
        """Where the card's render node belongs, whether or not it is there."""
        return f"/dev/dri/renderD{self.render_minor}" if self.render_minor is not None else None

    @property
    def uuid(self) -> str | None:
        """The name that ROCR_VISIBLE_DEVICES takes (ROCR-Runtime, amd_filter_device.cpp)."""
        return f"GPU-{self.unique_id:016x}" if self.unique_id is not None else None


@dataclass(frozen=True, kw_only=True)
class Processor:
    """A CPU node of the KFD topology: a NUMA node of the host."""

    node: int
    cores: int
    memory_bytes: int | None


@dataclass(frozen=True, kw_only=True)
class Driver:
    """The loaded amdgpu module: AMD's own (DKMS) names its version, the kernel's has the kernel's."""

    version: str | None
    origin: Literal["dkms", "kernel"]


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """What a host offers. `reason` states why `cards` is empty.

    `devices` are AMD's display and compute devices on the PCI bus, with a driver or without.
    `hidden_nodes` counts GPU nodes that the kernel keeps from this process: the device cgroup of a container.
    `simulated` states that none of it is this machine's own (`rocmatrix.host.simulated`), `selinux` that the kernel
    enforces SELinux.
    """

    cards: tuple[Card, ...]
    reason: str | None
    hidden_nodes: int
    kfd: DeviceNode | None
    driver: Driver | None
    kernel: str | None
    memory_bytes: int | None
    wsl2: bool
    nvidia: bool
    processors: tuple[Processor, ...] = ()
    links: tuple[Link, ...] = ()
    devices: tuple[PciDevice, ...] = ()
    simulated: bool = False
    selinux: bool = False

    @property
    def nodes(self) -> tuple[DeviceNode, ...]:
        """/dev/kfd and the cards' render nodes, those that are there."""
        found = (self.kfd, *(card.render for card in self.cards))
        return tuple(node for node in found if node is not None)

    @property
    def architectures(self) -> tuple[str, ...]:
        """The cards' gfx names, the best card first: discrete before integrated, then by memory."""
        ranked = sorted(self.cards, key=lambda card: (card.integrated, -(card.memory_bytes or 0)))
        return tuple(card.gfx for card in ranked if card.gfx is not None)

    @property
    def unusable(self) -> str | None:
        """What is there of AMD's and serves no run, and why; None where all of it serves one, or none is there."""
        if self.architectures:
            return unusable_cards.left_out(self.devices, [card.pci_address for card in self.cards], self.hidden_nodes)
        if self.cards:
            ids = ", ".join(dict.fromkeys(f"0x{card.device_id or 0:04x}" for card in self.cards))
            return f"{len(self.cards)} AMD card(s) of PCI device {ids} are there, and their architecture is not known"
        if self.devices:
            return unusable_cards.none_serves(self.devices, self.reason)
        return self.reason if self.hidden_nodes or self.wsl2 or self.withheld else None

    @property
    def withheld(self) -> bool:
        """Whether the driver's node is there without a topology: a container was not given the host's /sys."""
        return self.kfd is not None and not (self.processors or self.cards or self.hidden_nodes)

    @property
    def physical_cards(self) -> tuple[tuple[Card, ...], ...]:
        """The cards as they are plugged in: partitions of one card (CPX and the like) stand together."""
        groups: dict[object, list[Card]] = {}
        for card in self.cards:
            groups.setdefault(self._plug(card), []).append(card)
        return tuple(tuple(group) for group in groups.values())

    def _plug(self, card: Card) -> object:
        """Return what the partitions of one card share.

        Newer kernels give them one address and a number each. Older ones gave each a function of its own, and one
        id to all. Separate cards of a recording may share an address, but have neither in common.
        """
        if card.pci_address is None:
            return card.node
        same = [c for c in self.cards if c.pci_address == card.pci_address]
        if len({c.partition for c in same}) == len(same) > 1:
            return card.pci_address
        slot = card.pci_address.rpartition(".")[0]
        return (slot, card.unique_id) if card.unique_id else (card.pci_address, card.node)

    @property
    def hides_integrated(self) -> bool:
        """Whether there is an integrated GPU next to a discrete one; it is then hidden from a run."""
        return len({card.integrated for card in self.cards}) == 2

    @property
    def groups(self) -> tuple[int, ...]:
        """The numeric groups that open the nodes, ascending."""
        return groups_of(self.nodes)


def groups_of(nodes: Sequence[DeviceNode]) -> tuple[int, ...]:
    """Return the distinct groups needed for `nodes`: never root's, and none for a node open to all."""
    return tuple(sorted({node.gid for node in nodes if node.gid != 0 and not node.open_to_all}))


def detect(root: Path = Path("/")) -> Hardware:
    """Read the hardware of the machine whose file tree starts at `root`. Raises nothing: what is absent is reported."""
    return read_hardware(Files(root))


def read_hardware(files: Files) -> Hardware:
    """Read the hardware from `files`."""
    kernel = files.word("proc/sys/kernel/osrelease")
    kfd = files.node("/dev/kfd")
    wsl2 = kfd is None and files.exists("dev/dxg")
    driver = _driver(files, kernel)
    nodes, hidden = read_nodes(files)
    gpus = [node for node in nodes if node.is_gpu]
    cards = tuple(_card(index, node, files) for index, node in enumerate(gpus))
    devices = amd_display_devices(files)
    return Hardware(
        cards=cards,
        reason=None
        if cards
        else unusable_cards.why_none(
            files,
            hidden=hidden,
            wsl2=wsl2,
            kfd=kfd is not None,
            loaded=driver is not None,
            topology=bool(nodes),
            devices=devices,
        ),
        hidden_nodes=hidden,
        kfd=kfd,
        driver=driver,
        kernel=kernel,
        memory_bytes=memory_total(files.text("proc/meminfo") or ""),
        wsl2=wsl2,
        nvidia=files.exists("dev/nvidia0") or files.exists("dev/nvidiactl"),
        processors=tuple(_processor(node) for node in nodes if node.properties.get("cpu_cores_count")),
        links=tuple(link for node in nodes for link in node.links),
        devices=devices,
        selinux=files.word("sys/fs/selinux/enforce") == "1",
    )


def memory_total(meminfo: str) -> int | None:
    """Return MemTotal of /proc/meminfo in bytes."""
    rows = (line.split() for line in meminfo.splitlines())
    return next((int(row[1]) * 1024 for row in rows if len(row) > 1 and row[0] == "MemTotal:"), None)


def pci_address(domain: int, location: int) -> str | None:
    """Return "0000:63:00.0" from a node's `domain` and `location_id` (bus, then 5 bits device, 3 bits function).

    A location of 0 is a place in any domain but the first, where the processor's host bridge is: Hyper-V puts each card
    into a domain of its own, 0002:00:00.0 (ROCm/legacy-rocm-build#2995). None where a kernel names neither.
    """
    if not domain and not location:
        return None
    return f"{domain:04x}:{location >> 8 & 0xFF:02x}:{location >> 3 & 0x1F:02x}.{location & 0x7}"


def _card(index: int, node: TopologyNode, files: Files) -> Card:
    properties = node.properties
    device_id = properties.get("device_id")
    name = _gfx_name(properties.get("gfx_target_version"), device_id)
    minor = properties.get("drm_render_minor") or None
    address = pci_address(properties.get("domain", 0), properties.get("location_id", 0))
    adapter = read_adapter(files, address=address, minor=minor, device_id=device_id)
    return Card(
        index=index,
        node=node.number,
        gfx=name,
        # Older kernels describe a processor with graphics as one node that has both kinds of cores.
        integrated=properties.get("cpu_cores_count", 0) > 0 or _is_integrated(name, properties),
        memory_bytes=_memory(node.banks) or _whole_memory(adapter),
        compute_units=properties.get("simd_count", 0) // (properties.get("simd_per_cu") or 1) or None,
        unique_id=properties.get("unique_id") or None,
        gpu_id=node.gpu_id,
        device_id=device_id,
        pci_address=address,
        render_minor=minor,
        render=files.node(f"/dev/dri/renderD{minor}") if minor else None,
        hive_id=properties.get("hive_id") or None,
        partition=properties.get("location_id", 0) >> 28 & 0xF,  # kfd_topology.c keeps a partition's number there
        adapter=adapter,
    )


def _whole_memory(adapter: Adapter | None) -> int | None:
    """Return the memory that DRM reports, which is the whole card's, not that of a partition."""
    whole = adapter is not None and adapter.compute_partition in (None, "SPX")
    return adapter.memory_bytes if adapter is not None and whole else None


def _processor(node: TopologyNode) -> Processor:
    memory = sum(bank.get("size_in_bytes", 0) for bank in node.banks if bank.get("heap_type") == SYSTEM_HEAP)
    return Processor(node=node.number, cores=node.properties["cpu_cores_count"], memory_bytes=memory or None)


def _gfx_name(target_version: int | None, device_id: int | None) -> str | None:
    """Return the kernel's name for a card, or that of its device id where the kernel has none or leaves it 0."""
    if not target_version:
        return device_ids.architecture(device_id)
    try:
        return gfx.from_target_version(target_version)
    except ValueError:
        return None


def _is_integrated(name: str | None, properties: Mapping[str, int]) -> bool:
    """Return whether a card is a processor's graphics: by its architecture, else by its device id.

    Of an architecture that no table has, newer than RDNA 2, a card without a unique id is: Linux gives one to every
    discrete card of these generations and to no processor's graphics but MI300A's.
    """
    if name in INTEGRATED or name in NUMBERS.values():
        return name in INTEGRATED
    if (by_id := device_ids.architecture(properties.get("device_id"))) is not None:
        return by_id in INTEGRATED
    return properties.get("gfx_target_version", 0) >= NEWEST_WITHOUT_IDS and not properties.get("unique_id")


def _memory(banks: tuple[Mapping[str, int], ...]) -> int | None:
    """Return the card's own memory in bytes; a sum of 0 means that the kernel does not report it."""
    sizes = (bank.get("size_in_bytes", 0) for bank in banks if bank.get("heap_type") in FRAME_BUFFER_HEAPS)
    return sum(sizes) or None


def _driver(files: Files, kernel: str | None) -> Driver | None:
    version = files.word("sys/module/amdgpu/version")  # only the out-of-tree module has this file
    if version:
        return Driver(version=version, origin="dkms")
    return Driver(version=kernel, origin="kernel") if files.exists("sys/module/amdgpu") else None
