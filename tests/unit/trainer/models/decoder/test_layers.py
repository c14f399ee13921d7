"""Norms and feed-forward layers of decoders equal their formulas."""

import pytest
import torch
from torch import nn

from trainer.models.adapters.lora import LoraConfig, add_lora
from trainer.models.decoder.config import FeedForwardConfig, NormConfig
from trainer.models.decoder.layers import ACTIVATIONS, FeedForward, RMSNorm, draws_numbers, norm_of
from trainer.models.decoder.model import Decoder
from trainer.models.pretrained.families import decoder_config

STATES = torch.randn(2, 3, 8, generator=torch.Generator().manual_seed(0))


def test_rms_norm_equals_torchs_own():
    assert torch.allclose(RMSNorm(8, 1e-6)(STATES), torch.nn.functional.rms_norm(STATES, (8,), eps=1e-6), atol=1e-6)


def test_weight_stored_less_one_gives_the_same_norm():
    plain, less_one = RMSNorm(8, 1e-6), RMSNorm(8, 1e-6, plus_one=True)
    with torch.no_grad():
        plain.weight.fill_(1.5)
        less_one.weight.fill_(0.5)
    assert torch.allclose(plain(STATES), less_one(STATES))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
def test_norm_keeps_the_dtype_and_is_computed_wide(dtype):
    norm = RMSNorm(8, 1e-6, plus_one=True).to(dtype)
    found = norm(STATES.to(dtype))
    assert found.dtype == dtype
    exact = torch.nn.functional.rms_norm(STATES.to(dtype).double(), (8,), eps=1e-6)
    assert torch.equal(found, exact.to(dtype)) or torch.allclose(found.double(), exact, atol=1e-6)


@pytest.mark.parametrize(
    ("kind", "made", "plus_one"),
    [("rms", RMSNorm, False), ("rms_plus_one", RMSNorm, True), ("layer", torch.nn.LayerNorm, None)],
)
def test_norm_is_the_one_of_its_name(kind, made, plus_one):
    norm = norm_of(NormConfig(kind=kind, epsilon=0.5), 8)
    assert type(norm) is made
    assert getattr(norm, "plus_one", None) == plus_one
    assert (norm.eps if made is torch.nn.LayerNorm else norm.epsilon) == 0.5


def test_norm_of_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match="no norm called 'batch'"):
        norm_of(NormConfig(kind="batch"), 8)


@pytest.mark.parametrize("gated", [True, False])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_feed_forward_equals_its_formula(activation, gated):
    layer = FeedForward(8, FeedForwardConfig(width=12, activation=activation, gated=gated, bias=True))
    inner = ACTIVATIONS[activation](layer.gate_proj(STATES)) * layer.up_proj(STATES) if gated else None
    expected = layer.down_proj(inner if inner is not None else ACTIVATIONS[activation](layer.up_proj(STATES)))
    assert torch.equal(layer(STATES), expected)
    assert hasattr(layer, "gate_proj") == gated


@pytest.mark.parametrize(
    ("change", "drawn"),
    [
        ({}, False),
        ({"resid_pdrop": 0.1}, True),
        ({"attn_pdrop": 0.1}, True),
        ({"adapter": 0.1}, True),
        ({"adapter": 0.0}, False),
    ],
)
def test_dropout_of_block_attention_or_adapter_draws_numbers(change, drawn):
    raw = {"model_type": "gpt2", "vocab_size": 8, "n_positions": 8, "n_embd": 8, "n_layer": 1, "n_head": 2}
    off = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    model = Decoder(decoder_config(raw | off | {name: value for name, value in change.items() if name != "adapter"}))
    if "adapter" in change:
        add_lora(model, LoraConfig(rank=2, targets=("all",), dropout=change["adapter"]), seed=0)
    assert draws_numbers(model.blocks[0]) is drawn
    assert draws_numbers(nn.Sequential(nn.Linear(1, 1), nn.Dropout(0.1 if drawn else 0.0))) is drawn
