"""Categorical columns become vectors; code 0 is the zero vector and stays so."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from trainer.models.embedded import Embedded, embedding_width

COLUMNS = [{"column": 2, "values": 4, "width": 2}, {"column": 0, "values": 3, "width": 1}]


@given(st.integers(1, 10**6))
def test_width_grows_with_the_values_up_to_fifty(values):
    assert 1 <= embedding_width(values) <= embedding_width(values + 1) <= 50


def test_inner_network_receives_numbers_in_order_then_vectors():
    network = Embedded(4, COLUMNS, torch.nn.Identity())
    rows = torch.tensor([[1.0, 0.5, 3.0, 0.25]])
    first, second = (table.weight for table in network.embeddings)
    expected = torch.cat([torch.tensor([0.5, 0.25]), first[3], second[1]])
    assert torch.equal(network(rows), expected[None])


def test_unknown_value_is_the_zero_vector_after_a_step_too():
    torch.manual_seed(0)
    network = Embedded(4, COLUMNS, torch.nn.Linear(5, 1))
    optimizer = torch.optim.SGD(network.parameters(), lr=1.0)
    network(torch.tensor([[0.0, 1.0, 0.0, 1.0], [1.0, 1.0, 1.0, 1.0]])).sum().backward()
    before = network.embeddings[0].weight[1].clone()
    optimizer.step()
    assert all(not table.weight[0].any() for table in network.embeddings)
    assert not torch.equal(network.embeddings[0].weight[1], before)
