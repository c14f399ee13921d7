"""The run's own measurements, gathered without making the device wait.

A step reads the clock twice. Figures are made once a window, a few seconds long: rates, the share of time
spent waiting, memory, sensors. They go to telemetry.jsonl, to trackers and to the progress line, and never to
metrics.jsonl, which is the same byte for byte in two equal runs.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from trainer.runtime.events import emit, say
from trainer.telemetry.flops import utilisation
from trainer.telemetry.health.watch import HealthWatch
from trainer.telemetry.sensors import Reading, Sensor, Utilization
from trainer.telemetry.throttle import Drift, DriftWatch
from trainer.telemetry.trackers import Guarded

WINDOW_SECONDS, SHORTEST_SECONDS = 5.0, 1.0
LOOK_SECONDS = 1.0  # between two looks at how busy the cards are
GIB = 2**30


@dataclass(frozen=True, kw_only=True)
class ThroughputReference:
    """The reference of measured rates, which are of all `ranks`.

    `why` states what is missing where `peak` (FLOPs a second, of all of them) is None.
    """

    flops_per_row: float | None = None
    peak: float | None = None
    why: str = ""
    ranks: int = 1


@dataclass(frozen=True, kw_only=True)
class Window:
    """Figures of a stretch of steps. Shares are of its wall time; `mfu` is None where no peak is known.

    `joules_per_row` is of the one card whose sensors are read: its power at the window's end over the window.
    None with several ranks, whose rows that card did not compute alone. `utilization` is how busy each card of the run
    was, in per cent: the mean of one look a second.
    """

    step: int
    steps: int
    seconds: float
    step_ms: float
    rows_per_second: float
    waiting: Mapping[str, float]
    mfu: float | None
    memory: Mapping[str, float]
    sensors: Mapping[str, float]
    checkpoint_age_s: float | None
    joules_per_row: float | None = None
    utilization: Mapping[str, float] = field(default_factory=dict)


class Telemetry:
    """Hooks for the loop: on_step, waiting, on_epoch, and close at the end."""

    def __init__(
        self,
        *,
        file: Path | None,
        trackers: Sequence[Guarded] = (),
        sensor: Sensor | None = None,
        memory: Callable[[], Mapping[str, float]] = dict,
        reference: ThroughputReference | None = None,
        checkpoint_age: Callable[[], float | None] = lambda: None,
        clock: Callable[[], float] = time.perf_counter,
        window_seconds: float = WINDOW_SECONDS,
    ) -> None:
        self._stream: IO[str] | None = file.open("a", encoding="utf-8") if file else None
        self._trackers, self._sensor, self._memory = trackers, sensor, memory
        self._reference, self._clock, self._window_seconds = reference or ThroughputReference(), clock, window_seconds
        self._watch = DriftWatch()
        self._health: HealthWatch | None = None
        self._utilization: Utilization | None = None
        self._step = 0
        self._checkpoint_age = checkpoint_age
        self._reported = False
        self.latest: Window | None = None
        self._begin()
        self._write("start", asdict(self._reference))

    def on_step(self, rows: int, *, steps: int = 1) -> Window | None:
        """Count an optimizer step, or several, over `rows` rows; return the window that it completed, if any."""
        self._step += steps
        self._steps += steps
        self._rows += rows
        passed = self._clock() - self._began
        if self._utilization is not None and passed >= self._looks + LOOK_SECONDS:
            self._look(passed)
        return self._close_window() if passed >= self._window_seconds else None

    def _look(self, passed: float) -> None:
        """Read how busy the cards are; `passed` are the seconds since the window began."""
        self._looks = passed
        for device, share in (self._utilization() if self._utilization else {}).items():
            self._busy[device].append(share)

    @contextlib.contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """Time a stretch in which this process does nothing but wait, for "data" or "comms"."""
        began = self._clock()
        try:
            yield
        finally:
            self._waited[what] += self._clock() - began

    def on_epoch(self, figures: Mapping[str, float]) -> None:
        """Hand an epoch's figures to the trackers; end a window that is long enough to be measured.

        The device has just been waited for, so that such a window is exact. Epochs of milliseconds share one.
        """
        if self._steps and self._clock() - self._began >= SHORTEST_SECONDS:
            self._close_window()
        for tracker in self._trackers:
            tracker.log(self._step, figures)

    def resume(self, step: int) -> None:
        """Go on counting from an earlier run's optimizer step."""
        self._step = step

    def follow_health(self, health: HealthWatch) -> None:
        """Report at the end what became of the cards' error counters since `health` was made."""
        self._health = health

    def follow_utilization(self, utilization: Utilization | None) -> None:
        """Read about once a second how busy the run's cards are; None where no card shows it."""
        self._utilization = utilization

    def status(self) -> str:
        """Return the latest window for the progress line: rate, MFU, memory, temperature, checkpoint's age."""
        return status_of(self.latest, self._checkpoint_age()) if self.latest else ""

    def close(self) -> None:
        """Write out what is left; call it also when the run failed."""
        if self._steps:
            self._close_window()
        self._report_health()
        for tracker in self._trackers:
            tracker.close()
        if self._stream:
            self._stream.close()

    def _begin(self) -> None:
        self._began = self._clock()
        self._steps = self._rows = 0
        self._waited: dict[str, float] = defaultdict(float)
        self._looks = 0.0
        self._busy: dict[str, list[float]] = defaultdict(list)

    def _close_window(self) -> Window:
        seconds = max(self._clock() - self._began, 1e-9)
        reading = self._sensor() if self._sensor else None
        window = self._window(seconds, reading)
        drift = self._watch.judge(seconds / max(self._rows, 1), reading)
        self._begin()
        self.latest = window
        figures = asdict(window) | ({"drift": asdict(drift)} if drift else {})
        self._write("window", figures)
        for tracker in self._trackers:
            tracker.log(self._step, flat(asdict(window)))
        self._report_drift(drift)
        return window

    def _window(self, seconds: float, reading: Reading | None) -> Window:
        rate = self._rows / seconds
        return Window(
            step=self._step,
            steps=self._steps,
            seconds=seconds,
            step_ms=1000 * seconds / self._steps,
            rows_per_second=rate,
            waiting={what: waited / seconds for what, waited in self._waited.items()},
            mfu=utilisation(self._reference.flops_per_row, rate, self._reference.peak),
            memory=dict(self._memory()),
            sensors=reading.figures() if reading else {},
            checkpoint_age_s=self._checkpoint_age(),
            joules_per_row=reading.power_w * seconds / self._rows
            if self._reference.ranks == 1 and reading and reading.power_w and self._rows
            else None,
            utilization={device: round(sum(looks) / len(looks), 1) for device, looks in self._busy.items()},
        )

    def _report_drift(self, drift: Drift | None) -> None:
        """Report the first of a series of slow windows, once."""
        if drift and not self._reported:
            word = "throttled" if drift.throttled else "slower"
            say(f"{word}: steps take {drift.slower:.0%} longer than at the start; {drift.cause}")
            emit("drift", step=self._step, **asdict(drift))
        self._reported = drift is not None

    def _report_health(self) -> None:
        """Report what the cards' error counters did since the run began; nothing where no card shows any."""
        report = self._health.report() if self._health else None
        self._health = None
        if report is None:
            return
        self._write("health", report)
        emit("health", **report)
        if report["moved"]:
            say(f"health: {report['what']}. The run raises no level of its cell")

    def _write(self, event: str, figures: Mapping[str, Any]) -> None:
        """Write a line. A full disk costs the measurements, not the run."""
        if self._stream is None:
            return
        try:
            line = {"event": event, "time": round(time.time(), 3), **figures}
            self._stream.write(json.dumps(line, allow_nan=False) + "\n")
            self._stream.flush()
        except OSError as error:
            say(f"telemetry.jsonl cannot be written ({error.strerror}); training continues without it")
            self._stream = None


def device_memory(device: str) -> Callable[[], Mapping[str, float]]:
    """Return what reads a device's memory in bytes: allocated, reserved, peak, free, total; nothing on a CPU."""
    if not device.startswith("cuda"):
        return dict
    import torch

    def read() -> Mapping[str, float]:
        free, total = torch.cuda.mem_get_info(device)
        return {
            "allocated": torch.cuda.memory_allocated(device),
            "reserved": torch.cuda.memory_reserved(device),
            "peak": torch.cuda.max_memory_allocated(device),
            "free": free,
            "total": total,
        }

    return read


def status_of(window: Window, checkpoint_age: float | None) -> str:
    """Return a window as a person reads it, without what is not known."""
    parts = [f"{window.rows_per_second:,.0f} rows/s"]
    if window.mfu is not None:
        parts.append(f"{window.mfu:.1%} MFU")
    parts += [f"{share:.0%} waiting for {what}" for what, share in window.waiting.items() if share >= 0.01]
    if window.utilization:
        parts.append(f"{', '.join(f'{share:.0f}%' for share in window.utilization.values())} busy")
    if "total" in window.memory:
        parts.append(f"{window.memory['reserved'] / GIB:.1f}/{window.memory['total'] / GIB:.1f} GiB")
    if "temperature_c" in window.sensors:
        parts.append(f"{window.sensors['temperature_c']:.0f} °C")
    if checkpoint_age is not None:
        parts.append(f"checkpoint {checkpoint_age:.0f} s ago")
    return ", ".join(parts)


def flat(figures: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    """Return nested figures as one level of numbers, named by their path: memory/reserved."""
    result: dict[str, float] = {}
    for name, value in figures.items():
        if isinstance(value, Mapping):
            result |= flat(value, f"{prefix}{name}/")
        elif isinstance(value, int | float):
            result[prefix + name] = value
    return result
