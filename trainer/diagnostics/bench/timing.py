"""Timing of benchmarks: warm-up does not count, and a median comes with its spread."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence

from trainer.diagnostics.probes import numerics
from trainer.diagnostics.probes.verdict import Device, Number

LEAST, MOST = 5, 200  # samples of one figure
SAMPLE_SECONDS = 0.005  # a shorter call is repeated to this, so that looking at the clock does not count
WARM_SHARE = 0.2  # of the time for a figure: clocks go up, kernels and pages are there
SPREAD = "spread"


def samples(work: Callable[[], object], torch_type: str, budget: float) -> list[float]:
    """Return the seconds of one call of `work`, taken for about `budget` seconds, LEAST times at least.

    Args:
        work: what is timed.
        torch_type: device type of torch, "cuda" or "cpu".
        budget: measuring time in seconds.
    """
    ends = time.perf_counter() + budget
    pace = warmed(work, torch_type, WARM_SHARE * budget)
    calls = max(1, math.ceil(SAMPLE_SECONDS / pace))
    taken: list[float] = []
    while len(taken) < LEAST or (time.perf_counter() < ends and len(taken) < MOST):
        taken.append(elapsed(work, torch_type, calls) / calls)
    return taken


def warmed(work: Callable[[], object], torch_type: str, budget: float) -> float:
    """Return the seconds of the fastest call while the device warms up for `budget` seconds; the first is left out.

    Args:
        work: what is timed.
        torch_type: device type of torch, "cuda" or "cpu".
        budget: warm-up time in seconds.
    """
    elapsed(work, torch_type, 1)
    ends, fastest = time.perf_counter() + budget, elapsed(work, torch_type, 1)
    while time.perf_counter() < ends:
        fastest = min(fastest, elapsed(work, torch_type, 1))
    return fastest


def elapsed(work: Callable[[], object], torch_type: str, calls: int) -> float:
    """Return the seconds of `calls` calls, the device's part included.

    Args:
        work: what is timed.
        torch_type: device type of torch, "cuda" or "cpu".
        calls: number of calls.
    """
    numerics.wait_for(torch_type)
    began = time.perf_counter()
    for _ in range(calls):
        work()
    numerics.wait_for(torch_type)
    return max(time.perf_counter() - began, 1e-9)


def rate(name: str, unit: str, amount: float, taken: Sequence[float]) -> list[Number]:
    """Return `amount` (in `unit` times seconds) over the median of `taken`, in `unit`, and the spread of the samples.

    Args:
        name: name of the number.
        unit: unit of the rate, such as "GB/s".
        amount: amount of one sample, in `unit` times seconds.
        taken: seconds of each sample.
    """
    return [Number(name=name, value=rounded(amount / statistics.median(taken)), unit=unit), spread(name, taken)]


def milliseconds(name: str, taken: Sequence[float]) -> list[Number]:
    """Return the median of `taken` in ms, and the spread of the samples."""
    return [Number(name=name, value=rounded(1e3 * statistics.median(taken)), unit="ms"), spread(name, taken)]


def spread(name: str, taken: Sequence[float]) -> Number:
    """Return the interquartile range of the samples, in per cent of their median."""
    first, middle, third = statistics.quantiles(taken, n=4, method="inclusive")
    return Number(name=f"{name} {SPREAD}", value=round(100 * (third - first) / middle, 1), unit="%")


def rounded(value: float) -> float:
    """Return `value` to four digits: more are noise."""
    return float(f"{value:.4g}")


def place_text(device: Device) -> str:
    """Return what was measured, and that no card was where none was.

    A CPU computes with one thread, as in training, unless OMP_NUM_THREADS sets another number.
    """
    import torch

    if device.kind != "cpu":
        return f"on {device.name} ({device.arch})"
    threads = torch.get_num_threads()
    return f"on the CPU ({device.name}, {threads} thread{'s'[: threads != 1]}); no card was measured"
