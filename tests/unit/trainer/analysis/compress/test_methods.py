"""Weights that go first."""

from __future__ import annotations

import pytest
import torch

from trainer.analysis.compress.methods import masks_of

pytestmark = pytest.mark.usefixtures("torch_as_before")


def test_smallest_weights_go_first() -> None:
    network = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 4))
    masks = masks_of(network, 0.5)
    kept = torch.cat([dict(network.named_parameters())[name].abs()[mask] for name, mask in masks.items()])
    gone = torch.cat([dict(network.named_parameters())[name].abs()[~mask] for name, mask in masks.items()])
    assert len(kept) == len(gone) == 48
    assert kept.min() >= gone.max()
