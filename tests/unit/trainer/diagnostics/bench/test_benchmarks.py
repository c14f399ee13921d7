"""Each benchmark on this CPU, for a moment: figures with units, and a fault of what is timed fails it."""

from __future__ import annotations

from typing import Any

import pytest

from trainer.diagnostics.bench import bandwidth, matmul, small_network, transformer
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.verdict import Verdict

MOMENT = Request(expect="cpu", seconds=0.02)


def units(verdict: Verdict) -> dict[str, str]:
    return {number.name: number.unit for number in verdict.numbers if number.unit != "%"}


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(
    ("module", "found"),
    [
        (matmul, {f"{each} 64x32x16": "TFLOP/s" for each in ("fp32", "bf16", "fp16")}),
        (bandwidth, {"copy 0 MiB": "GB/s"}),
        (small_network, {"batches of 256": "rows/s", "batches of 1024": "rows/s"}),
        (transformer, {"fp32 2x8x32 forward and backward": "ms"}),
    ],
)
def test_benchmark_gives_figures_with_units_and_reports_that_no_card_was_measured(
    module: Any, found: dict[str, str]
) -> None:
    verdict = module.measure(MOMENT)
    assert verdict.status == "pass", verdict.summary
    assert units(verdict) == found
    assert len(verdict.numbers) == 2 * len(found)
    assert all(number.value > 0 for number in verdict.numbers if number.unit != "%")
    assert "no card was measured" in verdict.summary
