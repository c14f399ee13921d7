"""Muon: singular values near 1, torch's own Muon and AdamW as references, and a resume to the same bits."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import nn

from tests.fixtures.training import gone_on, interrupted, same, training, weights
from trainer.engine import muon as module
from trainer.engine.muon import TEMPORARIES, Muon, adamw_step, orthogonalised, scale_of


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
    temporaries = TEMPORARIES * matrices + others
    assert reserved == 4 * (matrices + 2 * others + temporaries)
    partial(weights, run)()
    assert sum(each.nbytes for each in run.optimizer.reserve()) == 4 * temporaries  # type: ignore[attr-defined]


def test_steps_of_spectral_scale_agree_with_torchs_original_muon() -> None:
    ours, theirs = (nn.Parameter(torch.randn(40, 24, generator=torch.Generator().manual_seed(1))) for _ in range(2))
    mine = Muon([{"params": [ours], "matrices": True, "spectral": True}], lr=0.02, products=torch.bfloat16)
    other = torch.optim.Muon([theirs], lr=0.02, weight_decay=0.0, adjust_lr_fn="original")
    begin = ours.detach().clone()
    for step in range(3):
        gradient = torch.randn(40, 24, generator=torch.Generator().manual_seed(2 + step))
        ours.grad, theirs.grad = gradient.clone(), gradient.clone()
        mine.step()
        other.step()
    moved = (theirs.detach() - begin).norm()
    assert (ours.detach() - theirs.detach()).norm() < 0.02 * moved


def test_spectral_scale_does_not_depend_on_the_width_and_matched_scale_does() -> None:
    assert [scale_of((width, width), spectral=True) for width in (128, 768)] == [1.0, 1.0]
    assert scale_of((3072, 768), spectral=True) == 2.0
    assert scale_of((768, 3072), spectral=True) == 1.0
    assert scale_of((400, 100), spectral=False) == pytest.approx(4.0)


def test_stacked_weight_moves_as_its_matrices_would_by_themselves() -> None:
    def moved(gradients: list[torch.Tensor], parts: list[int] | None) -> torch.Tensor:
        weights = [nn.Parameter(torch.zeros_like(each)) for each in gradients]
        rows = {} if parts is None else {id(weights[0]): parts}
        optimizer = Muon([{"params": weights, "matrices": True}], lr=0.1, parts=rows)
        for weight, gradient in zip(weights, gradients, strict=True):
            weight.grad = gradient
        optimizer.step()
        return torch.cat([weight.detach() for weight in weights])

    gradient = torch.randn(20, 12, generator=torch.Generator().manual_seed(0))
    alone = moved([each.contiguous() for each in gradient.split([12, 4, 4])], None)
    torch.testing.assert_close(moved([gradient], [12, 4, 4]), alone)
    assert not torch.allclose(moved([gradient], None), alone, atol=1e-3)


def test_matrices_in_batches_move_as_they_do_all_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def moved() -> list[torch.Tensor]:
        generator = torch.Generator().manual_seed(0)
        shapes = [(8, 4), (8, 4), (4, 8), (8, 4), (6, 6)]
        weights = [nn.Parameter(torch.randn(shape, generator=generator)) for shape in shapes]
        optimizer = Muon([{"params": weights, "matrices": True}], lr=0.1)
        for weight in weights:
            weight.grad = torch.randn(weight.shape, generator=generator)
        optimizer.step()
        return [weight.detach() for weight in weights]

    whole = moved()
    monkeypatch.setattr(module, "BATCH", 64)
    assert all(torch.allclose(one, other, atol=1e-6) for one, other in zip(whole, moved(), strict=True))


def test_muon_state_of_an_earlier_trainer_continues_with_its_old_settings() -> None:
    def moved(optimizer_of: Callable[[list[dict[str, Any]], int], Muon], *, old: bool) -> list[torch.Tensor]:
        generator = torch.Generator().manual_seed(0)
        matrix, vector = (nn.Parameter(torch.randn(shape, generator=generator)) for shape in ((12, 4), (4,)))
        groups = [{"params": [matrix], "matrices": True}, {"params": [vector], "matrices": False}]
        optimizer = optimizer_of(groups, id(matrix))
        for _ in range(2):
            for weight in (matrix, vector):
                weight.grad = torch.randn(weight.shape, generator=generator)
            state = optimizer.state_dict()
            for group in state["param_groups"] if old else ():
                for name in ("spectral", "betas", "split"):
                    group.pop(name, None)
            optimizer.load_state_dict(state)
            optimizer.step()
        return [matrix.detach(), vector.detach()]

    before = moved(lambda groups, _: Muon(groups, lr=0.1), old=False)
    now = moved(lambda groups, whole: Muon(groups, lr=0.1, betas=(0.9, 0.95), parts={whole: [4, 4, 4]}), old=True)
    assert all(torch.equal(one, other) for one, other in zip(before, now, strict=True))
