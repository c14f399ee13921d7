"""The gates' programs in this process: what is right passes, and each kind of wrong value is seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.fixtures.gates import SUBJECT
from trainer.models.adapters import lora, nf4
from trainer.models.fast import attention
from trainer.run.gates import trials
from trainer.run.gates.trials import CELLS, SENTINEL, canary_fault, nf4_exact, tried

pytestmark = pytest.mark.usefixtures("torch_as_before")


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("gate", ["adapter", "nf4", "attention math"])
def test_plain_torch_passes_in_each_format(gate: str, precision: str) -> None:
    assert tried(gate, replace(SUBJECT, precision=precision)) == {"status": "passed", "why": ""}


@pytest.mark.parametrize("rank", [1, 3, 16, 64, 100])
@pytest.mark.parametrize("padded", [0, 64])
def test_adapter_of_any_rank_passes_filled_up_or_not(rank: int, padded: int) -> None:
    assert tried("adapter", replace(SUBJECT, rank=rank, padded=padded))["status"] == "passed"


def test_adapter_filled_up_is_computed_with_that_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    ranks = set[int]()
    linear = lora.functional.linear

    def seen(inputs: Any, weight: Any, *more: Any) -> Any:
        if weight.dtype != torch.float64:  # of the comparison
            ranks.add(min(weight.shape))
        return linear(inputs, weight, *more)

    monkeypatch.setattr(lora.functional, "linear", seen)
    tried("adapter", replace(SUBJECT, padded=48))
    assert ranks == {48}


def spoil(change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[..., torch.Tensor]:
    right = nf4.dequantize
    return lambda *values: change(right(*values).clone())


def one_number(weight: torch.Tensor) -> torch.Tensor:
    weight[-1, -1] = torch.nan
    return weight


@pytest.mark.parametrize(
    "change",
    [lambda weight: weight * 1.01, lambda weight: weight.flip(0), torch.zeros_like, one_number],
    ids=["scaled", "permuted", "zeros", "NaN"],
)
def test_weights_that_are_dequantised_wrong_are_seen(
    change: Callable[[torch.Tensor], torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nf4, "dequantize", spoil(change))
    assert tried("nf4", SUBJECT)["status"] == "wrong"


def test_codes_that_differ_from_the_hosts_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    right, count = nf4.quantize, iter(range(9))

    def quantize(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        codes, scales = right(weight)
        return (codes if next(count) == 0 else codes ^ 1), scales

    monkeypatch.setattr(nf4, "quantize", quantize)
    assert "other codes" in tried("nf4", SUBJECT)["why"]


def test_reference_of_4_bits_is_that_of_the_format() -> None:
    weight = torch.randn(3, 100, generator=torch.Generator().manual_seed(0))
    codes, scales = nf4.quantize(weight)
    dense = nf4.dequantize(codes, scales, weight.shape, torch.float32)
    torch.testing.assert_close(nf4_exact(codes, scales, weight.shape).float(), dense, rtol=1e-6, atol=0)


@pytest.mark.parametrize(
    ("spoiled", "why"),
    [
        (lambda output: output * 1.1, "err by"),
        (lambda output: output.masked_fill(torch.rand_like(output.float()) < 0.01, torch.nan), "err by without bound"),
        (lambda output: output.roll(1, dims=2), "err by"),
    ],
)
def test_attention_that_errs_is_seen(spoiled: Any, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = attention.Kernel.__call__
    monkeypatch.setattr(
        attention.Kernel, "__call__", lambda self, *values, **more: spoiled(kernel(self, *values, **more))
    )
    assert why in tried("attention math", SUBJECT)["why"]


def test_attention_that_fails_on_the_whole_shape_alone_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = attention.Kernel.__call__

    def large(self: Any, query: torch.Tensor, *more: Any, **how: Any) -> torch.Tensor:
        found = kernel(self, query, *more, **how)
        return found * torch.inf if len(query) > 1 else found

    monkeypatch.setattr(attention.Kernel, "__call__", large)
    found = tried("attention flash", SUBJECT)
    assert "2 rows of 32 tokens" in found["why"]


def test_kernel_that_is_not_there_is_absent() -> None:
    found = tried("attention cudnn", SUBJECT)
    assert found["status"] == "absent"
    assert found["why"]


@pytest.mark.parametrize(
    ("cells", "why"),
    [
        (torch.full((CELLS,), SENTINEL), f"{CELLS} of {CELLS}"),
        (torch.where(torch.arange(CELLS) % 2 == 0, 3.0 * torch.arange(CELLS) + 1, SENTINEL), "2048 of 4096"),
        (torch.full((CELLS,), torch.nan), "0 of them never written"),
    ],
)
def test_canary_counts_what_was_not_written(cells: torch.Tensor, why: str) -> None:
    assert why in canary_fault(cells)
    assert canary_fault(3.0 * torch.arange(CELLS) + 1) == ""


def test_compiler_that_is_missing_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "missing", lambda device: "no compiler")
    assert tried("compile", SUBJECT) == {"status": "absent", "why": "no compiler"}


@pytest.mark.parametrize(("spoiled", "status"), [(1.0, "passed"), (1.1, "wrong")])
def test_compiled_layer_is_compared_with_fp64(spoiled: float, status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A STAND-IN for the compiler: the very compiler is tried where a run asks for it."""
    monkeypatch.setattr(trials, "missing", lambda device: "")
    monkeypatch.setattr(torch, "compile", lambda work, **more: lambda *values: spoiled * work(*values))
    assert tried("compile", SUBJECT)["status"] == status


def test_compiler_that_raises_is_an_error_with_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def compile_(*more: Any, **how: Any) -> Any:
        raise ValueError("no code object\nand more")

    monkeypatch.setattr(trials, "missing", lambda device: "")
    monkeypatch.setattr(torch, "compile", compile_)
    assert tried("compile", SUBJECT) == {"status": "error", "why": "ValueError: no code object"}
