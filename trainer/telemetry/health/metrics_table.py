"""Energy, throttling and link errors from `gpu_metrics`, the binary table that amdgpu keeps of a card.

Layouts: Linux `drivers/gpu/drm/amd/include/kgd_pp_interface.h`, `struct gpu_metrics_v1_1` to `v1_8`: a header of u16
size, u8 format, u8 content, then fields in their natural alignment, little-endian. A field of ones is not reported.
Energy is in units of 2^-16 J there from v1.4 on; rocm_smi_lib takes the same resolution (15.3 uJ) for all cards, and
no card has shown it here. The firmware of Navi cards counts in 32 bits (`EnergyAccumulator` of smu11_driver_if_* and
smu13_driver_if_v13_0_0.h): 65,536 J, which 300 W fill in four minutes. Newer drivers give 2^32 - 1 for them, not
reported (smu_v13_0_7_ppt.c, smu_v14_0_2_ppt.c). Residencies are counts of the same cycles as `accumulation_counter`
(rocm_smi.h, v1.6).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

JOULES = 2**-16
NARROW = 2**32 - 1  # the most of a counter of 32 bits, and what newer drivers give where they have none
NARROW_LAYOUTS = ((1, 1), (1, 2), (1, 3))
MOST_WATTS = 1000.0  # no Navi card draws as much; a narrow counter starts anew after 65 s of it at the earliest
_ENERGY = {
    (1, 1): 24, (1, 2): 24, (1, 3): 24, (1, 4): 24, (1, 5): 88, (1, 6): 16, (1, 7): 24, (1, 8): 24,
}  # fmt: skip
_REPLAYS = {(1, 4): 88, (1, 5): 152, (1, 6): 104, (1, 7): 112, (1, 8): 112}  # pcie_replay_count_acc, u64
_CYCLES = {(1, 6): 32, (1, 7): 40, (1, 8): 40}  # accumulation_counter, then five residencies, u32 each
CAUSES = ("prochot", "power", "socket temperature", "regulator temperature", "memory temperature")


def version(table: bytes) -> tuple[int, int] | None:
    """Return format and content revision of a table, None where it is cut short or empty."""
    if len(table) < 4:
        return None
    size, major, minor = struct.unpack_from("<HBB", table)
    return (major, minor) if size == len(table) else None


def energy(table: bytes) -> float | None:
    """Return the energy counter in joules, None where the layout has none that is known here or it is not reported."""
    ticks = _number(table, _ENERGY, "<Q")
    return None if ticks is None or (ticks == NARROW and version(table) in NARROW_LAYOUTS) else ticks * JOULES


def used(before: float | None, after: float | None, seconds: float, *, narrow: bool) -> float | None:
    """Return the joules between two readings of the counter, None where it is not known.

    Args:
        before: joules; None where they are not reported.
        after: joules later on.
        seconds: time between both.
        narrow: the layout may hold a counter of 32 bits, which starts anew; one that has more shows it by its size.
    """
    if before is None or after is None or after <= before:
        return None
    wraps = narrow and after <= NARROW * JOULES and seconds * MOST_WATTS > NARROW * JOULES
    return None if wraps else round(after - before, 3)


def replays(table: bytes) -> int | None:
    """Return the count of PCIe replays, None where the table has none."""
    return _number(table, _REPLAYS, "<Q")


def cycles(table: bytes) -> Mapping[str, int]:
    """Return the cycles in all (`all`) and those in which each cause throttled the card; nothing where not reported."""
    start = _CYCLES.get(version(table) or (0, 0))
    if start is None or len(table) < start + 4 * (1 + len(CAUSES)):
        return {}
    numbers = struct.unpack_from(f"<{1 + len(CAUSES)}I", table, start)
    named = zip(("all", *CAUSES), numbers, strict=True)
    return {name: number for name, number in named if number != (1 << 32) - 1}


def throttled(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, float]:
    """Return the share of the time between two tables in which each cause throttled the card, 0 to 1.

    Empty where the counters do not fit each other: a table of another layout than it states, or one that started anew.
    """
    whole = after.get("all", 0) - before.get("all", 0)
    parts = {name: after[name] - before[name] for name in CAUSES if name in before and name in after}
    if whole <= 0 or any(not 0 <= part <= whole for part in parts.values()):
        return {}
    return {name: round(part / whole, 6) for name, part in parts.items()}


def _number(table: bytes, places: Mapping[tuple[int, int], int], form: str) -> int | None:
    at = places.get(version(table) or (0, 0))
    if at is None or len(table) < at + struct.calcsize(form):
        return None
    found: int = struct.unpack_from(form, table, at)[0]
    return None if found == (1 << 8 * struct.calcsize(form)) - 1 else found
