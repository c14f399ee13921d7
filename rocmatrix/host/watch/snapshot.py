"""A snapshot of all cards, compared with the one before where a figure needs two: engines' time, counted throttling."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from rocmatrix.host import gpu_metrics, hardware
from rocmatrix.host.hardware import Card, Hardware
from rocmatrix.host.sysfs import Files
from rocmatrix.host.watch import processes, sensors
from rocmatrix.host.watch.processes import Processes, Use
from rocmatrix.host.watch.sensors import Sensors

DRM = "sys/class/drm"  # a card that comes or goes changes what is in it


@dataclass(frozen=True, kw_only=True)
class CardSnapshot:
    """A card at one moment. `throttled` is empty for no cause, None where that is not known or takes a second snapshot.

    `partitions` are the cards' numbers that share this one's sensors; one number for a card that is not partitioned.
    `address` is its PCI address, on an old kernel its node of the topology.
    """

    partitions: tuple[int, ...]
    address: str
    card: Card
    sensors: Sensors
    throttled: tuple[str, ...] | None

    @property
    def name(self) -> str:
        """Number and architecture: "0 gfx1100", "0-7 gfx942" for partitions."""
        first, last = self.partitions[0], self.partitions[-1]
        return f"{first if first == last else f'{first}-{last}'} {self.card.gfx or 'unknown'}"


@dataclass(frozen=True, kw_only=True)
class ProcessSnapshot:
    """A process on a card. `load_percent` is of its busiest engine since the snapshot before, None where not known."""

    pid: int
    name: str
    address: str
    memory: int | None
    load_percent: int | None


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """All cards at one moment, in seconds since 1970; `withheld` counts processes that could not be read."""

    time: float
    cards: tuple[CardSnapshot, ...]
    processes: tuple[ProcessSnapshot, ...]
    withheld: int


class Watch:
    """Takes snapshots of the cards below `files`."""

    def __init__(
        self, files: Files, *, clock: Callable[[], float] = time.monotonic, now: Callable[[], float] = time.time
    ) -> None:
        self._files, self._clock, self._now = files, clock, now
        self._drm = files.names(DRM)
        self.machine: Hardware = hardware.read_hardware(files)
        self._cards = _plugged(self.machine)
        self._before: dict[tuple[str, int | None], Sensors] = {}
        self._used: tuple[float, Processes] | None = None

    def take(self) -> Snapshot:
        """Read every card. A card that went away stays listed as gone, one that came is added."""
        if (names := self._files.names(DRM)) != self._drm:
            self._drm, self.machine = names, hardware.read_hardware(self._files)
            found = _plugged(self.machine)
            self._cards = self._cards | {key: found[key] for key in found.keys() - self._cards}  # numbers are kept
        ids = {card.gpu_id: place for (place, _), group in self._cards.items() for card in group if card.gpu_id}
        at, used = self._clock(), processes.read(self._files, ids)
        listed = tuple(self._process(use, at) for use in used.uses.values())
        busy = {each.address for each in listed if each.load_percent}
        self._used = (at, used)
        cards = tuple(self._card(key, group, busy=key[0] in busy) for key, group in self._cards.items())
        return Snapshot(time=round(self._now(), 3), cards=cards, processes=listed, withheld=used.withheld)

    def _card(self, key: tuple[str, int | None], group: tuple[Card, ...], *, busy: bool) -> CardSnapshot:
        card = group[0]
        read = sensors.read(self._files, card.adapter.folder if card.adapter else None)
        if busy and read.load_percent == 0:  # some drivers return a constant 0
            read = replace(read, load_percent=None)
        before, self._before[key] = self._before.get(key), read
        return CardSnapshot(
            partitions=tuple(each.index for each in group),
            address=key[0],
            card=card,
            sensors=read,
            throttled=_throttled(before.metrics if before else None, read.metrics),
        )

    def _process(self, use: Use, at: float) -> ProcessSnapshot:
        return ProcessSnapshot(
            pid=use.pid, name=use.name, address=use.address, memory=use.memory, load_percent=self._load(use, at)
        )

    def _load(self, use: Use, at: float) -> int | None:
        if self._used is None:
            return None
        began, earlier = self._used[0], self._used[1].uses.get((use.pid, use.address))
        if earlier is None or at <= began:
            return None
        spent = [time - earlier.engines[name] for name, time in use.engines.items() if name in earlier.engines]
        if not spent or min(spent) < 0 or (use.compute and not any(spent)):
            return None
        return min(round(max(spent) / (at - began) / 1e7), 100)


def _plugged(machine: Hardware) -> dict[tuple[str, int | None], tuple[Card, ...]]:
    """Return the plugged cards by what names them in each snapshot; a recording may give two cards one address."""
    return {(_address(group[0]), group[0].unique_id): group for group in machine.physical_cards}


def _address(card: Card) -> str:
    return card.pci_address or f"node {card.node}"


def _throttled(before: bytes | None, now: bytes | None) -> tuple[str, ...] | None:
    if now is None:
        return None
    status = gpu_metrics.throttled_by(now)
    return status if status is not None or before is None else gpu_metrics.throttled_between(before, now)
