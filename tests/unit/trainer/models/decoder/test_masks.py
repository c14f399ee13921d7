"""Packed rows against the same documents alone: logits and gradients, on each attention backend."""

from __future__ import annotations

import pytest
import torch

from trainer.models.decoder.attention import use_backend
from trainer.models.decoder.model import Decoder
from trainer.models.language.linear_cross_entropy import linear_cross_entropy_sum
from trainer.models.pretrained.families import decoder_config

SHAPE = {
    "vocab_size": 53,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}
FAMILIES = {
    "llama": SHAPE | {"model_type": "llama"},
    "mistral_window": SHAPE | {"model_type": "mistral", "sliding_window": 3},
    "gpt2": {"model_type": "gpt2", "vocab_size": 53, "n_positions": 32, "n_embd": 16, "n_layer": 2, "n_head": 2,
             "attn_pdrop": 0.0, "resid_pdrop": 0.0},
}  # fmt: skip
LENGTHS = ((7, 1, 6), (3, 9, 2))  # a document of one token is the smallest there is


def made(family):
    model = Decoder(decoder_config(FAMILIES[family])).double()
    model.initialize(0)
    return model


def packed():
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(53, (2, 16), generator=generator)
    positions, documents = torch.zeros(2, 16, dtype=torch.long), torch.full((2, 16), -1)
    for row, lengths in enumerate(LENGTHS):
        begin = 0
        for number, length in enumerate(lengths):
            positions[row, begin : begin + length] = torch.arange(length)
            documents[row, begin : begin + length] = number
            begin += length
    return tokens, positions, documents


def alone(tokens, documents):
    """Return each document's tokens as a row of its own."""
    return [tokens[row : row + 1, documents[row] == number] for row in range(2) for number in range(len(LENGTHS[row]))]


def loss_of(model, hidden, tokens):
    return linear_cross_entropy_sum(hidden.flatten(0, 1), model.head_weight, (tokens.flatten() * 7 + 3) % 53)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("backend", ["sdpa", "math", "documents"])
def test_packed_rows_give_the_gradients_of_documents_alone(family, backend):
    model, (tokens, positions, documents) = made(family), packed()
    use_backend(model, backend)
    hidden = model.hidden(tokens, positions=positions, documents=documents)
    real = documents >= 0
    loss = loss_of(model, hidden[real].unsqueeze(0), tokens[real].unsqueeze(0))
    together = torch.autograd.grad(loss, list(model.parameters()))
    use_backend(model, "sdpa")
    each = sum(loss_of(model, model.hidden(one), one) for one in alone(tokens, documents))
    apart = torch.autograd.grad(each, list(model.parameters()))
    assert torch.allclose(loss, each, rtol=1e-12)
    for (name, _), one, other in zip(model.named_parameters(), together, apart, strict=True):
        assert torch.allclose(one, other, rtol=1e-9, atol=1e-12), name


@pytest.mark.parametrize("family", FAMILIES)
def test_flex_attention_gives_the_outputs_of_documents_alone(family):
    model, (tokens, positions, documents) = made(family).float(), packed()
    use_backend(model, "flex")  # on a CPU it has no backward pass: gradients are compared on a card
    with torch.no_grad():
        given = model.hidden(tokens, positions=positions, documents=documents)[documents >= 0]
        use_backend(model, "sdpa")
        expected = torch.cat([model.hidden(one)[0] for one in alone(tokens, documents)])
    assert torch.allclose(given, expected, atol=1e-5)


def test_documents_without_their_mask_would_differ():
    model, (tokens, positions, documents) = made("llama"), packed()
    leaking = model.hidden(tokens, positions=positions)
    masked = model.hidden(tokens, positions=positions, documents=documents)
    assert not torch.allclose(leaking, masked)


def test_use_backend_with_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match="sdpa, math, flex, documents"):
        use_backend(made("llama"), "flash3")
