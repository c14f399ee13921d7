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
