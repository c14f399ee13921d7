"""Attention over packed documents, by each kernel."""

from __future__ import annotations

import pytest
import torch

from tests.fixtures.packed_documents import FAMILIES, alone, made, packed, use_backend
from trainer.models.decoder.attention import Attention


@pytest.mark.parametrize("family", FAMILIES)
def test_flex_attention_gives_the_outputs_of_documents_alone(family):
    model, (tokens, positions, documents) = made(family).float(), packed()
    use_backend(model, "flex")  # on a CPU it has no backward pass: gradients are compared on a card
    with torch.no_grad():
        given = model.hidden(tokens, positions=positions, documents=documents)[documents >= 0]
        use_backend(model, "sdpa")
        expected = torch.cat([model.hidden(one)[0] for one in alone(tokens, documents)])
    assert torch.allclose(given, expected, atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_attention_of_a_new_decoder_leaves_the_kernel_to_torch(family):
    found = {each.backend for each in made(family).modules() if isinstance(each, Attention)}
    assert found == {"sdpa"}
