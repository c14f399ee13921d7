"""A snapshot of the cards as plain data, for one JSON line. Pure; serial numbers are left out."""

from __future__ import annotations

from typing import Any

from rocmatrix.host.watch.snapshot import CardSnapshot, Snapshot

SCHEMA = 1


def described(snapshot: Snapshot, *, source: str) -> dict[str, Any]:
    """Return the snapshot: memory in bytes, shares in percent, °C, W, MHz, GT/s for each lane; None is unknown.

    Args:
        source: what was read: "this machine", "recorded tree" or "simulated machine".
    """
    return {
        "event": "cards",
        "schema": SCHEMA,
        "time": snapshot.time,
        "source": source,
        "cards": [_card(each) for each in snapshot.cards],
        "processes": [vars(each) for each in snapshot.processes],
        "withheld_processes": snapshot.withheld,
    }


def _card(now: CardSnapshot) -> dict[str, Any]:
    seen = now.sensors
    return {
        "cards": list(now.partitions),
        "architecture": now.card.gfx,
        "product": now.card.adapter.product if now.card.adapter else None,
        "address": now.address,
        "integrated": now.card.integrated,
        "state": seen.state,
        "load_percent": seen.load_percent,
        "memory_load_percent": seen.memory_load_percent,
        "memory_bytes": {"used": seen.memory_used, "total": seen.memory_total},
        "shared_bytes": {"used": seen.shared_used, "total": seen.shared_total},
        "temperatures": [vars(each) for each in seen.temperatures],
        "power_w": seen.power_w,
        "power_limit_w": seen.power_limit_w,
        "core_mhz": seen.core_mhz,
        "memory_mhz": seen.memory_mhz,
        "link": vars(seen.link) if seen.link else None,
        "throttled": None if now.throttled is None else list(now.throttled),
    }
