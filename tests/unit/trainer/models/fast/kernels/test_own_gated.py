"""Blocks whose activations' backward pass writes over what it reads, with a STAND-IN for the kernel."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tests.fixtures.fast_blocks import LABELS, TOKENS, decoder, request, wrapped
from trainer.models.fast import choose, own_gelu
from trainer.models.fast.adapted import AdaptedBlock
from trainer.models.fast.elementwise import PLAIN, inner_backward
from trainer.models.fast.kernels import own_gated

BF16 = torch.bfloat16
CALLS: list[str] = []


def over(joint, gradient, kind, gated):
    """What the kernel does, by torch."""
    CALLS.append(kind)
    by_joint, product = inner_backward(joint, gradient, kind, gated)
    return joint.copy_(by_joint), gradient.copy_(product)


@pytest.fixture
def there(monkeypatch):
    CALLS.clear()
    monkeypatch.setattr(own_gelu, "there", lambda: True)
    monkeypatch.setattr(own_gated, "backward_over", over)


@pytest.mark.parametrize(
    ("gated", "dtype", "tile", "suits"),
    [(True, BF16, 8, True), (False, BF16, 8, False), (True, torch.float32, 8, False), (True, BF16, 0, False)],
)
def test_kernel_suits_gated_layers_in_16_bits_that_are_computed_by_tiles(gated, dtype, tile, suits):
    assert own_gated.suits(gated, dtype, tile) is suits


@pytest.mark.parametrize("tile", [5, 64])
@pytest.mark.parametrize("family", ["llama", "gemma"])
def test_gradients_are_those_of_operations_that_make_new_tensors(there, family, tile):
    found = []
    for ops in (PLAIN, replace(PLAIN, inner_backward_over=over)):
        model = wrapped(decoder(family, ("all",)))
        activation = model.decoder.config.feed_forward.activation
        how = {"dtype": torch.float32, "stream": torch.float32, "tile": tile}
        for block in model.decoder.model.layers:
            block.fast = AdaptedBlock(block, activation, ops=ops, **how)
        model(TOKENS, LABELS).backward()
        found.append([weight.grad for weight in model.parameters() if weight.grad is not None])
    assert len(found[0]) > 10
    assert all(torch.equal(*pair) for pair in zip(*found, strict=True))
    assert CALLS


def test_kept_projection_of_a_layer_is_not_written_over(there):
    model = wrapped(decoder("llama", ("all",)))
    ops = replace(PLAIN, inner_backward_over=over)
    for block in model.decoder.model.layers:
        block.fast = AdaptedBlock(block, "silu", dtype=torch.float32, stream=torch.float32, ops=ops)
    model(TOKENS, LABELS).backward()
    assert CALLS == []


@pytest.mark.parametrize(
    ("checkpointing", "refused", "own"),
    [("full", {}, True), ("offloaded", {}, True), ("off", {}, False), ("full", {"triton": "no"}, False)],
)
def test_kernel_is_used_with_full_checkpointing_unless_triton_is_refused(there, quick, checkpointing, refused, own):
    model = wrapped(decoder("llama", ("all",), dtype=torch.float32))
    choose.hold_frozen_weights_in(model, BF16)
    chosen = choose.use_fast(model, request(dtype=BF16, checkpointing=checkpointing, refused=refused))
    assert chosen.names()["blocks"] == "adapters folded, compiled elementwise" + (own_gated.NAMED if own else "")
    model(TOKENS, LABELS).backward()
    assert bool(CALLS) is own


def test_wrong_values_of_the_kernel_are_found_and_compiled_operations_used(there, quick, monkeypatch):
    def wrong(*given):
        by_joint, product = over(*given)
        return by_joint.mul_(1.5), product

    monkeypatch.setattr(own_gated, "backward_over", wrong)
    model = wrapped(decoder("llama", ("all",), dtype=torch.float32))
    choose.hold_frozen_weights_in(model, BF16)
    chosen = choose.use_fast(model, request(dtype=BF16, checkpointing="full"))
    assert chosen.names()["blocks"] == "adapters folded, compiled elementwise"
