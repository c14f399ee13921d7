"""The kernels that this CPU's torch has, and kernels made wrong on purpose."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from trainer import attention
from trainer.attention import KERNELS, LIMITS, Finding, Shape, choose_attention, choose_from, compare, draw, examine
from trainer.errors import TrainerError

SMALL = Shape(batch=1, heads=2, length=33, width=16)


@pytest.mark.parametrize("dtype", LIMITS)
def test_math_is_right_on_the_cpu_in_every_format(dtype: torch.dtype) -> None:
    found = examine("math", device="cpu", dtype=dtype, shape=SMALL, seed=0)
    assert found.refused == ""
    assert 0 <= found.error <= LIMITS[dtype]
    assert 0 < found.seconds < math.inf


def test_auto_takes_the_fastest_that_is_right_and_names_all() -> None:
    chosen = choose_attention("auto", device="cpu", dtype=torch.float32, shape=SMALL)
    usable = {finding.kernel: finding.seconds for finding in chosen.findings if not finding.refused}
    assert chosen.kernel == min(usable, key=lambda name: usable[name])
    assert all(name in chosen.reason for name in KERNELS)


def test_the_choice_holds_within_the_block() -> None:
    chosen = choose_attention("math", device="cpu", dtype=torch.float32, shape=SMALL)
    q, k, v, _ = draw(SMALL, device="cpu", dtype=torch.float32, seed=1)
    with chosen.applied():
        assert torch.backends.cuda.math_sdp_enabled()
        assert not torch.backends.cuda.flash_sdp_enabled()
        scaled_dot_product_attention(q, k, v)
    assert torch.backends.cuda.flash_sdp_enabled()


class WrongGradient(torch.autograd.Function):
    """Passes values on; the gradient is 1 % too large."""

    @staticmethod
    def forward(ctx: object, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: object, gradient: Tensor) -> Tensor:
        return gradient * 1.01


def causal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return scaled_dot_product_attention(q, k, v, is_causal=True)


@pytest.mark.parametrize(
    ("wrong", "least"),
    [
        (lambda q, k, v: causal(WrongGradient.apply(q), k, v), 0.009),
        (lambda q, k, v: causal(q, k, WrongGradient.apply(v)), 0.009),
        (scaled_dot_product_attention, 0.1),  # forgot the mask
        (lambda q, k, v: scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.2), 0.01),
        (lambda q, k, v: causal(q, k, v) * torch.where(torch.arange(16) == 3, math.nan, 1.0), math.inf),
    ],
)
def test_a_wrong_kernel_shows(wrong: Callable[[Tensor, Tensor, Tensor], Tensor], least: float) -> None:
    inputs = draw(SMALL, device="cpu", dtype=torch.float32, seed=0)
    assert compare(causal, inputs, causal=True) < 1e-5
    assert compare(wrong, inputs, causal=True) >= least


def test_a_kernel_that_is_wrong_on_this_card_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "compare", lambda kernel, inputs, causal: 0.5)
    with pytest.raises(TrainerError, match="RM566") as caught:
        choose_attention("auto", device="cpu", dtype=torch.float32, shape=SMALL)
    assert "error 5.0e-01 against fp64, allowed is 1e-04" in caught.value.what


def test_speed_counts_among_the_right_ones_only() -> None:
    findings = [
        Finding(kernel="flash", error=0.5, seconds=1e-6, refused="wrong"),
        Finding(kernel="efficient", error=1e-7, seconds=2e-3),
        Finding(kernel="math", error=1e-7, seconds=1e-3),
    ]
    chosen = choose_from(findings, where="here")
    assert chosen.kernel == "math"
    assert "flash is not used: wrong" in chosen.reason


def test_a_kernel_that_refuses_says_why() -> None:
    found = examine("efficient", device="cpu", dtype=torch.float32, shape=SMALL, seed=0)
    assert found.refused  # torch has no such kernel for the CPU
    with pytest.raises(TrainerError, match="RM566"):
        choose_attention("efficient", device="cpu", dtype=torch.float32, shape=SMALL)
