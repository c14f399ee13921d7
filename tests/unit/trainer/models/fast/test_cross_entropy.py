"""Which way the losses are formed: the one that holds least, unless another is clearly faster."""

from __future__ import annotations

import pytest
import torch

from trainer.models.fast import cross_entropy
from trainer.models.language.linear_cross_entropy import softmax_gradient

CALL = cross_entropy.Call(tokens=8, vocabulary=32, dtype=torch.float32, device=torch.device("cpu"))


def chosen(monkeypatch, seconds, ways=None):
    """Return the choice where the ways, all right unless given, take so many seconds."""
    ways = ways or dict.fromkeys(seconds, softmax_gradient)
    made = {name: (lambda way=way: way) for name, way in ways.items()}
    times = iter(seconds.values())
    monkeypatch.setattr(cross_entropy, "candidates", lambda: made)
    monkeypatch.setattr(cross_entropy, "seconds_of", lambda work, device: next(times))
    return cross_entropy.choose(CALL)[1]


@pytest.mark.parametrize(
    ("compiled", "plain", "name"),
    [(0.77 / 0.96, 4.0, "triton"), (0.75, 4.0, "compiled"), (1.0, 0.9, "triton"), (0.7, 0.6, "compiled")],
)
def test_choose_keeps_the_way_that_holds_least_unless_another_is_clearly_faster(monkeypatch, compiled, plain, name):
    found = chosen(monkeypatch, {"triton": 1.0, "compiled": compiled, "plain": plain})
    assert found.name == name
    assert [trial.name for trial in found.trials] == ["triton", "compiled", "plain"]


def test_choose_takes_the_next_way_where_the_one_that_holds_least_is_wrong(monkeypatch):
    def wrong(logits, labels, scale):
        losses, gradient = softmax_gradient(logits, labels, scale)
        return losses, gradient * 1.01

    ways = {"triton": wrong, "compiled": softmax_gradient, "plain": softmax_gradient}
    found = chosen(monkeypatch, {"compiled": 9.0, "plain": 8.0}, ways)
    assert found.name == "compiled"
    assert "against fp64" in found.trials[0].refused
