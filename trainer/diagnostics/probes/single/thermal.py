"""Probe `thermal`: a minute of load on the card: clock, temperature and power, and whether results stay right.

A card that throttles is slower and not broken: that is reported and not failed. A wrong result under load, a
temperature at the critical value, or a card that loses half of its speed is. A CPU gets a few seconds, and the verdict
states it.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainer.diagnostics.probes import entry, numerics, placement
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
from trainer.telemetry.throttle import explain

if TYPE_CHECKING:
    import torch

FULL_SECONDS, CPU_SECONDS = 60.0, 3.0
START_SHARE = 0.5  # of the time limit that the load may take, where it is short
WINDOW_SECONDS = 0.5
WARM_UP = 2  # windows; clocks rise and kernels are chosen
LEAST_WINDOWS = WARM_UP + 2  # with fewer, there is no speed at the end to compare with one at the start
QUEUED = 8  # products between two comparisons, whose share of the time was measured on no card
SLOWEST_LIMIT = 0.5  # last windows' speed over the first ones'
COOL = 10.0  # °C below the critical temperature from which on heat is not taken to slow a card down
FLOOR = 0.2  # of the same, whatever power is drawn
SIZES = {"cpu": 256, "card": 4096}


@dataclass(frozen=True, kw_only=True)
class Window:
    """Half a second of load: products a second, wrong elements of those compared, and the sensors at its end."""

    rate: float
    wrong: int
    reading: Reading


def measure(request: Request) -> Verdict:
    """Load the first card and look at it twice a second.

    Raises:
        NoDeviceError: the expected kind of card is not there.
    """
    from trainer.device.accelerator import DETERMINISTIC_ENVIRONMENT

    for name, value in DETERMINISTIC_ENVIRONMENT.items():  # equal products may differ without it, on a sound card
        os.environ.setdefault(name, value)  # read when a library is first used
    device = placement.place(request.expect)
    seconds = load_seconds(device, request.timeout_seconds)
    windows = load(device, seconds)
    return conclude(
        probe="thermal",
        summary=summarise(device, windows, seconds),
        checks=checks(device, windows),
        numbers=[Number(name="load", value=seconds, unit="s"), *numbers(device, windows)],
        device=device,
        versions=placement.versions(),
    )


def load_seconds(device: Device, limit: float) -> float:
    """Return the load's time: a minute on a card, seconds on a CPU, never more than half of the time there is."""
    return min(CPU_SECONDS if device.kind == "cpu" else FULL_SECONDS, START_SHARE * limit)


def load(device: Device, seconds: float) -> list[Window]:
    """Multiply the same matrices again and again; of every few products the last is compared with the first."""
    import torch

    torch.manual_seed(numerics.fresh_seed())
    size = SIZES["cpu" if device.kind == "cpu" else "card"]
    a, b = (torch.randn(size, size, device=device.torch_type).to(dtype_for(device)) for _ in range(2))
    first, look = product(a, b), sensor(f"{device.torch_type}:0" if device.kind != "cpu" else "cpu")
    ends = now() + seconds
    windows: list[Window] = []
    # a CPU that others use as well may take longer, which is no fault of it
    while now() < ends or (device.kind == "cpu" and len(windows) < LEAST_WINDOWS):
        windows.append(window(lambda: product(a, b), first, device, look))
    return windows


def now() -> float:
    """Return the seconds of the clock that windows are timed by."""
    return time.monotonic()


def dtype_for(device: Device) -> torch.dtype:
    """Return the 16-bit format of a card's fast units: bf16, or fp16 where it only emulates bf16; fp32 on a CPU."""
    import torch

    if device.kind == "cpu":
        return torch.float32
    return torch.bfloat16 if placement.computes_bf16(device) else torch.float16


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Compute one product of the load."""
    return a @ b


def window(
    work: Callable[[], torch.Tensor], first: torch.Tensor, device: Device, look: Callable[[], Reading] | None
) -> Window:
    """Compute half a second of products, a few queued at a time.

    Args:
        work: one product.
        first: its first result, which later ones must equal.
        look: reads the sensors; None without any.
    """
    begun, took, done, wrong = now(), 0.0, 0, 0
    while not done or took < WINDOW_SECONDS:
        for _ in range(QUEUED):
            last = work()
        wrong += int((last != first).sum())  # waits for the card
        done, took = done + QUEUED, now() - begun
    return Window(rate=done / took if took else 0.0, wrong=wrong, reading=look() if look else Reading())


def checks(device: Device, windows: Sequence[Window]) -> list[Check]:
    """Check that results stay what they were, the speed holds, and the temperature stays below the critical one."""
    found = [
        at_least("load", len(windows), LEAST_WINDOWS, "windows"),
        at_most("wrong under load", sum(window.wrong for window in windows), 0, "elements"),
    ]
    return [*found, speed_check(device, windows), heat_check(windows)]


def speed_check(device: Device, windows: Sequence[Window]) -> Check:
    """Check the speed at the end against that at the start; a CPU is shared, and its slowness proves nothing."""
    if device.kind == "cpu":
        return not_applicable("speed holds", "a CPU has other work, too")
    limit, detail = speed_limit(windows, integrated=is_integrated(device))
    return at_least("speed holds", kept_speed(windows), limit, "speed at the end / at the start", detail)


def is_integrated(device: Device) -> bool:
    """Return whether the architecture is one of processors with graphics."""
    from trainer.device import architectures

    known = architectures.KNOWN.get(device.arch.partition(":")[0])
    return bool(known and known["integrated"])


def speed_limit(windows: Sequence[Window], *, integrated: bool = False) -> tuple[float, str]:
    """Return the least speed that a sound card keeps, and the reason where it is below half.

    A laptop's firmware lets a card draw more for some seconds than it may for long. Speed falls no more than power, so
    that the limit falls with the power that is drawn, never below FLOOR: a card that is stopped draws little, too. One
    that is near its critical temperature, or whose distance to it is unknown, draws less for the heat: half stands.
    amdgpu shows no critical temperature of a processor's graphics (amdgpu_pm.c, hwmon_attributes_visible), whose
    firmware lowers power for heat as for anything else: there, power decides alone.

    Args:
        windows: the windows in order.
        integrated: the card is a processor's graphics.
    """
    unlimited = integrated and all(window.reading.limit_c is None for window in windows)
    if not (unlimited or is_cool(windows)):
        return SLOWEST_LIMIT, ""
    drawn = [window.reading.power_w for window in windows[WARM_UP:] if window.reading.power_w]
    if len(drawn) < 2:
        return SLOWEST_LIMIT, ""
    few = max(1, len(drawn) // 4)
    start, end = statistics.median(drawn[:few]), statistics.median(drawn[-few:])
    limit = max(FLOOR, SLOWEST_LIMIT * min(1.0, end / start))
    return limit, f"power went from {start:.0f} to {end:.0f} W" if limit < SLOWEST_LIMIT else ""


def is_cool(windows: Sequence[Window]) -> bool:
    """Return whether sensors show the card well below its critical temperature throughout."""
    known = [each.reading for each in windows if each.reading.power_w is not None]
    rooms = [
        reading.limit_c - reading.temperature_c
        for reading in known
        if reading.limit_c is not None and reading.temperature_c is not None
    ]
    return bool(rooms) and len(rooms) == len(known) and min(rooms) >= COOL


def kept_speed(windows: Sequence[Window]) -> float:
    """Return the speed of the last windows over that of the first after the warm-up; 0 where there are too few."""
    rates = [window.rate for window in windows[WARM_UP:]]
    if len(rates) < 2:
        return 0.0
    few = max(1, len(rates) // 4)
    return statistics.median(rates[-few:]) / statistics.median(rates[:few])


def heat_check(windows: Sequence[Window]) -> Check:
    """Check that the card stays below the critical temperature, where both are known."""
    hot = [window.reading for window in windows if window.reading.temperature_c is not None]
    limit = next((reading.limit_c for reading in hot if reading.limit_c is not None), None)
    if not hot:
        return not_applicable("temperature", "no sensor: neither amdgpu's hwmon nor what torch asks is here")
    if limit is None:
        return not_applicable("temperature", "the sensor reports no critical value")
    return at_most("temperature", max(reading.temperature_c or 0 for reading in hot), limit, "°C")


def throttling(windows: Sequence[Window]) -> tuple[str, bool | None]:
    """Return whether the card throttled, as text and as a fact; None where no sensor shows it."""
    known = [window.reading for window in windows[WARM_UP:] if window.reading.clock_mhz is not None]
    if len(known) < 2:
        return "no sensor of the clock, so whether it throttled is not known", None
    start = max(reading.clock_mhz or 0 for reading in known[: max(1, len(known) // 4)])
    lowest = min(known, key=lambda reading: reading.clock_mhz or 0)
    words, throttled = explain(start, lowest)
    return words, throttled


def summarise(device: Device, windows: Sequence[Window], seconds: float) -> str:
    """Return one sentence on the load and on throttling.

    Args:
        windows: the windows in order.
        seconds: duration of the load.
    """
    if device.kind == "cpu":
        return f"A short load of {seconds:g} s on the CPU in place of a minute on a card kept its results right."
    words, throttled = throttling(windows)
    seen = {True: "throttling seen", False: "no throttling seen", None: "throttling unknown"}[throttled]
    return f"{seconds:g} s of load on {device.name} kept its results right; {seen}: {words}."


def numbers(device: Device, windows: Sequence[Window]) -> list[Number]:
    """Return the speed, and the first, least, largest and last value of each sensor."""
    flops = 2.0 * SIZES["cpu" if device.kind == "cpu" else "card"] ** 3
    rates = [window.rate * flops / 1e12 for window in windows[WARM_UP:]] or [0.0]
    _, throttled = throttling(windows)
    found = [
        Number(name="median speed", value=round(statistics.median(rates), 3), unit="TFLOP/s"),
        Number(name="slowest window", value=round(min(rates), 3), unit="TFLOP/s"),
        Number(name="speed kept", value=round(kept_speed(windows), 4), unit="end / start"),
    ]
    seen = [] if throttled is None else [Number(name="throttling seen", value=float(throttled), unit="0 or 1")]
    sensors = {"temperature_c": "°C", "clock_mhz": "MHz", "power_w": "W"}
    return [*found, *seen, *(n for name, unit in sensors.items() for n in extremes(name, unit, windows))]


def extremes(field: str, unit: str, windows: Sequence[Window]) -> list[Number]:
    """Return the first, least, largest and last value of one sensor; none where it is silent.

    Args:
        field: field of `Reading`.
        unit: unit of the values.
        windows: the windows in order.
    """
    values = [value for window in windows if (value := getattr(window.reading, field)) is not None]
    if not values:
        return []
    name = field.rsplit("_", 1)[0]
    named = {"at the start": values[0], "least": min(values), "largest": max(values), "at the end": values[-1]}
    return [Number(name=f"{name} {when}", value=value, unit=unit) for when, value in named.items()]


if __name__ == "__main__":
    sys.exit(entry.main("thermal", measure))
