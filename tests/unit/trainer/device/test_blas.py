"""The back end of matrix products is what torch says it is after it was asked for."""

from __future__ import annotations

import pytest
import torch

from trainer.device import blas


def test_back_end_that_torch_lacks_is_not_applicable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch.backends.cuda, "preferred_blas_library")
    reason = blas.select_back_end("cublaslt")
    assert reason
    assert "has no preferred_blas_library" in reason


def test_back_end_that_torch_falls_back_from_is_not_applicable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cuda, "preferred_blas_library", lambda name=None: "_BlasBackend.Cublas")
    assert blas.select_back_end("cublas") is None
    assert blas.select_back_end("cublaslt") == "torch fell back to cublas on this card"
