"""Energy, throttling and link errors from `gpu_metrics`, the binary table that amdgpu keeps of a card.

Layouts: Linux `drivers/gpu/drm/amd/include/kgd_pp_interface.h`, `struct gpu_metrics_v1_1` to `v1_8`: a header of u16
size, u8 format, u8 content, then fields in their natural alignment, little-endian. A field of ones is not reported.
Since Linux 6.19 (v1.9) a table lists its fields: their number as i32, and for each a u64 (unit, type, id, number of
values; AMDGPU_METRICS_ENC_ATTR) and its values, packed (smu_cmn.h, DECLARE_SMU_METRICS_CLASS).
Energy is in units of 2^-16 J there from v1.4 on; rocm_smi_lib takes the same resolution (15.3 uJ) for all cards, and
no card has shown it here. The firmware of Navi cards counts in 32 bits (`EnergyAccumulator` of smu11_driver_if_* and
smu13_driver_if_v13_0_0.h): 65,536 J, which 300 W fill in four minutes. Newer drivers give 2^32 - 1 for them, not
reported (smu_v13_0_7_ppt.c, smu_v14_0_2_ppt.c). Residencies are counts of the same cycles as `accumulation_counter`
(rocm_smi.h, v1.6). v3.0, of Strix Point and Strix Halo, has no energy and counts the cycles of a timer in which each
limit held, without a total (smu14_driver_if_v14_0_0.h, ThrottleResidency_*).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

JOULES = 2**-16
NARROW = 2**32 - 1  # the most of a counter of 32 bits, and what newer drivers give where they have none
NARROW_LAYOUTS = ((1, 1), (1, 2), (1, 3))
MOST_WATTS = 1000.0  # no Navi card draws as much; a narrow counter starts anew after 65 s of it at the earliest
MOST_OF_ANY = 4000.0  # watts; no card draws as much (MI355X: 1,400)
SLACK_SECONDS = 10.0  # a table may be older than its reading
_ENERGY = {
    (1, 1): 24, (1, 2): 24, (1, 3): 24, (1, 4): 24, (1, 5): 88, (1, 6): 16, (1, 7): 24, (1, 8): 24,
}  # fmt: skip
_REPLAYS = {(1, 4): 88, (1, 5): 152, (1, 6): 104, (1, 7): 112, (1, 8): 112}  # pcie_replay_count_acc, u64
_CYCLES = {(1, 6): 32, (1, 7): 40, (1, 8): 40}  # accumulation_counter, then five residencies, u32 each
LISTED = (1, 9)
_TYPES = "BbHhIiQq"  # amdgpu_metrics_attr_type
_ENERGY_ID, _REPLAYS_ID, _CYCLES_ID = 7, 25, 9  # amdgpu_metrics_attr_id; the residencies follow the cycles
CAUSES = ("prochot", "power", "socket temperature", "regulator temperature", "memory temperature")
_LIMITS_AT = {(3, 0): 228}  # seven residencies, u32 each
LIMITS = (
    "prochot", "sustained power", "fast power", "slow power", "core temperature", "graphics temperature",
    "SoC temperature",
)  # fmt: skip


def version(table: bytes) -> tuple[int, int] | None:
    """Return format and content revision of a table, None where it is cut short or empty."""
    if len(table) < 4:
        return None
    size, major, minor = struct.unpack_from("<HBB", table)
    return (major, minor) if size == len(table) else None


def energy(table: bytes) -> float | None:
    """Return the energy counter in joules, None where the layout has none that is known here or it is not reported."""
    ticks = _number(table, _ENERGY, "<Q", _ENERGY_ID)
    return None if ticks is None or (ticks == NARROW and version(table) in NARROW_LAYOUTS) else ticks * JOULES


def used(before: float | None, after: float | None, seconds: float, *, narrow: bool) -> float | None:
    """Return the joules between two readings of the counter, None where it is not known.

    Args:
        before: joules; None where they are not reported.
        after: joules later on.
        seconds: time between both.
        narrow: the layout may hold a counter of 32 bits, which starts anew; one that has more shows it by its size.
    """
    if before is None or after is None or not before < after <= before + MOST_OF_ANY * (seconds + SLACK_SECONDS):
        return None
    wraps = narrow and after <= NARROW * JOULES and seconds * MOST_WATTS > NARROW * JOULES
    return None if wraps else round(after - before, 3)


def replays(table: bytes) -> int | None:
    """Return the count of PCIe replays, None where the table has none."""
    return _number(table, _REPLAYS, "<Q", _REPLAYS_ID)


def cycles(table: bytes) -> Mapping[str, int]:
    """Return the cycles in all (`all`) and those in which each cause throttled the card; nothing where not reported."""
    if version(table) == LISTED:
        fields = _listed(table)
        given = {name: fields.get(_CYCLES_ID + place) for place, name in enumerate(("all", *CAUSES))}
        return {name: number for name, number in given.items() if number is not None}
    start = _CYCLES.get(version(table) or (0, 0))
    if start is None or len(table) < start + 4 * (1 + len(CAUSES)):
        return {}
    numbers = struct.unpack_from(f"<{1 + len(CAUSES)}I", table, start)
    named = zip(("all", *CAUSES), numbers, strict=True)
    return {name: number for name, number in named if number != (1 << 32) - 1}


def limits(table: bytes) -> Mapping[str, int]:
    """Return how long each limit has held, in cycles without a total; nothing where the table counts none so."""
    at = _LIMITS_AT.get(version(table) or (0, 0))
    if at is None or len(table) < at + 4 * len(LIMITS):
        return {}
    named = zip(LIMITS, struct.unpack_from(f"<{len(LIMITS)}I", table, at), strict=True)
    return {name: number for name, number in named if number != NARROW}


def held(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """Return the cycles in which each limit held between two tables; empty where a counter started anew."""
    more = {name: after[name] - before[name] for name in after if name in before}
    return {name: cycles for name, cycles in more.items() if cycles} if min(more.values(), default=0) >= 0 else {}


def throttled(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, float]:
    """Return the share of the time between two tables in which each cause throttled the card, 0 to 1.

    Empty where the counters do not fit each other: a table of another layout than it states, or one that started anew.
    """
    whole = after.get("all", 0) - before.get("all", 0)
    parts = {name: after[name] - before[name] for name in CAUSES if name in before and name in after}
    if whole <= 0 or any(not 0 <= part <= whole for part in parts.values()):
        return {}
    return {name: round(part / whole, 6) for name, part in parts.items()}


def _listed(table: bytes) -> dict[int, int]:
    """Return the first value of each listed field by its id; nothing of a list that does not fit its table."""
    if len(table) < 8:
        return {}
    found: dict[int, int] = {}
    at = 8
    for _ in range(max(0, struct.unpack_from("<i", table, 4)[0])):
        if len(table) < at + 8:
            return {}
        (field,) = struct.unpack_from("<Q", table, at)
        kind, number, values = field >> 20 & 0xF, field >> 10 & 0x3FF, field & 0x3FF
        if kind >= len(_TYPES) or not values:
            return {}
        size = struct.calcsize(f"<{_TYPES[kind]}")
        at, start = at + 8 + size * values, at + 8
        if len(table) < at:
            return {}
        if table[start : start + size] != b"\xff" * size:
            found[number] = struct.unpack_from(f"<{_TYPES[kind]}", table, start)[0]
    return found


def _number(table: bytes, places: Mapping[tuple[int, int], int], form: str, field: int) -> int | None:
    if version(table) == LISTED:
        return _listed(table).get(field)
    at = places.get(version(table) or (0, 0))
    if at is None or len(table) < at + struct.calcsize(form):
        return None
    found: int = struct.unpack_from(form, table, at)[0]
    return None if found == (1 << 8 * struct.calcsize(form)) - 1 else found
