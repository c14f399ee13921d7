"""What tests of trainer/models/fast share."""

from __future__ import annotations

import pytest

from tests.fixtures.fast_blocks import choose_plain
from trainer.models.fast import block_trial, choose
from trainer.models.fast.elementwise import PLAIN


@pytest.fixture
def quick(monkeypatch):
    """Every way counts as faster than plain, and the compiler is left out."""
    times = iter(2.0**-step for step in range(1000))
    monkeypatch.setattr(block_trial, "seconds_of", lambda work, device: (work(), next(times))[1])
    monkeypatch.setattr(choose.elementwise, "compiled", lambda **how: PLAIN)
    monkeypatch.setattr(choose.cross_entropy, "candidates", lambda: {"plain": choose_plain})
