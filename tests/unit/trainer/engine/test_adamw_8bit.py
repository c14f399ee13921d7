"""8-bit moments: what rounding costs, that none vanishes, learning as in full, and a resume to the same bits."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from tests.fixtures.training import gone_on, interrupted, same, training, weights
from trainer.engine import adamw_8bit
from trainer.engine.adamw_8bit import BLOCK, CHUNK, FEWEST, AdamW8bit, dequantized, levels_on, quantized

CPU = torch.device("cpu")


def wide(seed: int = 0) -> nn.Sequential:
    """Its hidden matrix has 8-bit moments, and the last block of it is short."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 65), nn.Tanh(), nn.Linear(65, 67), nn.Tanh(), nn.Linear(67, 1))


@pytest.mark.parametrize("signed", [True, False])
def test_levels_are_256_from_end_to_end_and_hold_zero(signed: bool) -> None:
    levels = levels_on(signed, CPU)
    assert len(levels) == len(set(levels.tolist())) == 256
    assert 0.0 in levels
    assert levels.max() == 1.0
    assert (levels.min() < -0.99) if signed else (levels.min() == 0.0)


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10**6), size=st.integers(1, 3 * BLOCK), spread=st.floats(-3, 3), signed=st.booleans())
def test_number_is_off_by_a_part_of_itself_or_of_its_blocks_least_level(
    seed: int, size: int, spread: float, signed: bool
) -> None:
    values = torch.randn(size, generator=torch.Generator().manual_seed(seed)) * 10.0**spread
    values = values if signed else values.abs()
    codes, scales = quantized(values, signed=signed)
    found = dequantized(codes, scales, signed=signed)
    assert codes.dtype == torch.uint8
    largest = scales.repeat_interleave(BLOCK)[:size]
    # the top decade has 64 levels, or 128 without a sign; each lower one half as many: at least 1 or 2
    part = (values.abs() / largest).clamp(min=1e-6).log10().floor().clamp(-6, -1)
    spacing = 0.9 * 10.0 ** (part + 1) / (2.0 ** (7 + part) * (1 if signed else 2))
    assert (((found - values).abs() / largest) <= spacing * 1.001 + 1e-6).all()
    assert found.abs().max().item() == pytest.approx(values.abs().max().item(), rel=0.02)


def test_second_moment_above_zero_never_becomes_zero() -> None:
    values = torch.full((BLOCK,), 1e-12)
    values[0], values[1] = 1.0, 0.0
    found = dequantized(*quantized(values, signed=False), signed=False)
    assert found[1] == 0
    assert (found[2:] > 0).all()
    assert not dequantized(*quantized(torch.zeros(5), signed=True), signed=True).any()


def test_update_of_a_small_gradient_next_to_a_large_one_stays_small() -> None:
    """With a second moment of 0 the small ones would move by their mean over epsilon."""
    weight = nn.Parameter(torch.zeros(FEWEST))
    optimizer = AdamW8bit([weight], lr=0.1)
    for _ in range(3):
        weight.grad = torch.full((FEWEST,), 1e-7)
        weight.grad[0] = 1.0
        optimizer.step()
    assert "mean_codes" in optimizer.state[weight]
    assert weight.detach().abs().max() < 3 * 0.1 * 3


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_steps_agree_with_torchs_adamw_within_the_rounding(decay: float) -> None:
    ours, theirs = (nn.Parameter(torch.ones(80, 80)) for _ in range(2))
    mine, other = AdamW8bit([ours], lr=0.01), torch.optim.AdamW([theirs], lr=0.01, weight_decay=decay)
    mine.param_groups[0]["weight_decay"] = decay
    for step in range(30):
        gradient = torch.randn(80, 80, generator=torch.Generator().manual_seed(step)) + 0.5
        ours.grad, theirs.grad = gradient.clone(), gradient.clone()
        mine.step()
        other.step()
    moved = (theirs - 1).norm()
    assert 0 < (ours - theirs).norm() < 0.05 * moved


def test_small_tensors_embeddings_and_views_keep_moments_in_full() -> None:
    table, small, large = (nn.Parameter(torch.zeros(rows, 64)) for rows in (100, 8, 100))
    across = nn.Parameter(torch.zeros(64, 100).T)
    optimizer = AdamW8bit([table, small, large, across], lr=0.1, wide=[table])
    for weight in (table, small, large, across):
        weight.grad = torch.ones_like(weight)
    optimizer.step()
    narrow = ["mean_codes" in optimizer.state[weight] for weight in (table, small, large, across)]
    assert narrow == [False, False, True, False]


def test_states_take_a_quarter_of_the_bytes() -> None:
    weight = nn.Parameter(torch.zeros(1000, 256))
    optimizer = AdamW8bit([weight], lr=0.1)
    weight.grad = torch.ones_like(weight)
    optimizer.step()
    held = sum(each.nbytes for each in optimizer.state[weight].values() if isinstance(each, torch.Tensor))
    assert held == 2 * weight.numel() + 2 * 4 * weight.numel() // BLOCK


def test_chunks_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    def after(chunk: int) -> torch.Tensor:
        monkeypatch.setattr(adamw_8bit, "CHUNK", chunk)
        weight = nn.Parameter(torch.ones(70, 67))
        optimizer = AdamW8bit([weight], lr=0.1)
        for step in range(3):
            weight.grad = torch.randn(70, 67, generator=torch.Generator().manual_seed(step))
            optimizer.step()
        return weight.detach()

    assert torch.equal(after(CHUNK), after(2 * BLOCK))


@pytest.mark.parametrize("name", ["fp32", "fp64", "bf16", "fp16"])
@pytest.mark.parametrize("step", [1, 7, 20])
def test_resumed_run_equals_the_undisturbed_one_to_the_bit(name: str, step: int) -> None:
    def make(**more: object) -> object:
        return training(name, model=wide(), optimizer="adamw8bit", **more)

    whole = make()
    ended = weights(whole)  # type: ignore[arg-type]
    assert any("mean_codes" in state for state in whole.optimizer.state.values())  # type: ignore[attr-defined]
    assert same(weights(gone_on(make, interrupted(make, step))), ended)  # type: ignore[arg-type]


def test_loaded_state_has_its_own_dtypes() -> None:
    weight = nn.Parameter(torch.zeros(FEWEST, dtype=torch.float64))
    one, other = (AdamW8bit([weight], lr=0.1) for _ in range(2))
    weight.grad = torch.randn(FEWEST, dtype=torch.float64)
    one.step()
    other.load_state_dict(one.state_dict())
    found = other.state[weight]
    assert found["mean_codes"].dtype == torch.uint8
    assert found["mean_scales"].dtype == torch.float32
    assert found["step"] == 1
    assert found["mean_codes"].data_ptr() != one.state[weight]["mean_codes"].data_ptr()


def test_memory_that_is_reserved_covers_states_and_a_chunk() -> None:
    weight = nn.Parameter(torch.zeros(FEWEST))
    optimizer = AdamW8bit([weight], lr=0.1)
    chunk = 6 * 4 * FEWEST
    assert sum(each.nbytes for each in optimizer.reserve()) == chunk + 2 * FEWEST + 8 * FEWEST // BLOCK
    weight.grad = torch.ones(FEWEST)
    optimizer.step()
    assert sum(each.nbytes for each in optimizer.reserve()) == chunk
