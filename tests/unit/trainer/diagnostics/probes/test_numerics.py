from __future__ import annotations

import math

import pytest
import torch

from trainer.diagnostics.probes import numerics


def test_relative_error_is_that_of_frobenius() -> None:
    reference = torch.tensor([[3.0, 0.0], [0.0, 4.0]], dtype=torch.float64)
    assert numerics.relative_error(reference.float(), reference) == 0.0
    assert numerics.relative_error(torch.zeros(2, 2), reference) == 1.0
    assert numerics.relative_error(2 * reference.float(), reference) == pytest.approx(1.0)
    assert math.isnan(numerics.relative_error(torch.full((2, 2), math.nan), reference))


def test_nan_is_the_least_of_changes() -> None:
    assert numerics.least([1.0, 0.5, 2.0]) == 0.5
    assert math.isnan(numerics.least([1.0, math.nan, -math.inf]))


def test_nan_is_the_worst_of_errors() -> None:
    assert numerics.worst([1.0, 3.0, 2.0]) == 3.0
    assert math.isnan(numerics.worst([1.0, math.nan, math.inf]))
    with pytest.raises(ValueError, match="empty"):
        numerics.worst([])


def test_bits_are_compared_not_values() -> None:
    before = torch.tensor([1.0, math.nan, 0.0, 2.0])
    assert numerics.bits_changed(before, before.clone()) == 0
    assert numerics.bits_changed(before, torch.tensor([1.0, math.nan, -0.0, 3.0])) == 2


def test_seeds_are_fresh() -> None:
    assert len({numerics.fresh_seed() for _ in range(8)}) > 1


def test_seed_has_31_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numerics.secrets, "randbits", lambda bits: 2**bits - 1)
    assert numerics.fresh_seed() == 2**31 - 1


@pytest.mark.parametrize("limit", [1e-4, 5e-3, 3e-2])  # of fp32, fp16 and bf16 in conv and attention
def test_zero_among_two_thousand_elements_is_above_every_limit(limit: float) -> None:
    reference = torch.randn(2000, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    found = reference.clone()
    assert numerics.error(found, reference) == 0.0
    found[reference.abs().argmax()] = 0
    assert numerics.error(found, reference) > limit
    middle = reference.abs().sort().indices[1000]  # an element of the usual size
    found = reference.clone()
    found[middle] = 0
    assert numerics.error(found, reference) > limit
    assert numerics.relative_error(found, reference) < 3e-2


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_rounding_alone_stays_far_below_the_limits(dtype: torch.dtype) -> None:
    reference = torch.randn(20_000, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    limits = {torch.float16: 2e-3, torch.bfloat16: 1e-2}
    assert numerics.error(reference.to(dtype), reference) < limits[dtype] / 2


def test_element_that_is_nan_makes_the_error_nan() -> None:
    reference = torch.ones(4, dtype=torch.float64)
    assert math.isnan(numerics.error(torch.tensor([1.0, math.nan, 1.0, 1.0]), reference))


@pytest.mark.parametrize("size", [1.0, 3.0])
def test_error_of_an_element_is_a_fifth_of_its_share_of_its_own_size_and_the_mean(size: float) -> None:
    reference = torch.full((10_000,), size, dtype=torch.float64)
    found = reference.clone()
    found[7] = 0  # by the norm a hundredth
    assert numerics.error(found, reference) == pytest.approx(0.5 / numerics.PEAK_SHARE)
    assert numerics.error(torch.zeros(1), reference[:1]) == 1.0  # by the norm


def test_products_of_fp32_stay_without_tf32(monkeypatch: pytest.MonkeyPatch) -> None:
    before = torch.get_float32_matmul_precision()
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
    torch.set_float32_matmul_precision("high")
    try:
        numerics.strict_fp32()
        assert (torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32) == ("highest", False)
    finally:
        torch.set_float32_matmul_precision(before)


def test_card_is_waited_for_and_the_cpu_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[str] = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: waits.append("card"))
    numerics.wait_for("cpu")
    assert waits == []
    numerics.wait_for("cuda")
    assert waits == ["card"]


@pytest.mark.parametrize(
    ("more", "times", "seconds"),
    [({}, [1.0, 2, 5, 4, 3, 6], 2.0), ({}, [1.0, 6, 5, 4, 3, 2], 2.0), ({"rounds": 2}, [1.0, 5, 4], 4.0)],
)
def test_best_time_is_the_least_but_for_the_first_with_the_card_waited_for(
    monkeypatch: pytest.MonkeyPatch, more: dict[str, int], times: list[float], seconds: float
) -> None:
    clock, took = [100.0], iter(times)
    steps: list[str] = []

    def work() -> None:
        steps.append("work")
        clock[0] += next(took)

    monkeypatch.setattr(numerics.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(numerics, "wait_for", steps.append)
    assert numerics.best_seconds(work, "cuda", **more) == seconds
    assert steps == ["cuda", "work", "cuda"] * len(times)


def test_checksum_counts_each_byte_by_its_place_modulo_64_bits() -> None:
    def by_hand(content: bytes) -> int:
        places = ((place * 0x9E3779B97F4A7C1) ^ place for place in range(1, len(content) + 1))
        whole = sum((byte + 1) * place for byte, place in zip(content, places, strict=True)) % 2**64
        return whole - 2**64 if whole >= 2**63 else whole

    values = torch.tensor([[1.5, -2.0, 0.0], [3.0, 1e30, -0.0]])
    assert numerics.checksum(values) == by_hand(values.numpy().tobytes())
    assert numerics.checksum(values.t()) == by_hand(values.t().contiguous().numpy().tobytes())
    full = torch.full((3,), 255, dtype=torch.uint8)
    assert numerics.checksum(full) == by_hand(b"\xff" * 3)
    with torch.device("meta"):  # another default than the tensor's own device
        assert numerics.checksum(full) == by_hand(b"\xff" * 3)
    assert len({numerics.checksum(torch.zeros(size, dtype=torch.uint8)) for size in (0, 1, 2, 3)}) == 4
