"""The optimizer takes the weights that are trained, and one kernel for all of them where there is one."""

import pytest
import torch
from torch import nn

from trainer.engine.optimizer import adamw


def test_frozen_weights_are_left_out() -> None:
    model = nn.Linear(3, 2)
    model.bias.requires_grad_(False)
    optimizer = adamw(model, 0.25, fused=False)
    ((weight,),) = (group["params"] for group in optimizer.param_groups)
    assert weight is model.weight
    assert optimizer.defaults["lr"] == 0.25


@pytest.mark.parametrize(("device", "fused", "used"), [("cpu", True, True), ("cpu", False, None), ("meta", True, None)])
def test_fused_kernel_is_used_on_request_where_the_device_has_one(device: str, fused: bool, used: bool | None) -> None:
    optimizer = adamw(nn.Linear(3, 2, device=torch.device(device)), 0.1, fused=fused)
    assert optimizer.defaults["fused"] is used
