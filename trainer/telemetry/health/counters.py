"""Error counters of one card and of the PCIe devices between it and the processor, read below /sys.

Sources: Linux `drivers/gpu/drm/amd/amdgpu/amdgpu_ras.c` (`ras/*_err_count` and `ras/aca_*`: "ue: 0", "ce: 0", "de: 0";
`ras/gpu_vram_bad_pages`: address, size and R, P or F; `ras/event_state`: "Poison Consumption: count:0, last_seqno:0",
of all cards of an XGMI hive together), `amdgpu_device.c` (`pcie_replay_count`) and
Documentation/ABI/testing/sysfs-bus-pci-devices-aer_stats (`aer_dev_*`, whose last line is the total, and of a root port
`aer_rootport_total_err_*`: what all devices below it have signalled to it; read where the card is the only one).

An absent, unreadable or malformed file is unknown, never zero, and so is a number of ones in all its 32 or 64 bits: a
bus gives it for a card that no longer responds, and drivers for what they do not count. `xgmi_error` is not read:
reading clears it, and `ras/xgmi_wafl_err_count` counts the same errors. A replay count of 0 is unknown, for drivers of
some cards return a constant 0.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from trainer.runtime.listing import matching
from trainer.telemetry.health import metrics_table

MOST_BYTES = 1 << 20
BAD_PAGES = "ras/gpu_vram_bad_pages"
DEEPEST = 12
_ADDRESS = re.compile(r"^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")
_RAS = re.compile(r"^[ \t]*(ue|ce|de)[ \t]*:[ \t]*(\d{1,20})[ \t\0]*$", re.MULTILINE | re.IGNORECASE)
_EVENT = re.compile(r"^([A-Z][A-Za-z ]{0,40}?) ?: count:(\d{1,20}), last_seqno:\d+\s*$", re.MULTILINE)
_PAGE = re.compile(r"^0x[0-9a-f]+ : 0x[0-9a-f]+ : ([RPF])\s*$", re.MULTILINE | re.IGNORECASE)
_TOTAL = re.compile(r"^TOTAL_ERR_\w+[ \t]+(\d{1,20})[ \t]*$", re.MULTILINE)
_ONES = ((1 << 32) - 1, (1 << 63) - 1, (1 << 64) - 1)
_SIGNALLED = {"correctable": "cor", "nonfatal": "nonfatal", "fatal": "fatal"}
_PAGES = {"R": "retired", "P": "to be retired", "F": "not to be retired"}


def read(folder: Path) -> dict[str, int]:
    """Return what is known of the card whose PCI attributes are in `folder`, by names such as "ras/umc/ue"."""
    return {
        **dict(_ras(folder / "ras")),
        **dict(_events(folder / "ras/event_state")),
        **dict(_pages(folder / BAD_PAGES)),
        **{name: count for name, count in _replays(folder).items() if count},
        **dict(_aer(folder)),
    }


def listed(folder: Path) -> list[str]:
    """Return how the names of counters begin that are 0 where they have no entry: their source can be read now."""
    pages = ["pages/"] if _read(folder / BAD_PAGES) is not None else []
    return pages + [name for name, count in _replays(folder).items() if count is not None]


def _replays(folder: Path) -> dict[str, int | None]:
    """Return the replays by source, None where it cannot be read; one may be readable later than the other."""
    table = metrics_table.replays(metrics_bytes(folder))
    return {"pcie/replays": _whole(folder / "pcie_replay_count"), "pcie/metrics_replays": table}


def metrics_bytes(folder: Path) -> bytes:
    """Return the card's `gpu_metrics` to its end, empty where it is absent: one read may give 4 KiB at most."""
    try:
        with (folder / "gpu_metrics").open("rb", buffering=0) as file:
            return b"".join(iter(lambda: file.read(4096), b""))
    except OSError:
        return b""


def _ras(folder: Path) -> Iterator[tuple[str, int]]:
    for path in sorted([*matching(folder, "*_err_count"), *matching(folder, "aca_*")]):
        block = path.name.removesuffix("_err_count")
        for kind, number in _RAS.findall(_text(path)):
            if int(number) not in _ONES:
                yield f"ras/{block}/{kind.lower()}", int(number)


def _events(path: Path) -> Iterator[tuple[str, int]]:
    """Yield fatal errors, and poison that memory made or a program read: what it then computed is wrong."""
    for name, count in _EVENT.findall(_text(path)):
        yield f"ras/event/{name.lower()}", int(count)


def _pages(path: Path) -> Iterator[tuple[str, int]]:
    """Yield the bad pages by what became of them, from the first on; an empty list proves no ECC."""
    for mark, count in Counter(mark.upper() for mark in _PAGE.findall(_text(path))).items():
        yield f"pages/{_PAGES[mark]}", count


def _aer(folder: Path) -> Iterator[tuple[str, int]]:
    """Yield the totals of the card, its switches and the root port: the link partner often holds the count."""
    place = folder.resolve()
    for _ in range(DEEPEST):
        if not _ADDRESS.match(place.name):
            return
        for kind in ("correctable", "nonfatal", "fatal"):
            total = _TOTAL.search(_text(place / f"aer_dev_{kind}"))
            if total and int(total[1]) not in _ONES:
                yield f"aer/{place.name}/{kind}", int(total[1])
        for kind, word in _SIGNALLED.items() if _is_alone(place, folder.resolve()) else ():
            if (count := _whole(place / f"aer_rootport_total_err_{word}")) is not None:
                yield f"aer/{place.name}/signalled {kind}", count
        place = place.parent


def _is_alone(port: Path, card: Path) -> bool:
    """Return whether every device at the end of a port's branches is a function of the card's."""
    own = card.name.rpartition(".")[0]
    return all(name.rpartition(".")[0] == own for name in _ends(port, DEEPEST))


def _ends(place: Path, deepest: int) -> Iterator[str]:
    try:
        below = [each for each in place.iterdir() if _ADDRESS.match(each.name)] if deepest else []
    except OSError:
        below = []
    for each in below:
        yield from _ends(each, deepest - 1)
    if not below:
        yield place.name


def _whole(path: Path) -> int | None:
    text = _text(path).strip()
    known = text.isascii() and text.isdigit() and len(text) <= 20 and int(text) not in _ONES
    return int(text) if known else None


def _text(path: Path) -> str:
    return (_read(path) or "").replace("\r", "")


def _read(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES).decode(errors="replace")
    except OSError:  # EINVAL of a card that sleeps or a block without RAS
        return None
