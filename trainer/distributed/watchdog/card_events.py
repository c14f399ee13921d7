"""Resets and throttling of the cards while ranks run, from the events that the kernel keeps for each process.

Sources: Linux `include/uapi/linux/kfd_ioctl.h` (AMDKFD_IOC_SMI_EVENTS: in, a GPU's id; out, a file; a mask of 64 bits
is written to it, and lines are read) and `drivers/gpu/drm/amd/amdkfd/kfd_smi_events.c` ("%x " of the event's number,
then for a reset "%x %s" of its count and cause). It takes no root for these events; faults are those of the asking
process alone and are not asked for. Has run on a stand-in of the kernel's file only, never on a card.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainer.runtime.listing import matching

KFD = Path("/dev/kfd")
TOPOLOGY = Path("/sys/class/kfd/kfd/topology/nodes")
SMI_EVENTS = 0xC008_4B1F  # _IOWR('K', 0x1F, 8 bytes)
KINDS = {2: "throttled by heat", 3: "reset begun", 4: "reset ended"}
RESETS = ("reset begun", "reset ended")
MASK = sum(1 << (number - 1) for number in KINDS)
MOST = 50  # events of a kind that are kept
READ_BYTES = 4096


@dataclass(frozen=True, kw_only=True)
class CardEvent:
    """One event of a card: the id of its GPU in the KFD topology, what happened, and the kernel's words on it."""

    gpu_id: int
    kind: str
    detail: str


@dataclass(kw_only=True)
class CardEvents:
    """The open event files of the cards, and what was read from them; empty where the kernel gives none."""

    files: dict[int, int] = field(default_factory=dict)
    seen: list[CardEvent] = field(default_factory=list)

    def poll(self) -> None:
        """Read what came since the last call, without waiting."""
        for gpu_id, file in self.files.items():
            with contextlib.suppress(OSError):  # nothing there, or the card is gone
                self.seen += parse(gpu_id, os.read(file, READ_BYTES).decode(errors="replace"))
        self.seen = first_of_each_kind(self.seen)

    def resets(self) -> list[CardEvent]:
        """Return the resets among the events."""
        return [event for event in self.seen if event.kind in RESETS]

    def close(self) -> None:
        """Close the files."""
        for file in self.files.values():
            os.close(file)
        self.files.clear()


def watch_cards(
    kfd: Path = KFD, topology: Path = TOPOLOGY, ioctl: Callable[[int, int, bytes], bytes] = fcntl.ioctl
) -> CardEvents:
    """Return the events of every card that this process may see, from now on. Raises nothing.

    Args:
        kfd: the device node of the KFD.
        topology: folder of the KFD topology's nodes.
        ioctl: sends an ioctl: file, request and bytes to the answer's bytes.
    """
    found = CardEvents()
    with contextlib.suppress(OSError):
        node = os.open(kfd, os.O_RDWR | os.O_CLOEXEC)
        try:
            for gpu_id in gpu_ids(topology):
                with contextlib.suppress(OSError, struct.error):
                    found.files[gpu_id] = _open(node, gpu_id, ioctl)
        finally:
            os.close(node)
    return found


def gpu_ids(topology: Path = TOPOLOGY) -> list[int]:
    """Return the ids of the GPUs in the topology; a node that a container hides has none."""
    found = []
    for path in matching(topology, "*/gpu_id"):
        with contextlib.suppress(OSError, ValueError):
            found.append(int(path.read_text()))
    return [gpu_id for gpu_id in found if gpu_id]


def parse(gpu_id: int, text: str) -> Iterator[CardEvent]:
    """Yield the events of lines such as "3 1 scheduler timeout"; what is not known is left out.

    Args:
        gpu_id: id of the GPU that the lines are of.
        text: lines as read.
    """
    for line in text.splitlines():
        number, _, detail = line.strip().partition(" ")
        with contextlib.suppress(ValueError):
            if (kind := KINDS.get(int(number, 16))) is not None:
                yield CardEvent(gpu_id=gpu_id, kind=kind, detail=detail.strip())


def first_of_each_kind(events: Iterable[CardEvent]) -> list[CardEvent]:
    """Return the first `MOST` events of each kind in order: a card that throttles all day leaves room for its reset."""
    counted: Counter[str] = Counter()
    kept = []
    for event in events:
        counted[event.kind] += 1
        if counted[event.kind] <= MOST:
            kept.append(event)
    return kept


def sentence(resets: list[CardEvent]) -> str:
    """Return what resets mean for ranks that stopped, empty without any."""
    if not resets:
        return ""
    cards = ", ".join(f"GPU {gpu_id}" for gpu_id in dict.fromkeys(event.gpu_id for event in resets))
    causes = ", ".join(dict.fromkeys(words for event in resets if (words := event.detail.partition(" ")[2])))
    return f"The driver reset {cards}{f' ({causes})' if causes else ''}: it is a reset, and no hang of the program"


def _open(node: int, gpu_id: int, ioctl: Callable[[int, int, bytes], Any]) -> int:
    answer = ioctl(node, SMI_EVENTS, struct.pack("<II", gpu_id, 0))
    file: int = struct.unpack("<II", answer)[1]
    os.set_blocking(file, False)
    os.write(file, struct.pack("<Q", MASK))
    return file
