"""The rate of copies within memory counts bytes read and written, and only where the copy is right."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from trainer.diagnostics.bench import bandwidth, timing
from trainer.diagnostics.probes.entry import Request

MOMENT = Request(expect="cpu", seconds=0.02)


def samples(work: Callable[[], object], *_: object) -> list[float]:
    work()
    return [0.5, 0.5, 0.5]


def test_rate_counts_each_byte_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "samples", samples)
    verdict = bandwidth.measure(MOMENT)
    assert verdict.numbers[0].value == pytest.approx(2 * (1 << 16) / 1e9 / 0.5, rel=1e-3)


def test_copy_of_wrong_words_is_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    def spoiled(work: Callable[[], object], *given: object) -> list[float]:
        target = work()
        assert isinstance(target, torch.Tensor)
        target[3] += 1
        return [0.5, 0.5, 0.5]

    monkeypatch.setattr(timing, "samples", spoiled)
    assert bandwidth.measure(MOMENT).status == "fail"
