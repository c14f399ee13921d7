"""What tests of trainer/diagnostics/bench share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from trainer.diagnostics.bench import bandwidth, matmul, small_network, transformer


@pytest.fixture
def one_thread(torch_as_before: None) -> Iterator[None]:
    yield


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes that take milliseconds on a CPU."""
    monkeypatch.setattr(matmul, "ON_CPU", ((64, 32, 16),))
    monkeypatch.setattr(bandwidth, "ON_CPU", 1 << 16)
    monkeypatch.setattr(small_network, "ROWS", 16_384)
    block = transformer.Block(precision="fp32", batch=2, length=8, width=32, heads=4, limit=1e-4)
    monkeypatch.setattr(transformer, "SMALL", block)
