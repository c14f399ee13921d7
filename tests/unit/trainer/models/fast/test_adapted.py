"""Faster blocks with adapters equal plain ones."""

from __future__ import annotations

import copy

import pytest
import torch

from tests.fixtures.fast_blocks import LABELS, TOKENS, decoder, request, wrapped
from trainer.models.adapters.lora import lora_modules
from trainer.models.decoder.recomputation import SameWeights
from trainer.models.fast import block_trial, choose
from trainer.models.fast.adapted import AdaptedBlock
from trainer.models.fast.elementwise import PLAIN


def test_use_fast_of_right_blocks_installs_them_and_gives_errors_and_times(quick):
    model = wrapped(decoder("qwen2", ("all",)))
    before = copy.deepcopy(model)
    chosen = choose.use_fast(model, request())
    assert chosen.names()["blocks"] == "adapters folded, compiled elementwise"
    assert all(isinstance(block.fast, AdaptedBlock) for block in model.decoder.model.layers)
    assert torch.allclose(model(TOKENS, LABELS), before(TOKENS, LABELS), rtol=1e-5)
    state = before.state_dict()
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    (plain, folded) = chosen.choices["blocks"].trials
    assert 0 < plain.error < 1e-5 and 0 < folded.error < 1e-5 and folded.seconds < plain.seconds


def test_adapted_blocks_in_bf16_are_as_near_to_fp64_as_plain_ones():
    """The gate's own measure, on the CPU: bf16 products and stream, weights rounded beforehand."""
    model = decoder("qwen2", ("all",), dtype=torch.float32)
    choose.hold_frozen_weights_in(model, torch.bfloat16)
    block = model.model.layers[0]
    block_request = request(dtype=torch.bfloat16)
    plain = block_trial.examined(block, None, block_request, name="plain")
    block.fast = AdaptedBlock(block, "silu", dtype=torch.bfloat16, stream=torch.bfloat16, ops=PLAIN)
    fast = block_trial.examined(block, plain, block_request, name="fast")
    assert not plain.refused and not fast.refused
    assert 1e-4 < fast.error < 3e-2


@pytest.mark.parametrize("tile", [0, 8])
def test_adapters_are_taken_over_once_for_passes_with_the_same_weights(tile):
    model = wrapped(decoder("qwen2", ("all",)))
    for block in model.decoder.model.layers:
        block.fast = AdaptedBlock(block, "silu", dtype=torch.float32, stream=torch.float32, ops=PLAIN, tile=tile)
    before = model(TOKENS, LABELS)
    with torch.no_grad():
        for _, module in lora_modules(model.decoder):
            module.lora_B.add_(1.0)
    with SameWeights():
        assert torch.equal(model(TOKENS, LABELS), before)
    assert not torch.equal(model(TOKENS, LABELS), before)
