"""What throttles a card, by `gpu_metrics`: the binary table that amdgpu keeps of it.

Layouts: Linux `drivers/gpu/drm/amd/include/kgd_pp_interface.h`: a header of u16 size, u8 format, u8 content; then the
fields in their natural alignment, little-endian. A field of ones is not reported. Since Linux 6.19 (v1.9) a table lists
its fields: their number as i32, and for each a u64 (unit, type, id, number of values; AMDGPU_METRICS_ENC_ATTR) and its
values, packed (smu_cmn.h, DECLARE_SMU_METRICS_CLASS). v3.0, of Strix Point and Strix Halo, counts the cycles of a
timer in which each limit held, without a total (smu14_driver_if_v14_0_0.h, ThrottleResidency_*).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

INDEPENDENT_STATUS = {(1, 3): 112, (2, 2): 120, (2, 3): 120, (2, 4): 120}  # u64, one meaning on all chips
CHIP_STATUS = {(1, 4): 40, (2, 1): 108}  # u32, its bits differ between chips
# amdgpu_smu.h, SMU_THROTTLER_*: sixteen bits a cause
CAUSES = {"power": 0, "current": 16, "temperature": 32, "other": 48}
# v1.6 to v1.8 count cycles instead: accumulation_counter, then five residencies, u32 each
CYCLES = {(1, 6): 32, (1, 7): 40, (1, 8): 40}
LISTED = (1, 9)
TYPES = "BbHhIiQq"  # amdgpu_metrics_attr_type
CYCLES_ID = 9  # amdgpu_metrics_attr_id; the residencies follow
RESIDENCIES = ("prochot", "power", "socket temperature", "regulator temperature", "memory temperature")
LEAST_SHARE = 0.01  # of the cycles between two tables; below it no cause is named
WITHOUT_TOTAL = {(3, 0): 228}  # seven residencies, u32 each
LIMITS = (
    "prochot", "sustained power", "fast power", "slow power", "core temperature", "graphics temperature",
    "SoC temperature",
)  # fmt: skip


def version(table: bytes) -> tuple[int, int] | None:
    """Return format and content revision of a table, None where it is cut short or states another size."""
    if len(table) < 4:
        return None
    size, major, minor = struct.unpack_from("<HBB", table)
    return (major, minor) if size == len(table) else None


def throttled_by(table: bytes) -> tuple[str, ...] | None:
    """Return what throttles the card by a `gpu_metrics` table; None for a format or length that is not known."""
    kind, size = version(table), len(table)
    if kind is None:
        return None
    if (at := INDEPENDENT_STATUS.get(kind)) is not None and size >= at + 8:
        bits: int = struct.unpack_from("<Q", table, at)[0]
        if bits == (1 << 64) - 1:  # the driver fills what a chip does not tell with ones
            return None
        return tuple(cause for cause, shift in CAUSES.items() if bits >> shift & 0xFFFF)
    if (at := CHIP_STATUS.get(kind)) is not None and size >= at + 4:
        chip: int = struct.unpack_from("<I", table, at)[0]
        return None if chip == (1 << 32) - 1 else (f"status 0x{chip:x} of this chip",) if chip else ()
    return None


def cycles(table: bytes) -> Mapping[str, int]:
    """Return the cycles in all (`all`) and those that each cause throttled; empty where the table counts none."""
    if version(table) == LISTED:
        fields = listed(table)
        given = {name: fields.get(CYCLES_ID + place) for place, name in enumerate(("all", *RESIDENCIES))}
        return {name: count for name, count in given.items() if count is not None}
    at = CYCLES.get(version(table) or (0, 0))
    if at is None or len(table) < at + 4 * (1 + len(RESIDENCIES)):
        return {}
    counted = struct.unpack_from(f"<{1 + len(RESIDENCIES)}I", table, at)
    named = zip(("all", *RESIDENCIES), counted, strict=True)
    return {name: count for name, count in named if count != (1 << 32) - 1}


def limits(table: bytes) -> Mapping[str, int]:
    """Return how long each limit has held, in cycles without a total; empty where the table counts none so."""
    at = WITHOUT_TOTAL.get(version(table) or (0, 0))
    if at is None or len(table) < at + 4 * len(LIMITS):
        return {}
    named = zip(LIMITS, struct.unpack_from(f"<{len(LIMITS)}I", table, at), strict=True)
    return {name: count for name, count in named if count != (1 << 32) - 1}


def counts(table: bytes) -> bool:
    """Return whether a table counts throttled time, so that two of them show what throttles now."""
    return bool(limits(table)) or len(cycles(table)) > 1


def listed(table: bytes) -> dict[int, int]:
    """Return the first value of each field that a table lists, by its id; nothing of a list that does not fit."""
    found: dict[int, int] = {}
    at = 8
    for _ in range(max(0, struct.unpack_from("<i", table, 4)[0]) if len(table) >= at else 0):
        if len(table) < at + 8:
            return {}
        (field,) = struct.unpack_from("<Q", table, at)
        kind, number, values = field >> 20 & 0xF, field >> 10 & 0x3FF, field & 0x3FF
        if kind >= len(TYPES) or not values:
            return {}
        size = struct.calcsize(f"<{TYPES[kind]}")
        at, start = at + 8 + size * values, at + 8
        if len(table) < at:
            return {}
        if table[start : start + size] != b"\xff" * size:
            found[number] = struct.unpack_from(f"<{TYPES[kind]}", table, start)[0]
    return found


def throttled_between(before: bytes, after: bytes) -> tuple[str, ...] | None:
    """Return what throttled the card between two tables that count cycles, with its share; None where not known.

    Without a total there is no share, and each limit that held is named.
    """
    if limits(after):
        return _held(limits(before), limits(after))
    old, new = cycles(before), cycles(after)
    whole = new.get("all", 0) - old.get("all", 0)
    parts = {name: new[name] - old[name] for name in RESIDENCIES if name in old and name in new}
    if whole <= 0 or not parts or any(not 0 <= part <= whole for part in parts.values()):
        return None
    return tuple(f"{name} {part / whole:.0%}" for name, part in parts.items() if part >= LEAST_SHARE * whole)


def _held(old: Mapping[str, int], new: Mapping[str, int]) -> tuple[str, ...] | None:
    rose = {name: new[name] - old[name] for name in new if name in old}
    return tuple(name for name, more in rose.items() if more) if rose and min(rose.values()) >= 0 else None
