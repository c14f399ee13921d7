"""Best-fit packing: nothing lost or cut, always the same, near the bound; labels stay within documents."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.data.tokens.labels import IGNORED
from trainer.data.tokens.packing import best_fit, pack
from trainer.data.tokens.row import TokenRow


@given(st.lists(st.integers(1, 50), max_size=60))
def test_best_fit_of_any_lengths_keeps_each_row_once_within_the_capacity(lengths):
    bins = best_fit(lengths, 50)
    assert sorted(row for each in bins for row in each) == list(range(len(lengths)))
    assert all(sum(lengths[row] for row in each) <= 50 for each in bins)
    # Any-fit bound: all bins but one are more than half full.
    assert sum(sum(lengths[row] for row in each) * 2 <= 50 for each in bins) <= 1


def test_best_fit_prefers_the_fullest_sequence_with_room():
    assert best_fit([6, 5, 4, 5], 10) == [[0, 2], [1, 3]]


def test_best_fit_refuses_a_row_beyond_the_capacity():
    with pytest.raises(ValueError, match="row 1 has 11 tokens"):
        best_fit([3, 11], 10)


def test_packed_labels_are_the_next_token_of_the_same_document():
    rows = [
        TokenRow(tokens=[1, 2, 3], weights=[0.0, 0.0, 1.0], where="a:1"),
        TokenRow(tokens=[4, 5], weights=[1.0, 0.5], where="a:2"),
    ]
    packed = pack(rows, [[0, 1]], 6, filling=9)
    assert packed.tokens.tolist() == [[1, 2, 3, 4, 5, 9]]
    assert packed.labels.tolist() == [[IGNORED, 3, IGNORED, 5, IGNORED, IGNORED]]
    assert packed.weights.tolist() == [[0.0, 1.0, 0.0, 0.5, 0.0, 0.0]]
    assert packed.positions.tolist() == [[0, 1, 2, 0, 1, 0]]
    assert packed.documents.tolist() == [[0, 0, 0, 1, 1, -1]]
