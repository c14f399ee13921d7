"""Health of this machine's AMD cards over a stretch of work: read before, read after, compared.

Counters that moved are reported and prove nothing alone: another program on the card, or another device below the same
port, may have moved them. What is not reported is unknown.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainer.runtime.listing import matching
from trainer.telemetry.health import counters, metrics_table

LOST = ("ras/", "pages/")  # counters whose files are there as long as the driver has the card
OF_LISTS = ("pages/", "pcie/")  # counters that have no entry at 0
SYS, DEV = Path("/sys"), Path("/dev")


@dataclass(frozen=True, kw_only=True)
class CardSnapshot:
    """One card at one moment: its counters, its energy in joules and its throttled cycles; empty where unknown.

    `listed`: beginnings of the names whose source could be read, so that a counter without an entry is 0. `limits` are
    throttled cycles of a processor's graphics, which has no total of them.
    """

    counters: Mapping[str, int]
    listed: tuple[str, ...]
    energy_j: float | None
    cycles: Mapping[str, int]
    layout: tuple[int, int] | None = None  # of the table that energy and cycles are from
    limits: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Change:
    """Change of one card's health: counters that rose or fell as (before, after), throttled shares, joules.

    `limited` counts the cycles in which a limit held, where no total makes a share of them. `lost` names counters of
    RAS and bad pages that could be read before and no longer: the driver withholds them while it resets a card
    (amdgpu_ras.c, "Query currently inaccessible").
    `known` counts the counters that were read both times; with none, nothing is known of the card's errors.
    """

    known: int
    rose: Mapping[str, tuple[int, int]]
    fell: Mapping[str, tuple[int, int]]
    gone: bool
    throttled: Mapping[str, float]
    energy_j: float | None
    limited: Mapping[str, int] = field(default_factory=dict)
    lost: tuple[str, ...] = ()

    @property
    def moved(self) -> bool:
        """Whether an error counter changed or is lost, or the card is no longer there."""
        return bool(self.rose or self.fell or self.gone or self.lost)

    def summary(self) -> str:
        """Return the change as text, empty for none."""
        parts = ["it is no longer there"] if self.gone else []
        parts += [f"{name} rose from {before} to {after}" for name, (before, after) in self.rose.items()]
        parts += [
            f"{name} fell from {before} to {after}: it started anew" for name, (before, after) in self.fell.items()
        ]
        parts += [f"{', '.join(self.lost)} can no longer be read"] if self.lost else []
        return ", ".join(parts)


@dataclass(kw_only=True)
class HealthWatch:
    """Looks at the cards when it is made and when it is closed; made of nothing where no amdgpu card is to be seen."""

    root: Path = SYS
    devices: Path = DEV
    before: dict[str, CardSnapshot] = field(default_factory=dict)
    began: float = 0.0

    def __post_init__(self) -> None:
        self.before, self.began = self._snapshots(), time.monotonic()

    def changes(self) -> dict[str, Change]:
        """Return what became of each card, by its PCI address."""
        after, seconds = self._snapshots(), time.monotonic() - self.began
        return {address: compare(before, after.get(address), seconds) for address, before in self.before.items()}

    def report(self) -> dict[str, Any] | None:
        """Return the `health` event's fields, None where no card was to be seen."""
        if not self.before:
            return None
        changed = self.changes()
        return {
            "seconds": round(time.monotonic() - self.began, 3),
            "moved": sorted(address for address, change in changed.items() if change.moved),
            "unknown": sorted(address for address, change in changed.items() if not change.known),
            "what": "; ".join(
                f"card {address}: {change.summary()}" for address, change in changed.items() if change.moved
            ),
            "cards": {address: _described(change) for address, change in changed.items()},
        }

    def _snapshots(self) -> dict[str, CardSnapshot]:
        folders = matching(self.root, "bus/pci/drivers/amdgpu/*:*")
        return {folder.name: read_card(folder) for folder in folders if self._given(folder)}

    def _given(self, folder: Path) -> bool:
        """Return whether this process was given the card: a container is given the render nodes of its own alone."""
        nodes = [path.name for path in matching(folder, "drm/renderD*")]
        return not nodes or any((self.devices / "dri" / name).exists() for name in [*nodes, *self._partitions(folder)])

    def _partitions(self, folder: Path) -> list[str]:
        """Return the render nodes of a card's partitions; below the card itself is the first's alone (amdgpu_xcp)."""
        if not (folder / "current_compute_partition").exists():
            return []
        nodes = [_numbers(path) for path in matching(self.root, "class/kfd/kfd/topology/nodes/*/properties")]
        return [f"renderD{node['drm_render_minor']}" for node in nodes if _place(node) == folder.name]


def _numbers(path: Path) -> dict[str, int]:
    """Return the lines "key value" of a node of the KFD topology; nothing of one that is kept from this process."""
    try:
        pairs = (line.split() for line in path.read_text().splitlines())
        return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdecimal()}
    except OSError:
        return {}


def _place(node: Mapping[str, int]) -> str | None:
    """Return the PCI address of a node's card without the partition's number, None for a node without a render node."""
    if not node.get("drm_render_minor"):
        return None
    location = node.get("location_id", 0)
    return f"{node.get('domain', 0):04x}:{location >> 8 & 0xFF:02x}:{location >> 3 & 0x1F:02x}.{location & 7}"


def read_card(folder: Path) -> CardSnapshot:
    """Read one card whose PCI attributes are in `folder`."""
    table = counters.metrics_bytes(folder)
    return CardSnapshot(
        listed=tuple(counters.listed(folder)),  # before: a card that wakes between the two is unknown
        counters=counters.read(folder),
        energy_j=metrics_table.energy(table),
        cycles=metrics_table.cycles(table),
        layout=metrics_table.version(table),
        limits=metrics_table.limits(table),
    )


def compare(before: CardSnapshot, after: CardSnapshot | None, seconds: float = 0.0) -> Change:
    """Return what became of a card between two snapshots; None for `after` is a card that is no longer there.

    A counter that is absent at one moment is compared as 0 only where its file lists what happened (bad pages, replays)
    and could be read then: that of a card that slept is unknown. Replays that fall to 0 are those of a driver or card
    that began anew.

    Args:
        before: the card at the start.
        after: the card later on.
        seconds: time between both.
    """
    if after is None:
        return Change(known=0, rose={}, fell={}, gone=True, throttled={}, energy_j=None)
    old, new = before.counters, after.counters
    emptied = [name for name in old if name.startswith(OF_LISTS) and name.startswith(after.listed) and name not in new]
    new = {**new, **dict.fromkeys(emptied, 0)}
    pairs = {name: (old[name], new[name]) for name in old if name in new}
    listed = {name: (0, new[name]) for name in new if name not in old and name.startswith(before.listed)}
    return Change(
        known=len(pairs) + len(listed),
        rose={name: pair for name, pair in {**pairs, **listed}.items() if pair[1] > pair[0]},
        fell={name: pair for name, pair in pairs.items() if pair[1] < pair[0]},
        gone=False,
        throttled=metrics_table.throttled(before.cycles, after.cycles),
        energy_j=_energy(before, after, seconds),
        limited=metrics_table.held(before.limits, after.limits),
        lost=tuple(name for name in old if name.startswith(LOST) and name not in new),
    )


def _energy(before: CardSnapshot, after: CardSnapshot, seconds: float) -> float | None:
    """Return the joules between two snapshots, None where a driver that was loaded anew counts in another layout."""
    if before.layout != after.layout:
        return None
    narrow = before.layout in metrics_table.NARROW_LAYOUTS
    return metrics_table.used(before.energy_j, after.energy_j, seconds, narrow=narrow)


def _described(change: Change) -> dict[str, Any]:
    return {
        "known": change.known,
        "rose": {name: list(pair) for name, pair in change.rose.items()},
        "fell": {name: list(pair) for name, pair in change.fell.items()},
        "gone": change.gone,
        "lost": list(change.lost),
        "throttled": dict(change.throttled),
        "limited": dict(change.limited),
        "energy_j": change.energy_j,
    }
