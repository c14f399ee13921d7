from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from trainer.distributed.parallel.split import cost, cut
from trainer.runtime.errors import TrainerError

GIB = 1 << 30


def fullest(costs: list[float], capacities: list[float], slices: list[slice]) -> float:
    return max(sum(costs[part]) / room for part, room in zip(slices, capacities, strict=True))


def test_unlike_cards_get_layers_in_proportion_to_their_memory() -> None:
    assert cut([1.0] * 36, [20 * GIB, 16 * GIB]) == [slice(0, 20), slice(20, 36)]
    assert cut([1.0] * 36, [16 * GIB, 20 * GIB]) == [slice(0, 16), slice(16, 36)]


def test_heavy_layer_is_left_alone() -> None:
    assert cut([1, 1, 1, 30, 1], [1, 1, 1]) == [slice(0, 3), slice(3, 4), slice(4, 5)]


@given(
    costs=st.lists(st.integers(1, 100).map(float), min_size=1, max_size=9),
    capacities=st.lists(st.integers(1, 50).map(float), min_size=1, max_size=4),
)
def test_other_cuts_are_not_better(costs: list[float], capacities: list[float]) -> None:
    if len(costs) < len(capacities):
        with pytest.raises(TrainerError, match="RM563"):
            cut(costs, capacities)
        return
    slices = cut(costs, capacities)
    assert [slices[0].start, slices[-1].stop] == [0, len(costs)]
    assert all(a.stop == b.start for a, b in pairwise(slices))
    assert all(part.start < part.stop for part in slices)
    others = (
        [slice(a, b) for a, b in pairwise([0, *inner, len(costs)])]
        for inner in combinations(range(1, len(costs)), len(capacities) - 1)
    )
    assert fullest(costs, capacities, slices) == min(fullest(costs, capacities, other) for other in others)


def test_layers_cost_is_weights_gradients_and_two_moments() -> None:
    assert cost(nn.Linear(3, 4)) == 4 * 4 * (12 + 4)
    assert cost(nn.ReLU()) == 0
