"""Rows of tokens by number: windows of a stream, and preference pairs filled up to one length."""

from types import SimpleNamespace

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from trainer.data.tokens.labels import IGNORED, PADDING
from trainer.data.tokens.partition import HOST, WindowRows, pair_partition
from trainer.data.tokens.row import TokenRow

STREAM = SimpleNamespace(window=np.arange)


@given(st.integers(0, 5), st.integers(1, 6), st.lists(st.integers(0, 9), max_size=4))
def test_label_of_a_window_is_the_token_after_it(first, length, numbers):
    rows = WindowRows(stream=STREAM, first=first, count=10, length=length)
    inputs, weights = rows.rows(torch.tensor(numbers, dtype=torch.long), HOST)
    assert inputs["tokens"].shape == inputs["labels"].shape == weights.shape == (len(numbers), length)
    assert torch.equal(inputs["labels"], inputs["tokens"] + 1)
    assert [int(row[0]) for row in inputs["tokens"]] == [(first + number) * length for number in numbers]


def row(tokens, weights):
    return TokenRow(tokens=tokens, weights=weights, where="x:1")


def test_pair_is_filled_up_and_only_weighed_tokens_are_labels():
    pairs = [(row([5, 6, 7], [0, 0, 1]), row([5, 8], [0, 1]))]
    made = pair_partition(pairs, 8, filling=9)
    assert made.tokens.tolist() == [[[5, 6, 7], [5, 8, 9]]]
    assert made.labels.tolist() == [[[IGNORED, 7, IGNORED], [8, IGNORED, IGNORED]]]
    assert made.documents.tolist() == [[[0, 0, 0], [0, 0, PADDING]]]
    inputs, weights = made.rows(torch.tensor([0, 0]), HOST)
    assert (inputs["tokens"].shape, weights.tolist()) == ((2, 2, 3), [1.0, 1.0])


def test_partition_of_no_pairs_is_empty():
    assert len(pair_partition([], 8, filling=0)) == 0
