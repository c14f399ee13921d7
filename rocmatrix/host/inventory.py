"""Inventory of a host as plain data for programs: driver, cards, links and what cannot be used. Pure.

Serial numbers are left out: the text is made to be sent. Sizes in bytes, speeds in GT/s a lane, bandwidths in MB/s.
"""

from __future__ import annotations

from typing import Any

from rocmatrix.host.hardware import Card, Hardware
from rocmatrix.host.link import Link
from rocmatrix.host.pci_device import Adapter


def described(machine: Hardware) -> dict[str, Any]:
    """Return the inventory; what is not reported is None."""
    return {
        "kernel": machine.kernel,
        "driver": {"version": machine.driver.version, "origin": machine.driver.origin} if machine.driver else None,
        "memory_bytes": machine.memory_bytes,
        "plugged": len(machine.physical_cards),
        "cards": [_card(card) for card in machine.cards],
        "links": [_link(link) for link in machine.links],
        "hidden": machine.hidden_nodes,
        "devices": [vars(device) for device in machine.devices],
        "unusable": machine.unusable,
    }


def pci_id(card: Card) -> str | None:
    """Return maker, device and revision, such as 1002:744c:cc: an RX 7900 XT, whose XTX has another revision alone."""
    revision = (card.adapter.revision if card.adapter else None) or ""
    known = f":{revision[2:]}" if revision.startswith("0x") else ""
    return f"1002:{card.device_id:04x}{known}" if card.device_id is not None else None


def _card(card: Card) -> dict[str, Any]:
    known = {
        "index": card.index,
        "node": card.node,
        "architecture": card.gfx,
        "device_id": f"0x{card.device_id:04x}" if card.device_id is not None else None,
        "pci_id": pci_id(card),
        "pci_address": card.pci_address,
        "integrated": card.integrated,
        "memory_bytes": card.memory_bytes,
        "compute_units": card.compute_units,
        "partition": card.partition,
        "render_node": card.render_path,
    }
    return known | (_adapter(card.adapter) if card.adapter else {"product": None})


def _adapter(adapter: Adapter) -> dict[str, Any]:
    link = adapter.link
    return {
        "product": adapter.product,
        "visible_bytes": adapter.visible_bytes,
        "numa_node": adapter.numa_node,
        "compute_partition": adapter.compute_partition,
        "memory_partition": adapter.memory_partition,
        "slot": {
            "width": link.width,
            "most_width": link.most_width,
            "speed": link.speed,
            "most_speed": link.most_speed,
        },
    }


def _link(link: Link) -> dict[str, Any]:
    return {
        "from": link.source,
        "to": link.target,
        "kind": link.kind,
        "weight": link.weight,
        "bandwidth": link.most_bandwidth,
        "direct": link.direct,
    }
