"""Probe `device`: the cards are there, have memory, run a kernel and return what was sent to them."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from trainer.diagnostics.probes import entry, placement
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.verdict import (
    Check,
    Device,
    Number,
    Verdict,
    at_least,
    at_most,
    conclude,
    not_applicable,
)
from trainer.telemetry.sensors import Reading, sensor

if TYPE_CHECKING:
    import torch

ROUND_TRIP_BYTES = 1 << 24
KERNEL_MODULES = Path("/sys/module")
CPUINFO = Path("/proc/cpuinfo")
SENSORS = {
    "temperature_c": ("temperature", "°C"),
    "limit_c": ("critical temperature", "°C"),
    "clock_mhz": ("clock", "MHz"),
    "power_w": ("power", "W"),
    "power_cap_w": ("power cap", "W"),
}
DRIVERS = {"rocm": "amdgpu", "cuda": "nvidia"}


def measure(request: Request) -> Verdict:
    """Examine every visible card, or this machine's memory where the CPU is what is asked for or all there is.

    Raises:
        NoDeviceError: the expected kind of card is not there.
    """
    device = placement.place(request.expect)
    cards = 0 if device.kind == "cpu" else placement.card_count()
    checks, numbers = [count_check(device, cards)], [Number(name="cards", value=cards, unit="cards")]
    for target in [f"cuda:{index}" for index in range(cards)] or ["cpu"]:
        total, free = memory(target)
        reading = read_sensors(target)
        checks += [*memory_checks(target, total, free), *round_trip_checks(target), heat_check(target, reading)]
        numbers += [*memory_numbers(target, total, free), *sensor_numbers(target, reading), *unit_numbers(target)]
    return conclude(
        probe="device",
        summary=summarise(device, cards),
        checks=checks,
        numbers=numbers,
        device=device,
        versions=placement.versions() | driver_version(device),
    )


def summarise(device: Device, cards: int) -> str:
    """Return one sentence on what was examined."""
    if device.kind == "cpu":
        return f"No card was examined; the round trip stayed in the memory of this CPU ({device.name})."
    return f"{cards} card(s) answered; the first is {device.name} ({device.arch})."


def count_check(device: Device, cards: int) -> Check:
    """Check that there is at least one card, where a card is what the probe runs on."""
    if device.kind == "cpu":
        return not_applicable("cards", "ran on the CPU")
    return at_least("cards", cards, 1, "cards")


def memory(target: str) -> tuple[int, int]:
    """Return the total and free memory of `target` in bytes."""
    import torch

    if target == "cpu":
        page = os.sysconf("SC_PAGE_SIZE")
        return page * os.sysconf("SC_PHYS_PAGES"), page * os.sysconf("SC_AVPHYS_PAGES")
    free, total = torch.cuda.mem_get_info(torch.device(target))
    return total, free


def memory_checks(target: str, total: int, free: int) -> list[Check]:
    """Check that there is memory, and room for the round trip, and that no more is free than there is.

    Args:
        target: name of the device.
        total: bytes of memory.
        free: bytes that are free.
    """
    return [
        at_least(f"{target} free memory", free, 4 * ROUND_TRIP_BYTES, "bytes"),
        at_most(f"{target} free within total", free, total, "bytes"),
    ]


def memory_numbers(target: str, total: int, free: int) -> list[Number]:
    """Return the total and free memory, for the record.

    Args:
        target: name of the device.
        total: bytes of memory.
        free: bytes that are free.
    """
    return [
        Number(name=f"{target} memory total", value=total, unit="bytes"),
        Number(name=f"{target} memory free", value=free, unit="bytes"),
    ]


def read_sensors(target: str) -> Reading:
    """Return the readings of the sensors of `target`; nothing where there are none. For a CPU, its clock."""
    if target == "cpu":
        return Reading(clock_mhz=cpu_clock())
    read = sensor(target)
    return read() if read else Reading()


def cpu_clock(cpuinfo: Path = CPUINFO) -> float | None:
    """Return the mean clock of this machine's processors in MHz, None where the kernel does not report it."""
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    clocks = [float(line.partition(":")[2]) for line in lines if line.startswith("cpu MHz")]
    return round(sum(clocks) / len(clocks), 1) if clocks else None


def heat_check(target: str, reading: Reading) -> Check:
    """Check that an idle card is below its critical temperature; without a sensor the check is not applicable."""
    name = f"{target} temperature"
    if reading.temperature_c is None:
        return not_applicable(name, "no sensor of the temperature is here")
    if reading.limit_c is None:
        return not_applicable(name, f"{reading.temperature_c:g} °C, and the sensor reports no critical value")
    return at_most(name, reading.temperature_c, reading.limit_c, "°C")


def sensor_numbers(target: str, reading: Reading) -> list[Number]:
    """Return temperature, clock and power, as far as they are known."""
    figures = reading.figures()
    return [
        Number(name=f"{target} {name}", value=figures[field], unit=unit)
        for field, (name, unit) in SENSORS.items()
        if field in figures
    ]


def unit_numbers(target: str) -> list[Number]:
    """Return how many compute units (ROCm) or multiprocessors (CUDA) a card has, or processors this machine."""
    import torch

    if target == "cpu":
        return [Number(name="cpu processors", value=len(os.sched_getaffinity(0)), unit="processors")]
    count = torch.cuda.get_device_properties(torch.device(target)).multi_processor_count
    return [Number(name=f"{target} compute units", value=count, unit="units")]


def round_trip_checks(target: str) -> list[Check]:
    """Check that random bytes come back exactly, and so they do from a kernel that inverts every bit."""
    import torch

    block = torch.randint(0, 256, (ROUND_TRIP_BYTES,), dtype=torch.uint8)
    back, inverted = send_and_return(block, target), invert_on(block, target)
    return [
        at_most(f"{target} round trip", int((back != block).sum()), 0, "wrong bytes"),
        at_most(f"{target} kernel", int((inverted != 255 - block).sum()), 0, "wrong bytes"),
    ]


def send_and_return(block: torch.Tensor, target: str) -> torch.Tensor:
    """Copy `block` (uint8, one dimension) to `target` and back."""
    return block.to(target, copy=True).cpu()


def invert_on(block: torch.Tensor, target: str) -> torch.Tensor:
    """Invert every bit of `block` (uint8, one dimension) in a kernel on `target`, and bring it back."""
    return block.to(target, copy=True).bitwise_not_().cpu()


def driver_version(device: Device, modules: Path = KERNEL_MODULES) -> dict[str, str]:
    """Return the kernel, and the driver's own version where it has one: amdgpu as a part of the kernel has none."""
    named = {"kernel": platform.release()}
    if (module := DRIVERS.get(device.kind)) and (version := modules / module / "version").exists():
        named[f"{module} driver"] = version.read_text().strip()
    return named


if __name__ == "__main__":
    sys.exit(entry.main("device", measure))
