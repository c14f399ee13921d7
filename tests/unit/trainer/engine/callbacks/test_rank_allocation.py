"""AdaLoRA's callback: which step it allocates for, and what it does about gradients that are not finite."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from trainer.engine.callbacks.rank_allocation import RankAllocation, allocation_of
from trainer.models.adapters.adalora import RankBudget
from trainer.runtime.errors import TrainerError


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
        self.weight.grad = torch.tensor([1.0, torch.inf])
        self.causal = SimpleNamespace(base_model="tuner")
        self.budget = SimpleNamespace(allocate=lambda tuner, step: self.seen.append((tuner, step)))
        self.seen: list[tuple[str, int]] = []


def run(step, skipped):
    return SimpleNamespace(state=SimpleNamespace(step=step, skipped=skipped))


def test_step_that_was_taken_is_allocated_for_and_a_skipped_ones_gradients_count_as_0():
    decoder = Decoder()
    callback = RankAllocation(decoder)
    callback.on_train_begin(run(4, 1))
    callback.on_step_end(run(5, 1), None)
    assert decoder.weight.grad.isinf().any()
    callback.on_step_end(run(6, 2), None)
    assert decoder.seen == [("tuner", 5), ("tuner", 6)]
    assert decoder.weight.grad.tolist() == [0.0, 0.0]


def test_sharded_gradients_are_refused_and_other_networks_have_no_callback():
    whole, parts = SimpleNamespace(lockstep=False), SimpleNamespace(lockstep=True)
    assert allocation_of(nn.Linear(1, 1), parts) == []
    budget = RankBudget(SimpleNamespace(model=nn.Linear(1, 1)))
    model = SimpleNamespace(decoder=SimpleNamespace(budget=budget))
    assert len(allocation_of(model, whole)) == 1
    with pytest.raises(TrainerError, match="RM563"):
        allocation_of(model, parts)
