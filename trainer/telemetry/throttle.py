"""Detection of throttling: a run that slows down while the sensors show why. A slower step alone proves nothing."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

from trainer.telemetry.sensors import Reading

WARM_UP = 1  # windows; kernels are chosen and caches filled in the first
BASELINE = 3  # windows whose median is what later ones are held against
SLOWER = 0.10  # from here on it is called drift
CLOCK_LOSS = 0.10
NEAR_LIMIT_C = 5.0
AT_CAP = 0.97


@dataclass(frozen=True, kw_only=True)
class Drift:
    """Steps take `slower` (0.2: a fifth) longer than at the start; `cause` is throttling only with evidence."""

    slower: float
    cause: str
    throttled: bool


@dataclass
class DriftWatch:
    """Takes a window's time per row and the sensors; reports throttling after two consecutive slow windows."""

    _rows_took: list[float] = field(default_factory=list)
    _clocks: list[float] = field(default_factory=list)
    _slow_before: bool = False
    _seen: int = 0

    def judge(self, seconds_per_row: float, reading: Reading | None) -> Drift | None:
        """Return what is wrong with the window, None where nothing is or too little is known."""
        self._seen += 1
        if self._seen <= WARM_UP:
            return None
        if len(self._rows_took) < BASELINE:
            self._rows_took.append(seconds_per_row)
            if reading and reading.clock_mhz:
                self._clocks.append(reading.clock_mhz)
            return None
        slower = seconds_per_row / statistics.median(self._rows_took) - 1
        before, self._slow_before = self._slow_before, slower > SLOWER
        return self._drift(slower, reading) if slower > SLOWER and before else None

    def _drift(self, slower: float, reading: Reading | None) -> Drift:
        start = statistics.median(self._clocks) if self._clocks else None
        cause, throttled = explain(start, reading)
        return Drift(slower=round(slower, 3), cause=cause, throttled=throttled)


def explain(start_mhz: float | None, reading: Reading | None) -> tuple[str, bool]:
    """Return the likely cause of slower steps as text, and whether it is throttling.

    The clock must have fallen: a hot card at full clock is hot, not throttled.
    """
    if reading is None or reading.clock_mhz is None or start_mhz is None:
        return "no sensor of the clock, so the cause is not known", False
    if reading.clock_mhz > start_mhz * (1 - CLOCK_LOSS):
        return f"the clock held ({reading.clock_mhz:.0f} MHz), so it is not throttling", False
    fell = f"the clock fell from {start_mhz:.0f} to {reading.clock_mhz:.0f} MHz"
    hot, limit = reading.temperature_c, reading.limit_c
    if hot is not None and limit is not None and hot >= limit - NEAR_LIMIT_C:
        return f"{fell} at {hot:.0f} °C (limit {limit:.0f} °C)", True
    if reading.power_w and reading.power_cap_w and reading.power_w >= AT_CAP * reading.power_cap_w:
        return f"{fell} at {reading.power_w:.0f} W (cap {reading.power_cap_w:.0f} W)", True
    return f"{fell}, with neither heat nor power at its limit: perhaps the card was waiting for work", False
