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
