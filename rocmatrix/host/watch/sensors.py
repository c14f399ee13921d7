"""The sensors of one card at one moment. What is absent, unreadable or no sound figure is unknown, never zero.

File names and units: Linux `drivers/gpu/drm/amd/pm/amdgpu_pm.c` and Documentation/gpu/amdgpu/thermal.rst (hwmon:
millidegrees Celsius, microwatts, hertz), `amdgpu_vram_mgr.c` and `amdgpu_gtt_mgr.c` (memory, bytes).

A card that sleeps (`power/runtime_status`) is not read: a driver may wake it to answer, and it would never sleep again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rocmatrix.host.pci_device import PciLink, Temperature, slot_link, temperatures
from rocmatrix.host.sysfs import Files

State = Literal["present", "asleep", "gone", "unknown"]
MOST_WATTS, MOST_MHZ = 10_000.0, 20_000.0


@dataclass(frozen=True, kw_only=True)
class Sensors:
    """Readings of one card. Shares in percent, memory in bytes; None is unknown.

    `state` is "unknown" for a card that sysfs lists without a folder of its own; `metrics` is the table `gpu_metrics`.
    """

    state: State
    load_percent: int | None = None
    memory_load_percent: int | None = None
    memory_used: int | None = None
    memory_total: int | None = None
    shared_used: int | None = None
    shared_total: int | None = None
    temperatures: tuple[Temperature, ...] = ()
    power_w: float | None = None
    power_limit_w: float | None = None
    core_mhz: float | None = None
    memory_mhz: float | None = None
    link: PciLink | None = None
    metrics: bytes | None = None

    @property
    def hottest(self) -> Temperature | None:
        """The sensor that is nearest to its limit; where none has one, the hottest."""
        limited = [each for each in self.temperatures if each.limit]
        if limited:
            return max(limited, key=lambda each: each.degrees - (each.limit or 0))
        return max(self.temperatures, key=lambda each: each.degrees, default=None)


def read(files: Files, folder: str | None) -> Sensors:
    """Read a card.

    Args:
        folder: the card's PCI attributes below the root of `files`; None where sysfs shows none.
    """
    if folder is None:
        return Sensors(state="unknown")
    if not files.exists(folder):
        return Sensors(state="gone")
    if files.word(f"{folder}/power/runtime_status") == "suspended":
        return Sensors(state="asleep")
    folder = files.real(folder) or folder  # its bridges are above it
    hwmon = next((f"{folder}/hwmon/{name}" for name in files.names(f"{folder}/hwmon")), f"{folder}/hwmon")
    power = _scaled(files, f"{hwmon}/power1_average", 1e-6, most=MOST_WATTS)
    return Sensors(
        state="present",
        load_percent=_percent(files, f"{folder}/gpu_busy_percent"),
        memory_load_percent=_percent(files, f"{folder}/mem_busy_percent"),
        **_memory(files, folder, "vram", "memory"),
        **_memory(files, folder, "gtt", "shared"),
        temperatures=tuple(temperatures(files, folder)),
        power_w=_scaled(files, f"{hwmon}/power1_input", 1e-6, most=MOST_WATTS) if power is None else power,
        power_limit_w=_scaled(files, f"{hwmon}/power1_cap", 1e-6, most=MOST_WATTS),
        core_mhz=_scaled(files, f"{hwmon}/freq1_input", 1e-6, most=MOST_MHZ),
        memory_mhz=_scaled(files, f"{hwmon}/freq2_input", 1e-6, most=MOST_MHZ),
        link=slot_link(files, folder),
        metrics=files.binary(f"{folder}/gpu_metrics"),
    )


def _percent(files: Files, path: str) -> int | None:
    found = files.number(path)
    return found if found is not None and found <= 100 else None


def _scaled(files: Files, path: str, scale: float, *, most: float) -> float | None:
    """Return a sensor's figure; 0 is no figure of a card that runs, and some drivers return it for what they lack."""
    value = (files.number(path) or 0) * scale
    return round(value, 3) if 0 < value <= most else None


def _memory(files: Files, folder: str, kind: str, name: str) -> dict[str, int | None]:
    """Return used and total memory; a driver that is loaded uses some, so that 0 is not reported either."""
    total = files.number(f"{folder}/mem_info_{kind}_total") or None
    used = files.number(f"{folder}/mem_info_{kind}_used") or None
    sound = used is None or total is None or used <= total
    return {f"{name}_used": used if sound else None, f"{name}_total": total}
