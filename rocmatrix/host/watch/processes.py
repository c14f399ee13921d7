"""Processes that use the cards, by DRM's fdinfo and KFD.

`/proc/PID/fdinfo`: Linux Documentation/gpu/drm-usage-stats.rst; a client that several descriptors share counts once.
`/sys/class/kfd/kfd/proc/PID/vram_GPUID` (bytes): `drivers/gpu/drm/amd/amdkfd/kfd_process.c`. ROCm's memory is in both,
so the larger one counts. Its queues are scheduled by the card itself, and most kernels count no engine's time for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rocmatrix.host.sysfs import Files, is_unsigned

UNITS = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
REGIONS = ("drm-resident-vram", "drm-memory-vram", "drm-total-vram")  # the second is the older name of the first
KFD = ("sys/class/kfd/kfd/proc", "sys/devices/virtual/kfd/kfd/proc")
_CARD = re.compile(r"^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")
_AMOUNT = re.compile(r"^(\d{1,20})(?: (\w+))?$")


@dataclass(kw_only=True)
class Use:
    """One process on one card. Memory in bytes, None where not reported; engines in nanoseconds since it began."""

    pid: int
    name: str
    address: str
    memory: int | None = None
    engines: dict[str, int] = field(default_factory=dict)
    compute: bool = False

    @property
    def idle(self) -> bool:
        """Whether it only holds the card's node open."""
        return not (self.memory or any(self.engines.values()) or self.compute)


@dataclass(frozen=True, kw_only=True)
class Processes:
    """Processes that use the cards, by PCI address; `withheld` counts those that this user may not inspect."""

    uses: Mapping[tuple[int, str], Use]
    withheld: int


def read(files: Files, cards: Mapping[int, str]) -> Processes:
    """Read who uses the cards.

    Args:
        cards: PCI addresses by the GPU id that KFD gives the card.
    """
    uses: dict[tuple[int, str], Use] = {}
    seen: set[tuple[str, str]] = set()
    withheld = 0
    for pid in files.numbers("proc"):
        try:
            clients = list(_clients(files, pid))
        except PermissionError:
            withheld += bool(files.text(f"proc/{pid}/cmdline"))  # threads of the kernel have none
            continue
        for client in clients:
            if (client["drm-pdev"], client["drm-client-id"]) not in seen:
                seen.add((client["drm-pdev"], client["drm-client-id"]))
                _add(_use(uses, files, pid, client["drm-pdev"]), client)
    for pid, gpu_id, memory in _compute(files):
        if gpu_id in cards:
            use = _use(uses, files, pid, cards[gpu_id])
            use.compute, use.memory = True, max(use.memory or 0, memory)
    return Processes(uses={key: use for key, use in uses.items() if not use.idle}, withheld=withheld)


def printable(text: str) -> str:
    """Return a text that a terminal prints as it is: a process may name itself by control sequences."""
    return "".join(sign if sign.isprintable() else "?" for sign in text)


def _use(uses: dict[tuple[int, str], Use], files: Files, pid: int, address: str) -> Use:
    if (pid, address) not in uses:
        name = printable(files.word(f"proc/{pid}/comm") or "?")
        uses[pid, address] = Use(pid=pid, name=name, address=address)
    return uses[pid, address]


def _clients(files: Files, pid: int) -> Iterator[dict[str, str]]:
    """Yield the keys of each descriptor of a process that belongs to a card. Raises PermissionError."""
    for number in _descriptors(files, pid):
        text = files.text(f"proc/{pid}/fdinfo/{number}") or ""
        if "drm-driver" not in text:
            continue
        pairs = (line.partition(":") for line in text.splitlines())
        keys = {key.strip(): value.strip() for key, _, value in pairs}
        if (
            keys.get("drm-driver") == "amdgpu"
            and _CARD.match(keys.get("drm-pdev", ""))
            and keys.get("drm-client-id", "").isdecimal()
        ):
            yield keys


def _descriptors(files: Files, pid: int) -> list[str]:
    """Return the descriptors that lead to a card; all of them in a recording, which holds no links."""
    names = files.guarded_names(f"proc/{pid}/fd")
    if not names:
        return files.guarded_names(f"proc/{pid}/fdinfo")
    return [name for name in names if (files.target(f"proc/{pid}/fd/{name}") or "").startswith("/dev/dri/")]


def _add(use: Use, keys: Mapping[str, str]) -> None:
    """Add a client's memory and engine times to those of its process."""
    amounts = (_bytes(keys[region]) for region in REGIONS if region in keys)
    memory = next((amount for amount in amounts if amount is not None), None)
    if memory is not None:
        use.memory = (use.memory or 0) + memory
    for key, value in keys.items():
        engine = key.removeprefix("drm-engine-")
        spent = value.removesuffix(" ns")
        if engine != key and not engine.startswith("capacity-") and spent != value and is_unsigned(spent):
            use.engines[engine] = use.engines.get(engine, 0) + int(spent)


def _bytes(text: str) -> int | None:
    match = _AMOUNT.match(text)
    scale = UNITS.get(match[2] or "") if match else None
    return int(match[1]) * scale if match and scale is not None else None


def _compute(files: Files) -> Iterator[tuple[int, int, int]]:
    """Yield process, GPU id and bytes of memory of each process that KFD serves."""
    folder = next((folder for folder in KFD if files.numbers(folder)), KFD[0])
    for pid in files.numbers(folder):
        for name in files.names(f"{folder}/{pid}"):
            gpu_id = name.removeprefix("vram_")
            memory = files.number(f"{folder}/{pid}/{name}") if gpu_id != name else None
            if memory is not None and is_unsigned(gpu_id):
                yield pid, int(gpu_id), memory
