"""The parts of networks by their names; batch norm takes a batch of one row too."""

import pytest
import torch

from trainer.models.layers import RowsNorm, dropout_layers, norm_layers


@pytest.mark.parametrize(("norm", "kinds"), [("none", []), ("batch", [RowsNorm]), ("layer", [torch.nn.LayerNorm])])
def test_norm_is_the_layer_of_its_name(norm, kinds):
    assert [type(layer) for layer in norm_layers(norm, 3)] == kinds


@pytest.mark.parametrize(("dropout", "layers"), [(0.0, 0), (0.25, 1)])
def test_dropout_of_nothing_is_no_layer(dropout, layers):
    assert [layer.p for layer in dropout_layers(dropout)] == [dropout] * layers


def test_single_row_in_training_is_normed_by_the_running_figures_and_leaves_them():
    norm = RowsNorm(2)
    norm(torch.tensor([[1.0, 2.0], [3.0, 6.0]]))
    mean, spread, seen = norm.running_mean.clone(), norm.running_var.clone(), int(norm.num_batches_tracked)
    row = torch.tensor([[5.0, 7.0]])
    trained = norm(row)
    assert torch.equal(norm.running_mean, mean)
    assert int(norm.num_batches_tracked) == seen
    assert torch.equal(trained, norm.eval()(row))
    assert torch.allclose(trained, (row - mean) / (spread + norm.eps).sqrt())


def test_several_rows_are_normed_as_torch_does():
    rows = torch.randn(4, 2, generator=torch.Generator().manual_seed(0))
    assert torch.equal(RowsNorm(2)(rows), torch.nn.BatchNorm1d(2)(rows))
