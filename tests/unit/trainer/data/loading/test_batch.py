"""Batches of any structure: what is done to a tensor is done to each of several."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from trainer.data.loading import batch

ROWS = 4
STRUCTURES = st.sampled_from(["tensor", "tuple", "mapping"])


def values(structure, tensors=2):
    made = [torch.arange(ROWS * 2.0).reshape(ROWS, 2) + number for number in range(tensors)]
    return {"tensor": made[0], "tuple": tuple(made), "mapping": {f"n{k}": each for k, each in enumerate(made)}}[
        structure
    ]


@given(STRUCTURES, st.integers(0, ROWS), st.integers(0, ROWS))
def test_cut_takes_the_same_rows_of_each_tensor(structure, start, stop):
    whole = values(structure)
    found = batch.cut(whole, slice(start, stop))
    assert type(found) is type(whole)
    for part, each in zip(batch.tensors(found), batch.tensors(whole), strict=True):
        assert torch.equal(part, each[start:stop])


@given(STRUCTURES)
def test_count_is_of_rows_and_moving_keeps_the_structure(structure):
    whole = values(structure)
    assert batch.count(whole) == ROWS
    moved = batch.to(whole, torch.device("meta"))
    assert [each.device.type for each in batch.tensors(moved)] == ["meta"] * len(list(batch.tensors(whole)))
    assert list(moved) == list(whole) if isinstance(whole, dict) else type(moved) is type(whole)


@given(STRUCTURES)
def test_model_receives_a_structure_as_its_arguments(structure):
    class Sum(torch.nn.Module):
        def forward(self, n0, n1=None):
            return n0 if n1 is None else n0 - n1

    expected = {"tensor": values("tensor"), "tuple": -torch.ones(ROWS, 2), "mapping": -torch.ones(ROWS, 2)}
    assert torch.equal(batch.call(Sum(), values(structure)), expected[structure])
