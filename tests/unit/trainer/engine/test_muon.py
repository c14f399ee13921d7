"""Muon: singular values near 1, torch's own Muon and AdamW as references, and a resume to the same bits."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import nn

from tests.fixtures.training import gone_on, interrupted, same, training, weights
from trainer.engine.muon import Muon, adamw_step, orthogonalised


def deep(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 24), nn.Tanh(), nn.Linear(24, 12), nn.Tanh(), nn.Linear(12, 1))


@pytest.mark.parametrize("shape", [(32, 32), (48, 16), (16, 48), (1, 9), (9, 1)])
@pytest.mark.parametrize("products", [torch.float32, torch.bfloat16])
def test_singular_values_come_near_one_and_vectors_stay(shape: tuple[int, int], products: torch.dtype) -> None:
    update = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    found = orthogonalised(update, products).float()
    left, _, right = torch.linalg.svd(update, full_matrices=False)
    within = left.T @ found @ right.T
    assert found.shape == update.shape
    assert ((within.diagonal() > 0.6) & (within.diagonal() < 1.3)).all()
    assert (within - torch.diag(within.diagonal())).abs().max() < (1e-4 if products == torch.float32 else 0.1)


def test_gradient_of_zero_changes_nothing() -> None:
    assert not orthogonalised(torch.zeros(4, 6), torch.float32).any()


@pytest.mark.skipif(not hasattr(torch.optim, "Muon"), reason="this torch has no Muon to compare with")
def test_steps_agree_with_torchs_own_muon() -> None:
    """torch's computes in bf16 always; the difference is its rounding."""
    ours, theirs = (nn.Parameter(torch.randn(24, 40, generator=torch.Generator().manual_seed(1))) for _ in range(2))
    mine = Muon([{"params": [ours], "matrices": True}], lr=0.01, products=torch.bfloat16)
    mine.param_groups[0]["weight_decay"] = 0.1
    other = torch.optim.Muon([theirs], lr=0.01, weight_decay=0.1, adjust_lr_fn="match_rms_adamw")
    begin = ours.detach().clone()
    for step in range(5):
        gradient = torch.randn(24, 40, generator=torch.Generator().manual_seed(2 + step))
        ours.grad, theirs.grad = gradient.clone(), gradient.clone()
        mine.step()
        other.step()
    moved = (theirs.detach() - begin).norm()
    assert (ours.detach() - theirs.detach()).norm() < 0.02 * moved


def test_weights_that_are_no_matrices_take_torchs_step_of_adamw() -> None:
    ours, theirs = (nn.Parameter(torch.randn(7, generator=torch.Generator().manual_seed(1))) for _ in range(2))
    mine = Muon([{"params": [ours], "matrices": False}], lr=0.01)
    mine.param_groups[0]["weight_decay"] = 0.1
    other = torch.optim.AdamW([theirs], lr=0.01, weight_decay=0.1, foreach=False)
    for step in range(20):
        gradient = torch.randn(7, generator=torch.Generator().manual_seed(2 + step))
        ours.grad, theirs.grad = gradient.clone(), gradient.clone()
        mine.step()
        other.step()
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-7)


def test_step_of_adamw_counts_and_decays() -> None:
    weight = nn.Parameter(torch.ones(2))
    weight.grad = torch.zeros(2)
    state = {"step": 0, "exp_avg": torch.zeros(2), "exp_avg_sq": torch.zeros(2)}
    with torch.no_grad():
        adamw_step(weight, state, lr=0.5, weight_decay=0.1)
    assert state["step"] == 1
    assert weight.tolist() == pytest.approx([0.95, 0.95])


@pytest.mark.parametrize("name", ["fp32", "fp64", "bf16", "fp16"])
@pytest.mark.parametrize("step", [1, 7, 20])
def test_resumed_run_equals_the_undisturbed_one_to_the_bit(name: str, step: int) -> None:
    def make(**more: object) -> object:
        return training(name, model=deep(), optimizer="muon", **more)

    assert same(weights(gone_on(make, interrupted(make, step))), weights(make()))  # type: ignore[arg-type]


def test_learning_is_faster_than_standing_still_and_finite() -> None:
    before = training(model=deep(), optimizer="muon", learning_rate=0.02, epochs=8)
    found = weights(before)
    assert all(each.isfinite().all() for each in found.values())
    first, last = before.state.losses[0], before.state.losses[-1]
    assert last < 0.9 * first or before.state.best


def test_memory_that_is_reserved_covers_the_first_step() -> None:
    run = training("fp32", model=deep(), optimizer="muon")
    reserved = sum(each.nbytes for each in run.optimizer.reserve())  # type: ignore[attr-defined]
    matrices = 24 * 12
    others = sum(each.numel() for each in run.model.parameters()) - matrices
    assert reserved == 4 * (matrices + 2 * others + 4 * matrices)
    partial(weights, run)()
    assert sum(each.nbytes for each in run.optimizer.reserve()) == 4 * 4 * matrices  # type: ignore[attr-defined]
