from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from trainer.models.build import build
from trainer.models.layers import RowsNorm

EMBEDDINGS = [{"column": 1, "values": 4, "width": 3}]


def described(**more: Any) -> dict[str, Any]:
    return {"kind": "mlp", "widths": [3, 8, 8, 2], "activation": "GELU", "norm": "none", "dropout": 0.0, **more}


@pytest.mark.parametrize("kind", ["mlp", "residual"])
@pytest.mark.parametrize("norm", ["none", "batch", "layer"])
@pytest.mark.parametrize("activation", ["ReLU", "GELU", "SiLU", "Tanh"])
def test_kinds_all_learn(kind: str, norm: str, activation: str) -> None:
    torch.manual_seed(0)
    network = build(described(kind=kind, norm=norm, activation=activation, dropout=0.1))
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    inputs = torch.randn(64, 3)
    targets = inputs[:, :2] * 2
    losses = []
    for _ in range(60):
        loss = nn.functional.mse_loss(network(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2
    assert all(value.grad is not None for value in network.parameters())


def test_dropout_acts_in_training_only() -> None:
    network, rows = build(described(dropout=0.5)), torch.randn(16, 3)
    assert not torch.equal(network.train()(rows), network(rows))
    assert torch.equal(network.eval()(rows), network(rows))


def test_network_without_hidden_layers_is_one_linear() -> None:
    assert [type(layer) for layer in build(described(widths=[3, 1]))] == [nn.Linear]


def test_residual_is_the_shortcut_where_its_body_gives_nothing() -> None:
    network = build(described(kind="residual", widths=[5, 5, 5]))
    nn.init.zeros_(network[0].body[-1].weight)
    nn.init.zeros_(network[0].body[-1].bias)
    rows = torch.randn(4, 5)
    assert torch.equal(network[0](rows), rows)


def test_code_0_is_the_zero_vector_and_stays_so() -> None:
    network = build(described(widths=[4, 8, 1], embeddings=EMBEDDINGS))
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.1)
    rows = torch.tensor([[0.5, 0.0], [0.5, 2.0], [-1.0, 0.0]])
    for _ in range(3):
        optimizer.zero_grad()
        network(rows).square().sum().backward()
        optimizer.step()
    (table,) = network.embeddings
    assert table.weight[0].abs().max() == 0
    assert table.weight[2].abs().max() > 0


def test_code_is_embedded_and_numbers_keep_their_order() -> None:
    network = build(described(widths=[5, 1], embeddings=EMBEDDINGS))
    rows = torch.tensor([[10.0, 3.0, 20.0]])
    vector = network.embeddings[0].weight[3]
    expected = network.network(torch.cat([torch.tensor([10.0, 20.0]), vector]).unsqueeze(0))
    assert torch.equal(network(rows), expected)


def test_single_row_in_training_does_not_break_batch_norm() -> None:
    norm = RowsNorm(4)
    norm(torch.randn(32, 4))
    row = torch.randn(1, 4)
    trained = norm(row)
    assert torch.allclose(trained, norm.eval()(row))


def test_unknown_kinds_are_refused() -> None:
    with pytest.raises(ValueError, match="no network of kind 'tree'; known: mlp, residual"):
        build(described(kind="tree"))


@pytest.mark.parametrize("settings", [{"experts": 3}, {"inputs": 3}, {"hidden_layers": [1]}])
def test_settings_that_a_kind_does_not_take_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="a network of kind 'mlp'"):
        build(described(settings=settings))
