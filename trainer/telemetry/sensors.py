"""Temperature, clock and power of the card in use: the kernel's hwmon files, else what torch asks of amdsmi or NVML.

Where neither is there, no figure is given, and no error. Names and units: the kernel's
documentation of amdgpu, "HWMON Interfaces": millidegrees Celsius, hertz, microwatts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from trainer.device.unified_memory import address_of
from trainer.runtime.listing import matching

SYSFS = Path("/sys")
HOTTEST = ("junction", "edge", "mem")  # the junction is what the driver throttles by
MOST_C = 200.0  # a sensor that is not there may read 65535 °C, and one that is read too often 511


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One look at the sensors: °C, MHz, W; None where there is no such sensor. `limit_c` is the critical value."""

    temperature_c: float | None = None
    limit_c: float | None = None
    clock_mhz: float | None = None
    power_w: float | None = None
    power_cap_w: float | None = None

    def figures(self) -> dict[str, float]:
        """Return what is known, by name."""
        return {name: value for name, value in vars(self).items() if value is not None}


Sensor = Callable[[], Reading]
Utilization = Callable[[], dict[str, float]]


def sensor(device: str, root: Path = SYSFS) -> Sensor | None:
    """Return what reads the sensors of a torch device, None for a CPU or a card that shows none."""
    if not device.startswith("cuda"):
        return None
    folder = hwmon(root, pci_address(device))
    candidates = [partial(read_hwmon, folder)] if folder else []
    return next((each for each in [*candidates, partial(read_torch, device)] if each().figures()), None)


def utilization(devices: Sequence[str], root: Path = SYSFS) -> Utilization | None:
    """Return what reads how busy each card is, in per cent by torch's name; None where none shows it, as on a CPU.

    The kernel's gpu_busy_percent, else what torch asks of amdsmi or NVML: the share of a recent time, of a second at
    most, in which a kernel ran. It is 100 for one small kernel after the other, too: it is no share of the peak.

    Args:
        devices: torch's names, such as cuda:0.
        root: root of sysfs.
    """
    readers = {device: reader for device in devices if (reader := _busy(device, root)) is not None}
    if not readers:
        return None
    return lambda: {device: value for device, read in readers.items() if (value := read()) is not None}


def _busy(device: str, root: Path) -> Callable[[], float | None] | None:
    if not device.startswith("cuda"):
        return None
    address = pci_address(device)
    own = [partial(_number, root / f"bus/pci/devices/{address}/gpu_busy_percent", 1.0)] if address else []
    return next((each for each in [*own, partial(_busy_by_torch, device)] if each() is not None), None)


def _busy_by_torch(device: str) -> float | None:
    import torch

    with contextlib.suppress(Exception):  # a missing library, driver or permission: each its own class
        return float(torch.cuda.utilization(device))
    return None


def pci_address(device: str) -> str | None:
    """Return the card's PCI address as in 0000:03:00.0, None where torch does not report it (before 2.6 or so)."""
    import torch

    return address_of(torch.cuda.get_device_properties(device))


def hwmon(root: Path, address: str | None) -> Path | None:
    """Return the hwmon folder of the amdgpu card at `address`; without one, that of the only card there is."""
    folders = {
        path.parent.parent.name: path
        for path in matching(root, "bus/pci/drivers/amdgpu/*:*/hwmon/hwmon*")
        if path.is_dir()
    }
    if address is not None:
        return folders.get(address)
    return next(iter(folders.values())) if len(folders) == 1 else None


def read_hwmon(folder: Path) -> Reading:
    """Read the hottest-by-rank temperature with its limit, the shader clock and the power of one card.

    A limit of 0 °C or below is one that the driver has no value for, and a card survives no MOST_C.
    """
    channel = _temperature_channel(folder)
    power = _number(folder / "power1_average", 1e-6)
    heat, limit = (_number(folder / f"{channel}_{kind}", 1e-3) for kind in ("input", "crit"))
    return Reading(
        temperature_c=heat if _is_temperature(heat) else None,
        limit_c=limit if limit is not None and limit > 0 else None,
        clock_mhz=_number(folder / "freq1_input", 1e-6),
        power_w=power if power is not None else _number(folder / "power1_input", 1e-6),
        power_cap_w=_number(folder / "power1_cap", 1e-6),
    )


def read_torch(device: str) -> Reading:
    """Ask torch, which asks amdsmi on ROCm and NVML elsewhere; nothing where these are not installed."""
    import torch

    def read_metric(question: Callable[[str], float], scale: float = 1) -> float | None:
        with contextlib.suppress(Exception):  # a missing library, driver or permission: each its own class
            return question(device) * scale or None  # 0 stands for unknown
        return None

    watts = 1 if torch.version.hip else 1e-3  # amdsmi tells watts, NVML milliwatts
    return Reading(
        temperature_c=read_metric(torch.cuda.temperature),
        clock_mhz=read_metric(torch.cuda.clock_rate),
        power_w=read_metric(torch.cuda.power_draw, watts),
    )


def _temperature_channel(folder: Path) -> str:
    labels = {_text(path): path.name.removesuffix("_label") for path in matching(folder, "temp*_label")}
    ranked = [labels[label] for label in HOTTEST if label in labels] or ["temp1"]
    figures = ((channel, _number(folder / f"{channel}_input", 1e-3)) for channel in ranked)
    return next((channel for channel, figure in figures if _is_temperature(figure)), ranked[0])


def _is_temperature(figure: float | None) -> bool:
    """Return whether a driver has a temperature there: it writes 0 or its largest number for a sensor without one."""
    return figure is not None and 0 < figure < MOST_C


def _number(path: Path, scale: float) -> float | None:
    try:
        return round(int(_text(path)) * scale, 3)
    except ValueError:
        return None


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:  # absent, or a card that sleeps: the driver answers EPERM or EINVAL
        return ""
