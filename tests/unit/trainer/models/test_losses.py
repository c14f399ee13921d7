from __future__ import annotations

import contextlib

import pytest
import torch
from torch import nn

from trainer.distributed.gradient_accumulation import accumulate
from trainer.models.losses import CROSS_ENTROPY, SQUARED_ERROR, batch_weight_of, loss_sum_of, mean_loss

WEIGHTS = [0.5, 2.0, 1.25]


def rows() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(23, 4, generator=generator, dtype=torch.float64)
    return inputs, torch.randint(3, (23, 1), generator=generator).double()


@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("size", [1, 5, 23])
def test_classes_in_pieces_give_torchs_own_weighted_mean(weights: list[float] | None, size: int) -> None:
    inputs, targets = rows()
    torch.manual_seed(1)
    model, twin = (nn.Linear(4, 3).double() for _ in range(2))
    twin.load_state_dict(model.state_dict())
    batch_weight = batch_weight_of(weights)
    loss = accumulate(
        model,
        inputs,
        targets,
        size=size,
        weight=len(targets) if batch_weight is None else batch_weight(targets),
        loss_sum=loss_sum_of(CROSS_ENTROPY, weights),
        context=lambda last: contextlib.nullcontext(),
    )
    tensor = None if weights is None else torch.tensor(weights, dtype=torch.float64)
    expected = nn.functional.cross_entropy(twin(inputs), targets.squeeze(1).long(), weight=tensor)
    expected.backward()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-12)
    assert torch.allclose(model.weight.grad, twin.weight.grad, rtol=1e-10)  # type: ignore[arg-type]
    measured = mean_loss(twin, inputs, targets, loss_sum_of(CROSS_ENTROPY, weights), batch_weight)
    assert measured == pytest.approx(expected.item(), rel=1e-12)


def test_numbers_take_the_mean_squared_error() -> None:
    inputs, targets = rows()
    model = nn.Linear(4, 1).double()
    expected = nn.functional.mse_loss(model(inputs), targets).item()
    assert mean_loss(model, inputs, targets, loss_sum_of(SQUARED_ERROR)) == pytest.approx(expected, rel=1e-12)


def test_unknown_loss_is_refused() -> None:
    with pytest.raises(ValueError, match="no loss called 'hinge'"):
        loss_sum_of("hinge")
