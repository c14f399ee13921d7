"""One way of computing a block is judged by results in fp64, with adapters that have an effect."""

from __future__ import annotations

import pytest
import torch

from tests.fixtures.fast_blocks import decoder, request
from trainer.models.adapters.lora import lora_modules
from trainer.models.fast.block_trial import exact_results, examined, few
from trainer.models.fast.proof import relative_error


def fresh_block(quantized=False):
    """A block whose adapters are at their beginning: B is 0."""
    model = decoder("llama", ("all",), dtype=torch.float32, quantized=quantized)
    with torch.no_grad():
        for _, module in lora_modules(model):
            module.lora_B.zero_()
    return model.model.layers[0]


@pytest.mark.parametrize("quantized", [False, True])
def test_exact_results_are_of_adapters_that_have_an_effect_and_leave_the_block_as_it_was(quantized):
    block, block_request = fresh_block(quantized), few(request())
    before = {name: value.clone() for name, value in block.state_dict().items()}
    exact = exact_results(block, block_request)
    assert all(value.dtype == torch.float64 for value in exact)
    assert all(value.abs().max() > 0 for value in exact)  # with B at 0 the gradient of A would vanish
    after = block.state_dict()
    assert all(torch.equal(value, after[name]) for name, value in before.items())
    assert relative_error(exact_results(block, block_request), exact) == 0


def test_examined_of_plain_torch_errs_by_roundings_alone_also_with_results_that_were_given():
    block, block_request = fresh_block(), request()
    exact = exact_results(block, few(block_request))
    alone, given = (
        examined(block, None, block_request, name="plain"),
        examined(block, None, block_request, exact, name="plain"),
    )
    assert 0 < alone.error < 1e-5 and alone.error == given.error
    assert given.seconds > 0 and given.held is None  # counted on a card alone


def test_examined_against_other_results_is_refused():
    block, block_request = fresh_block(), request()
    exact = [1.01 * value for value in exact_results(block, few(block_request))]
    found = examined(block, None, block_request, exact, name="way")
    assert "against fp64" in found.refused and found.seconds is None
