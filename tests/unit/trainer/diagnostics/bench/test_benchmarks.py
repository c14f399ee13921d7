"""Each benchmark on this CPU, for a moment: figures with units, and a fault of what is timed fails it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from trainer.diagnostics.bench import all_reduce, bandwidth, host_copy, matmul, small_network, transformer
from trainer.diagnostics.probes import placement
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.verdict import Verdict

MOMENT = Request(expect="cpu", seconds=0.02)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matmul, "ON_CPU", ((64, 32, 16),))
    monkeypatch.setattr(bandwidth, "ON_CPU", 1 << 16)
    monkeypatch.setattr(small_network, "ROWS", 16_384)
    block = transformer.Block(precision="fp32", batch=2, length=8, width=32, heads=4, limit=1e-4)
    monkeypatch.setattr(transformer, "SMALL", block)


@pytest.fixture
def one_thread(torch_as_before: None) -> Iterator[None]:
    yield


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


def test_two_gloo_ranks_add_up_on_the_cpu() -> None:
    verdict = all_reduce.measure(Request(expect="cpu", timeout_seconds=120))
    assert verdict.status == "pass", verdict.summary
    assert units(verdict) == {"1 MiB": "GB/s", "16 MiB": "GB/s"}
    assert "no card was measured" in verdict.summary


def test_single_card_is_not_enough_for_a_sum_and_gloo_does_not_stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    card = placement.Device(kind="rocm", name="SIMULATED card", arch="gfx1100")
    monkeypatch.setattr(placement, "place", lambda _: card)
    monkeypatch.setattr(placement, "card_count", lambda: 1)
    assert all_reduce.measure(Request(expect="rocm")).status == "not-applicable"


def test_copies_to_a_cpu_are_not_measured() -> None:
    verdict = host_copy.measure(MOMENT)
    assert (verdict.status, verdict.numbers) == ("not-applicable", ())


def test_copies_are_compared_with_what_was_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    here = placement.cpu()
    check, numbers = host_copy.copies("pageable", here, 0.01, size=4096)
    assert check.status == "pass"
    assert [number.unit for number in numbers] == ["GB/s", "%", "GB/s", "%"]
    monkeypatch.setattr(torch.Tensor, "copy_", lambda self, *_, **__: self)
    assert host_copy.copies("pageable", here, 0.01, size=4096)[0].status == "fail"


def test_fast_wrong_product_is_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "mm", lambda left, right, out: out.zero_())
    assert matmul.measure(MOMENT).status == "fail"


def test_product_that_would_take_too_long_is_left_out_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matmul, "ON_CPU", ((64, 64, 64), (1 << 20, 1 << 10, 1 << 10)))
    verdict = matmul.measure(MOMENT)
    left_out = [check for check in verdict.checks if check.status == "not-applicable"]
    assert len(left_out) == 3
    assert "would take about" in left_out[0].detail
    assert set(units(verdict)) == {f"{each} 64x64x64" for each in matmul.LIMITS}


def test_gradients_that_are_not_finite_fail_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = transformer.forward
    monkeypatch.setattr(transformer, "forward", lambda *given: honest(*given) * float("inf"))
    assert transformer.measure(MOMENT).status == "fail"


@pytest.mark.usefixtures("one_thread")
def test_network_that_learns_nothing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_network, "RATE", 0.0)
    assert small_network.measure(MOMENT).status == "fail"
