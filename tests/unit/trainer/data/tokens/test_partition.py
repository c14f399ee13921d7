"""Rows of tokens by number: windows of a stream, preference pairs, and groups of good and bad answers."""

from types import SimpleNamespace

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from trainer.data.tokens.labels import IGNORED, PADDING
from trainer.data.tokens.partition import HOST, WindowRows, groups_of, judged_partition, pair_partition
from trainer.data.tokens.row import JudgedRow, TokenRow

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


@given(st.integers(1, 30), st.integers(2, 9), st.integers(0, 3))
def test_groups_have_each_row_once_and_then_those_that_fill_the_last_one_up(count, size, seed):
    groups = groups_of(count, size, seed)
    listed = [number for group in groups for number in group]
    assert {len(group) for group in groups} == {size}
    assert sorted(listed[:count]) == list(range(count))
    assert len(listed) - count < size and groups == groups_of(count, size, seed)


def test_group_has_each_prompt_with_its_own_answer_and_with_that_of_the_row_before():
    rows = [
        JudgedRow(row=row([10 + n, 20 + n, 30 + n, 40], [0, 0, 1, 1][: 4 - n % 2] + [0] * (n % 2)), good=n > 0)
        for n in range(3)
    ]
    made = judged_partition(rows, 4, size=2, seed=0, filling=9)
    first, second = groups_of(3, 2, 0)
    for place, number in enumerate(first):
        before, own = first[place - 1], made.tokens[0, 0, place].tolist()
        assert own == [10 + number, 20 + number, 30 + number, 40]
        answer = [30 + before, *([] if before % 2 else [40])]
        assert made.tokens[0, 1, place].tolist()[: 2 + len(answer)] == [10 + number, 20 + number, *answer]
        assert made.labels[0, 1, place, 1 : 1 + len(answer)].tolist() == answer
        assert made.labels[0, 1, place, 0] == made.labels[0, 1, place, 1 + len(answer)] == IGNORED
    assert made.verdicts.tolist() == [[1.0 if number else -1.0 for number in first], [1.0 if second[0] else -1.0, 0.0]]
    inputs, weights = made.rows(torch.tensor([1]), HOST)
    assert (inputs["tokens"].shape, weights.tolist()) == ((1, 2, 2, 4), [[1.0, 0.0]])


def test_exchanged_answer_beyond_the_length_is_cut():
    rows = [JudgedRow(row=row([1, 2, 3], [0, 0, 1]), good=True), JudgedRow(row=row([4, 5, 6], [0, 1, 1]), good=False)]
    made = judged_partition(rows, 3, size=2, seed=0, filling=9)
    place = groups_of(2, 2, 0)[0].index(0)
    assert made.tokens[0, 1, place].tolist() == [1, 2, 5]
