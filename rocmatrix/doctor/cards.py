"""D2xx: how the cards are plugged in, and whether they reach each other."""

from __future__ import annotations

from itertools import permutations

from rocmatrix.containers.device_selection import READ_BY_HIP, without_integrated
from rocmatrix.doctor.catalog import Finding, check
from rocmatrix.doctor.host import Host
from rocmatrix.host.hardware import Card, Hardware
from rocmatrix.host.link import ENABLED
from rocmatrix.host.pci_device import PciLink

# amdgpu_gfx.c, compute_partition_show; CPX has one partition for each die, of which there are at least two
PARTITIONS = {"DPX": 2, "TPX": 3, "QPX": 4, "CPX": 2}
REBAR_FIX = "in the firmware's setup: Above 4G Decoding on, Resizable BAR on, CSM off"


@check(
    "D201",
    title="PCIe atomics reach the card",
    why="without them the host and a card cannot signal each other by atomics, and kernels that do so fault or hang",
    source="Linux, amdkfd/kfd_topology.c (kfd_set_iolink_no_atomics); ROCm documentation, PCIe atomics",
)
def atomics(host: Host) -> Finding:
    """Check PCIe atomics over the links that the kernel lists between cards and processors (D201)."""
    machine = host.hardware
    numbers = {card.node: card for card in machine.cards if not card.integrated}
    to_host = (link for link in machine.links if link.source in numbers and link.target not in numbers)
    ends = [link for link in to_host if link.direct and link.flags & ENABLED]
    if not ends:
        return _silent(host, "D201", "the kernel reports no link between a card and a processor")
    without = sorted({numbers[link.source].index for link in ends if not link.atomics})
    if not without:
        return Finding(code="D201", status="ok", seen=f"on all {len(ends)} links to a processor")
    seen = f"no atomics between the processor and card {_join(without)}"
    fix = "move the card to a slot of the processor itself: chipset slots and old PCIe switches drop atomics"
    return Finding(code="D201", status="error", seen=seen, fix=fix)


@check(
    "D202",
    title="The link has all the card's lanes",
    why="half the lanes is half the speed to the host and, without XGMI, between cards",
    source="Linux, drivers/pci/pci-sysfs.c; radeon docs, recommended system configuration for multi-GPU",
)
def width(host: Host) -> Finding:
    """Check that the link of each card has all its lanes (D202)."""
    rows = _links(host.hardware)
    known = [(card, link) for card, link in rows if link.width and link.most_width]
    if not known:
        return _silent(host, "D202", "PCI reports no lanes")
    narrow = [(card, link) for card, link in known if link.narrow]
    if not narrow:
        return Finding(code="D202", status="ok", seen=_all(known))
    seen = "; ".join(f"card {card.index} at {link.port}: {link.summary}{_slot(link)}" for card, link in narrow)
    fix = "sudo lspci -vv -s {port} | grep -i lnk, then a slot with all lanes, or another split in the firmware's setup"
    return Finding(code="D202", status="warning", seen=seen, fix=fix.format(port=narrow[0][1].port))


@check(
    "D203",
    title="The link runs at the card's speed",
    why="a link of an older generation, or one trained down, carries less; an idle card slows its link by itself",
    source="Linux, drivers/pci/pci-sysfs.c",
)
def speed(host: Host) -> Finding:
    """Check the speed of each card's link (D203). An idle card, or one that reports no load, gets a note only."""
    known = [(card, link) for card, link in _links(host.hardware) if link.speed and link.most_speed]
    if not known:
        return _silent(host, "D203", "PCI reports no speed")
    slow = [(card, link) for card, link in known if link.slow]
    if not slow:
        return Finding(code="D203", status="ok", seen=_all(known))
    busy = [card for card, _ in slow if card.adapter and (card.adapter.busy_percent or 0) > 0]
    seen = "; ".join(f"card {card.index} at {link.port}: {link.summary}" for card, link in slow)
    idle = "" if busy else "; the card is idle, and may have slowed its link down by itself"
    port = slow[0][1].port
    fix = f"look again under load: cat /sys/bus/pci/devices/{port}/current_link_speed"
    return Finding(code="D203", status="warning" if busy else "note", seen=seen + idle, fix=fix)


@check(
    "D204",
    title="Resizable BAR is on",
    why="without it other devices reach 256 MiB of the card's memory, and cards cannot read each other over PCIe",
    source="ROCm/ROCm:docs/how-to/Bar-Memory.rst",
)
def resizable_bar(host: Host) -> Finding:
    """Check that resizable BAR is on (D204). An APU has no BAR of its own to resize."""
    cards = [card for card in host.hardware.cards if card.adapter and not card.integrated]
    known = [(card, card.adapter.resizable) for card in cards if card.adapter and card.adapter.resizable is not None]
    if not known:
        return _silent(host, "D204", "DRM reports no memory sizes")
    small = [card for card, whole in known if not whole]
    if not small:
        return Finding(code="D204", status="ok", seen=f"all memory of {len(known)} card(s) is visible")
    sizes = ", ".join(
        f"card {card.index} shows {(card.adapter.visible_bytes or 0) >> 20} of {(card.adapter.memory_bytes or 0) >> 20}"
        for card in small
        if card.adapter
    )
    return Finding(code="D204", status="warning", seen=f"{sizes} MiB", fix=REBAR_FIX)


@check(
    "D205",
    title="No integrated GPU is in the way",
    why="it counts as a device, breaks collectives and switches hipBLASLt off for the whole process",
    source="ROCm/ROCm#4437; ROCm/rccl#876; pytorch v2.9.1:aten/src/ATen/Context.cpp",
)
def integrated(host: Host) -> Finding:
    """Check for an integrated GPU next to a discrete one that the shell does not hide (D205); containers hide it."""
    machine = host.hardware
    if not machine.cards:
        return Finding(code="D205", status="not applicable", seen=host.no_card)
    if not machine.hides_integrated:
        return Finding(code="D205", status="ok", seen="there is none next to a discrete card")
    small = [card for card in machine.cards if card.integrated]
    visible = without_integrated(machine, {})
    names = ", ".join(f"card {card.index} ({card.gfx})" for card in small)
    environment = host.environment or {}
    if any(environment.get(name) for name in READ_BY_HIP):
        return Finding(code="D205", status="ok", seen=f"{names} is there, and the environment chooses devices")
    fix = " ".join(f"export {name}={value}" for name, value in visible.items())
    seen = f"{names} is part of the processor; runs of this project hide it, other programs see it"
    return Finding(code="D205", status="warning", seen=seen, fix=fix)


@check(
    "D206",
    title="Cards reach each other's memory",
    why="else every exchange between them is copied through the host",
    source="Linux, amdkfd/kfd_topology.c (p2p_links); ROCm/ROCm:docs/conceptual/iommu.rst",
)
def peers(host: Host) -> Finding:
    """Check that every pair of cards has a link in the topology, in both directions (D206).

    An integrated GPU next to discrete cards serves no run; several alone are MI300A, which do.
    """
    machine = host.hardware
    cards = [card for card in machine.cards if not card.integrated] or list(machine.cards)
    if len(cards) < 2:
        return Finding(code="D206", status="not applicable", seen="there is one card at most")
    if not machine.links:
        return Finding(code="D206", status="unknown", seen="the topology reports no links")
    joined = {(link.source, link.target) for link in machine.links if link.peer_dma}
    apart = [(one.index, two.index) for one, two in permutations(cards, 2) if (one.node, two.node) not in joined]
    if not apart:
        nodes = {card.node for card in cards}
        xgmi = sum(link.xgmi and {link.source, link.target} <= nodes for link in machine.links)
        return Finding(code="D206", status="ok", seen=f"all {len(cards)} do, {xgmi} links of them over XGMI")
    seen = (
        f"{len(apart)} of {len(cards) * (len(cards) - 1)} ways are missing, such as card {apart[0][0]} to {apart[0][1]}"
    )
    fix = f"{REBAR_FIX}; a kernel with CONFIG_HSA_AMD_P2P and CONFIG_PCI_P2PDMA: grep P2P /boot/config-$(uname -r)"
    return Finding(code="D206", status="warning", seen=seen, fix=fix)


@check(
    "D207",
    title="Partitions are what was meant",
    why="a partitioned card shows as several small ones, each with a share of its memory",
    source="Linux, amdgpu/amdgpu_gfx.c (current_compute_partition)",
)
def partitions(host: Host) -> Finding:
    """Report partitioned cards and the mode of their partitions (D207)."""
    machine = host.hardware
    if not machine.cards:
        return Finding(code="D207", status="not applicable", seen=host.no_card)
    split = [group for group in machine.physical_cards if len(group) > 1] or _partitioned_by_mode(machine)
    if not split:
        return Finding(code="D207", status="ok", seen=f"{len(machine.cards)} card(s), none partitioned")
    first = split[0][0]
    modes = [first.adapter.compute_partition, first.adapter.memory_partition] if first.adapter else []
    mode = "/".join(name for name in modes if name) or "partitioned"
    seen = f"{len(machine.physical_cards)} card(s) show as {len(machine.cards)} ({mode}, {len(split[0])} each)"
    if short := _short_of_partitions(machine):
        seen = (
            f"{len(machine.physical_cards)} card(s) show as {len(machine.cards)} ({mode}); missing: {'; '.join(short)}"
        )
        fix = "sudo dmesg | grep -i -e kfd -e partition; then load the driver again: sudo modprobe -r amdgpu"
        fix += " && sudo modprobe amdgpu"
        return Finding(code="D207", status="warning", seen=seen, fix=fix)
    where = first.adapter.folder if first.adapter else "sys/bus/pci/devices/ADDRESS"
    fix = f"where one big card is wanted: echo SPX | sudo tee /{where}/current_compute_partition"
    return Finding(code="D207", status="note", seen=seen, fix=fix)


def _partitioned_by_mode(machine: Hardware) -> list[tuple[Card, ...]]:
    """Return the cards whose mode is a partitioned one although a single partition shows."""
    groups = machine.physical_cards
    return [group for group in groups if group[0].adapter and group[0].adapter.compute_partition in PARTITIONS]


def _short_of_partitions(machine: Hardware) -> list[str]:
    """Return the cards that show fewer partitions than their mode has, or than the fullest card of that mode.

    Where no mode is reported, a card with several partitions is compared with the others of that kind.
    """
    rows = [
        (group, group[0].adapter.compute_partition if group[0].adapter else None) for group in machine.physical_cards
    ]
    short = []
    for group, mode in rows:
        alike = [len(other) for other, own in rows if own == mode and other[0].gfx == group[0].gfx]
        counted = max(alike) if mode in PARTITIONS or (mode is None and len(group) > 1) else 1
        numbered = max(card.partition for card in group) + 1
        expected = max(counted, numbered, PARTITIONS.get(mode or "", 1))
        if len(group) < expected:
            least = "at least " if mode == "CPX" and expected == PARTITIONS["CPX"] else ""
            short.append(f"{group[0].pci_address or f'card {group[0].index}'} shows {len(group)} of {least}{expected}")
    return short


def _silent(host: Host, code: str, reason: str) -> Finding:
    """Return that nothing was reported; not applicable where there is no discrete card."""
    cards = host.hardware.cards
    if all(card.integrated for card in cards):
        seen = "the card is part of the processor" if cards else host.no_card
        return Finding(code=code, status="not applicable", seen=seen)
    return Finding(code=code, status="unknown", seen=reason)


def _links(machine: Hardware) -> list[tuple[Card, PciLink]]:
    """Return the first partition of each discrete card with its link to the slot."""
    firsts = [group[0] for group in machine.physical_cards]
    return [(card, card.adapter.link) for card in firsts if card.adapter and not card.integrated]


def _all(rows: list[tuple[Card, PciLink]]) -> str:
    return "; ".join(f"card {card.index}: {link.summary}" for card, link in rows)


def _slot(link: PciLink) -> str:
    return f" (the slot has x{link.slot_width})" if link.slot_width else ""


def _join(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))
