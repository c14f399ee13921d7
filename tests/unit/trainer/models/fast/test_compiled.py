"""Compiled blocks equal plain ones."""

from __future__ import annotations

import copy

import pytest
import torch

from tests.fixtures.fast_blocks import decoder, learned, next_token
from trainer.models.fast.compiled import CompiledBlock


@pytest.mark.parametrize("family", ["llama", "gpt2", "qwen3"])
def test_compiled_blocks_in_two_parts_equal_plain_ones(family):
    """With a compiler that changes nothing: the two parts and attention between them are the whole block."""
    plain = decoder(family)
    fast = copy.deepcopy(plain)
    shared = CompiledBlock(compile_=lambda function, **how: function)
    for block in fast.model.layers:
        block.fast = shared
    both_trained(plain, fast)


def both_trained(plain, fast):
    exact, found = learned(plain, next_token(plain)), learned(fast, next_token(fast))
    assert torch.equal(found[0], exact[0])
    assert all(torch.equal(found[1][name], value) for name, value in exact[1].items())
