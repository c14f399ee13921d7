"""Which way the losses are formed: the one that holds least, unless another is clearly faster."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import partial

import pytest
import torch

from trainer.models.fast import cross_entropy
from trainer.models.language.linear_cross_entropy import softmax_gradient

CALL = cross_entropy.Call(tokens=8, vocabulary=32, dtype=torch.float32, device=torch.device("cpu"))


def chosen(monkeypatch, seconds, ways=None):
    """Return the choice where the ways, all right unless given, take so many seconds, a list one after the other."""
    ways = {name: partial((ways or {}).get(name, softmax_gradient)) for name in ways or seconds}
    made = {name: (lambda way=way: way) for name, way in ways.items()}
    times = {
        id(ways[name]): itertools.chain(each, itertools.repeat(each[-1]))
        if isinstance(each, list)
        else itertools.repeat(each)
        for name, each in seconds.items()
    }
    monkeypatch.setattr(cross_entropy, "candidates", lambda: made)
    monkeypatch.setattr(cross_entropy, "_seconds", lambda softmax, call: next(times[id(softmax)]))
    return cross_entropy.choose(CALL)[1]


@pytest.mark.parametrize(
    ("compiled", "plain", "name"),
    [(0.77 / 0.96, 4.0, "triton"), (0.75, 4.0, "compiled"), (1.0, 0.9, "triton"), (0.7, 0.6, "compiled")],
)
def test_choose_keeps_the_way_that_holds_least_unless_another_is_clearly_faster(monkeypatch, compiled, plain, name):
    found = chosen(monkeypatch, {"triton": 1.0, "compiled": compiled, "plain": plain})
    assert found.name == name
    assert [trial.name for trial in found.trials] == ["triton", "compiled", "plain"]


def test_choose_times_the_way_that_holds_least_again_before_it_is_left_for_one_slow_timing(monkeypatch):
    found = chosen(monkeypatch, {"triton": [1.4, 1.0], "compiled": 0.9, "plain": 4.0})
    assert found.name == "triton" and found.trials[0].seconds == 1.0


@pytest.mark.parametrize(("vocabulary", "tokens"), [(151936, 441), (50304, 1334), (2**22, 256)])
def test_timed_logits_take_no_more_than_their_bytes_but_for_the_least_chunk(vocabulary, tokens):
    assert replace(CALL, tokens=8192, vocabulary=vocabulary).timed == tokens


def test_choose_takes_the_next_way_where_the_one_that_holds_least_is_wrong(monkeypatch):
    def wrong(logits, labels, scale):
        losses, gradient = softmax_gradient(logits, labels, scale)
        return losses, gradient * 1.01

    ways = {"triton": wrong, "compiled": softmax_gradient, "plain": softmax_gradient}
    found = chosen(monkeypatch, {"compiled": 9.0, "plain": 8.0}, ways)
    assert found.name == "compiled"
    assert "against fp64" in found.trials[0].refused


@pytest.mark.parametrize(
    ("tokens", "vocabulary", "checkpointing", "chunk"),
    [
        (16384, 151936, "off", 4096),  # by bytes
        (16384, 151936, "full", 1024),  # likewise
        (4096, 151936, "full", 512),  # an eighth of the tokens
        (2048, 151936, "offloaded", 256),
        (2048, 151936, "selective", 4096),
        (2048, 320, "full", 16384),  # an eighth would save nothing that counts
    ],
)
def test_chunk_is_bounded_by_bytes_and_with_full_checkpointing_by_a_share_of_the_tokens(
    tokens, vocabulary, checkpointing, chunk
):
    call = cross_entropy.Call(
        tokens=tokens, vocabulary=vocabulary, dtype=torch.bfloat16, device=torch.device("cpu"),
        checkpointing=checkpointing,
    )  # fmt: skip
    assert call.chunk == chunk
