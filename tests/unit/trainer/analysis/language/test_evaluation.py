"""A trained model measured on a text."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from trainer.analysis.language import evaluation
from trainer.analysis.language.evaluation import evaluate
from trainer.analysis.language.loading import load


@pytest.mark.parametrize("sequence", [7, 64])
def test_evaluation_predicts_each_token_once(base, tmp_path, sequence):
    (tmp_path / "text.txt").write_text("Grüße und noch ein Satz. " * 3, encoding="utf-8")
    loaded = load(base)
    figures = evaluate(loaded, tmp_path / "text.txt", sequence=sequence)
    ids = [*(tmp_path / "text.txt").read_bytes(), 256]
    total = 0.0
    for begin in range(0, len(ids) - 1, sequence):
        window = torch.tensor(ids[begin : begin + sequence + 1])
        logits = loaded.made.model(window[None, :-1])[0]
        total += torch.nn.functional.cross_entropy(logits, window[1:], reduction="sum").item()
    assert figures["tokens"] == len(ids) - 1
    assert figures["loss"] == pytest.approx(total / (len(ids) - 1), rel=1e-5)
    assert figures["bits_per_byte"] == pytest.approx(total / math.log(2) / (len(ids) - 1), rel=1e-5)


class Counted:
    """A stream of the tokens 0 to 23."""

    def __len__(self):
        return 24

    def window(self, begin, end):
        return np.arange(begin, min(end, 24))


def test_windows_that_are_measured_together_cover_each_token_once_and_in_order(monkeypatch):
    monkeypatch.setattr(evaluation, "TOGETHER", 12)
    parts = list(evaluation.batches(Counted(), 4))
    assert [tuple(tokens.shape) for tokens, _ in parts] == [(3, 4), (2, 4), (1, 3)]
    assert torch.cat([tokens.flatten() for tokens, _ in parts]).tolist() == list(range(23))
    assert all(bool((labels == tokens + 1).all()) for tokens, labels in parts)
