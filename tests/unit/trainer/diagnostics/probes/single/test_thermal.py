"""The judgement on made-up sensors; the load itself runs on this CPU, by a clock that each look moves on."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable

import pytest
import torch

from trainer.device.accelerator import DETERMINISTIC_ENVIRONMENT
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.single import thermal
from trainer.diagnostics.probes.verdict import Device
from trainer.telemetry.sensors import Reading

CARD = Device(kind="rocm", name="AMD Radeon RX 7900 XT", arch="gfx1100")


def windows(clocks: list[float], rates: list[float] | None = None, hot: float = 70.0) -> list[thermal.Window]:
    rates = rates or [100.0] * len(clocks)
    return [
        thermal.Window(rate=rate, wrong=0, reading=Reading(temperature_c=hot, limit_c=110.0, clock_mhz=clock))
        for rate, clock in zip(rates, clocks, strict=True)
    ]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Return what sets the seconds between two looks at the clock, whatever else this machine does."""

    def tick(seconds: float) -> None:
        times = itertools.count(0.0, seconds)
        monkeypatch.setattr(thermal, "now", lambda: next(times))

    tick(0.1)
    return tick


def failed(found: list[thermal.Window]) -> list[str]:
    return [check.name for check in thermal.checks(CARD, found) if check.status == "fail"]


@pytest.mark.usefixtures("clock")
def test_short_load_on_the_cpu_is_called_one() -> None:
    verdict = thermal.measure(Request(expect="cpu", timeout_seconds=4.4))
    assert verdict.status == "pass"
    assert verdict.summary.startswith("A short load of 2.2 s on the CPU in place of a minute on a card")


@pytest.mark.parametrize("seconds", [0.6, 2.0, 60.0])
def test_busy_cpu_takes_longer_and_passes(clock: Callable[[float], None], seconds: float) -> None:
    clock(seconds)  # others take the processor, so that no window ends in time
    verdict = thermal.measure(Request(expect="cpu", timeout_seconds=4.4))
    load = next(check for check in verdict.checks if check.name == "load")
    assert (verdict.status, load.measured) == ("pass", thermal.LEAST_WINDOWS)
    assert verdict.device is not None
    assert all(window.rate > 0 for window in thermal.load(verdict.device, 2.2))  # each window has its products


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("wrong", [lambda call: call > 1, lambda call: call == 1 + thermal.QUEUED])
def test_wrong_result_under_load_fails(monkeypatch: pytest.MonkeyPatch, wrong: Callable[[int], bool]) -> None:
    honest, calls = thermal.product, itertools.count(1)

    def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        result = honest(a, b)
        if wrong(next(calls)):
            result[3, 4] += 1
        return result

    monkeypatch.setattr(thermal, "product", product)
    verdict = thermal.measure(Request(expect="cpu", timeout_seconds=4.4))
    assert [check.name for check in verdict.checks if check.status == "fail"] == ["wrong under load"]


def test_card_that_holds_its_clock_passes_and_has_its_figures() -> None:
    found = windows([2400.0] * 12)
    assert failed(found) == []
    assert "no throttling seen" in thermal.summarise(CARD, found, 60.0)
    units = {number.unit for number in thermal.numbers(CARD, found)}
    assert {"TFLOP/s", "°C", "MHz"} <= units


def test_throttling_is_reported_and_not_failed() -> None:
    found = windows([2400.0] * 6 + [1500.0] * 6, hot=108.0)
    assert failed(found) == []
    words = thermal.summarise(CARD, found, 60.0)
    assert "; throttling seen" in words
    assert "from 2400 to 1500 MHz at 108 °C" in words
    assert next(n.value for n in thermal.numbers(CARD, found) if n.name == "throttling seen") == 1.0


def test_heat_at_the_limit_and_half_of_the_speed_fail() -> None:
    assert failed(windows([2400.0] * 8, hot=111.0)) == ["temperature"]
    assert failed(windows([2400.0] * 12, rates=[100.0] * 6 + [40.0] * 6)) == ["speed holds"]
    assert "load" in failed(windows([2400.0] * 2))


def test_throttling_without_sensors_is_unknown() -> None:
    found = [thermal.Window(rate=1.0, wrong=0, reading=Reading()) for _ in range(8)]
    assert "throttling unknown" in thermal.summarise(CARD, found, 60.0)
    assert failed(found) == []


@pytest.mark.parametrize(("kind", "limit", "seconds"), [("rocm", 150, 60), ("rocm", 40, 20), ("cpu", 150, 3)])
def test_load_fits_the_time_limit(kind: str, limit: float, seconds: float) -> None:
    device = Device(kind=kind, name="", arch="")  # type: ignore[arg-type]
    assert thermal.load_seconds(device, limit) == seconds


def at_power(
    start: float, end: float, kept: float, *, hot: float | None = 80.0, limit: float | None = 100.0
) -> list[thermal.Window]:
    """A card whose power and speed fall halfway through, and that has become `hot` by then."""
    rows = [(start, 100.0, 60.0)] * 8 + [(end, 100.0 * kept, hot)] * 8
    return [
        thermal.Window(rate=rate, wrong=0, reading=Reading(temperature_c=degrees, limit_c=limit, power_w=power))
        for power, rate, degrees in rows
    ]


@pytest.mark.parametrize(
    ("start", "end", "kept", "failing"),
    [
        (80, 40, 0.26, []),  # a laptop whose firmware halves its power
        (80, 40, 0.24, ["speed holds"]),
        (80, 80, 0.51, []),
        (80, 80, 0.49, ["speed holds"]),
        (80, 5, 0.21, []),
        (80, 5, 0.19, ["speed holds"]),  # a card that is as good as stopped draws little, too
        (40, 80, 0.49, ["speed holds"]),
    ],
)
def test_speed_may_fall_with_the_power_that_the_firmware_allows(
    start: float, end: float, kept: float, failing: list[str]
) -> None:
    assert failed(at_power(start, end, kept)) == failing


@pytest.mark.parametrize(
    ("hot", "limit", "failing"),
    [
        (90.0, 100.0, []),
        (90.5, 100.0, ["speed holds"]),
        (100.0, 100.0, ["speed holds"]),  # a fan that stands still: a quarter of the speed on a quarter of the power
        (80.0, None, ["speed holds"]),
        (None, 100.0, ["speed holds"]),
    ],
)
def test_speed_that_falls_with_power_near_the_critical_temperature_fails(
    hot: float | None, limit: float | None, failing: list[str]
) -> None:
    assert failed(at_power(80, 20, 0.26, hot=hot, limit=limit)) == failing


@pytest.mark.parametrize(
    ("arch", "limit", "kept", "failing"),
    [
        ("gfx1151", None, 0.26, []),  # 80 to 40 W, as a laptop on its battery
        ("gfx1151", None, 0.24, ["speed holds"]),
        ("gfx1103", None, 0.26, []),
        ("gfx1151", 85.0, 0.26, ["speed holds"]),  # a limit is known, and near
        ("gfx942", None, 0.26, ["speed holds"]),  # its driver shows none either, and it has a cooler of its own
        ("gfx9999", None, 0.26, ["speed holds"]),
    ],
)
def test_power_decides_alone_for_a_processors_graphics_without_a_critical_temperature(
    arch: str, limit: float | None, kept: float, failing: list[str]
) -> None:
    device = Device(kind="rocm", name="AMD Radeon Graphics", arch=arch)
    found = at_power(80, 40, kept, hot=80.0, limit=limit)
    assert [check.name for check in thermal.checks(device, found) if check.status == "fail"] == failing


@pytest.mark.usefixtures("clock")
def test_load_runs_with_the_additions_of_rocblas_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in DETERMINISTIC_ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    thermal.measure(Request(expect="cpu", timeout_seconds=4.4))
    assert DETERMINISTIC_ENVIRONMENT.items() <= os.environ.items()
    assert DETERMINISTIC_ENVIRONMENT["ROCBLAS_DEFAULT_ATOMICS_MODE"] == "0"


@pytest.mark.parametrize(("arch", "dtype"), [("gfx906", torch.float16), ("gfx1100", torch.bfloat16)])
def test_load_is_in_a_format_that_the_card_computes_in(arch: str, dtype: torch.dtype) -> None:
    assert thermal.dtype_for(Device(kind="rocm", name="a card", arch=arch)) == dtype
