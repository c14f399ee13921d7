from __future__ import annotations

import pytest

from trainer.telemetry.sensors import Reading
from trainer.telemetry.throttle import Drift, DriftWatch, explain

COOL = Reading(temperature_c=70, limit_c=110, clock_mhz=2400, power_w=250, power_cap_w=315)
HOT = Reading(temperature_c=108, limit_c=110, clock_mhz=1700, power_w=200, power_cap_w=315)


def judged(times: list[float], readings: list[Reading | None]) -> list[Drift | None]:
    watch = DriftWatch()
    return [watch.judge(seconds, reading) for seconds, reading in zip(times, readings, strict=True)]


def test_heat_with_a_fallen_clock_is_throttling() -> None:
    *before, last = judged([9, 1, 1, 1, 1.3, 1.3], [COOL] * 4 + [HOT] * 2)
    assert before == [None] * 5
    assert last == Drift(
        slower=0.3, cause="the clock fell from 2400 to 1700 MHz at 108 °C (limit 110 °C)", throttled=True
    )


def test_single_slow_window_reports_nothing() -> None:
    assert judged([9, 1, 1, 1, 2, 1, 2, 1], [HOT] * 8) == [None] * 8


def test_first_window_is_no_measure() -> None:
    assert judged([0.1, 1, 1, 1, 1, 1, 1], [COOL] * 7) == [None] * 7


@pytest.mark.parametrize(
    ("reading", "says", "throttled"),
    [
        (None, "not known", False),
        (Reading(temperature_c=109, limit_c=110), "not known", False),
        (Reading(temperature_c=109, limit_c=110, clock_mhz=2390), "the clock held", False),
        (
            Reading(temperature_c=70, limit_c=110, clock_mhz=1700, power_w=314, power_cap_w=315),
            "314 W (cap 315 W)",
            True,
        ),
        (Reading(temperature_c=50, limit_c=110, clock_mhz=500, power_w=40, power_cap_w=315), "waiting for work", False),
        (Reading(clock_mhz=500), "waiting for work", False),
    ],
)
def test_slower_steps_are_called_throttled_only_with_evidence(reading, says: str, throttled: bool) -> None:
    cause, verdict = explain(2400, reading)
    assert says in cause
    assert verdict is throttled
