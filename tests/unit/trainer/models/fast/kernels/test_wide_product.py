"""A product whose results come in fp32: what is given where a library writes it, and where it does not."""

from __future__ import annotations

import pytest
import torch

from trainer.models.fast.kernels import wide_product

BF16, HERE = torch.bfloat16, torch.device("cpu")


@pytest.fixture(autouse=True)
def anew():
    wide_product.writes_wide.cache_clear()
    yield
    wide_product.writes_wide.cache_clear()


class Library:
    """A STAND-IN for a card's library: torch.mm with the result's dtype, as `how` gives it."""

    def __init__(self, how):
        self.how, self.mm, self.requested = how, torch.mm, 0

    def __call__(self, left, right, *, out_dtype=None):
        if out_dtype is None:
            return self.mm(left, right)
        self.requested += 1
        return self.how(self.mm(left.float(), right.float()))


def refuse(_values):
    raise RuntimeError("gemm input type at::BFloat16 and output type float is not supported for ROCm")


HOW = {
    "wide": (lambda values: values, True),
    "rounded": (lambda values: values.bfloat16().float(), False),
    "wrong": (lambda values: values * 1.01, False),
    "refused": (refuse, False),
}


@pytest.mark.parametrize("name", HOW)
def test_library_is_used_only_where_its_results_are_right_and_not_rounded(name, monkeypatch):
    how, expected = HOW[name]
    monkeypatch.setattr(torch, "mm", Library(how))
    assert wide_product.tried(HERE, BF16) is expected


def test_host_writes_no_wide_product():
    assert not wide_product.writes_wide(HERE, BF16)


@pytest.mark.parametrize("wide", [True, False])
def test_results_have_the_dtype_requested_for_and_are_rounded_once_where_that_is_possible(wide, monkeypatch):
    library = Library(lambda values: values)
    monkeypatch.setattr(torch, "mm", library)
    monkeypatch.setattr(wide_product, "writes_wide", lambda *_: wide)
    left, right = (torch.randn(size, generator=torch.Generator().manual_seed(1)).to(BF16) for size in ((3, 8), (8, 5)))
    exact = left.float() @ right.float()
    found = wide_product.product(left, right, torch.float32)
    assert found.dtype == torch.float32 and library.requested == wide
    assert torch.equal(found, exact if wide else (left @ right).float())
    assert not torch.equal(exact, (left @ right).float())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_wide_matrices_are_multiplied_as_they_are(dtype, monkeypatch):
    monkeypatch.setattr(wide_product, "writes_wide", refuse)
    left, right = torch.randn(3, 8, dtype=dtype), torch.randn(8, 5, dtype=dtype)
    assert torch.equal(wide_product.product(left, right, dtype), left @ right)
