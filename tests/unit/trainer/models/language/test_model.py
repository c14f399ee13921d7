"""A decoder with the loss of good and bad answers: its reference, and its gradients in 16 bits."""

from __future__ import annotations

import itertools
from functools import partial

import pytest
import torch

from tests.fixtures.fast_blocks import RAW, decoder
from trainer.models.adapters.lora import LoraConfig, adapters_disabled, add_lora, linear_modules, lora_modules
from trainer.models.adapters.nf4 import quantize_linear_layers
from trainer.models.decoder.model import Decoder
from trainer.models.language.model import JudgedModel, PreferenceModel
from trainer.models.language.preference_loss import kto_loss_sum
from trainer.models.pretrained.families import decoder_config

TOKENS = torch.randint(61, (2, 2, 3, 10), generator=torch.Generator().manual_seed(6))
LABELS, DOCUMENTS = TOKENS.roll(-1, 3), torch.zeros_like(TOKENS)
VERDICTS = torch.tensor([[1.0, -1.0, 1.0], [-1.0, 1.0, 0.0]])


def judged(dtype):
    return JudgedModel(decoder("llama", ("all",)).to(dtype), beta=0.3, weights=(1.0, 2.0))


def test_loss_of_groups_takes_the_reference_without_adapters_and_the_distance_from_exchanged_answers():
    model = judged(torch.float64)
    one, other = ((TOKENS[:, place], LABELS[:, place], DOCUMENTS[:, place]) for place in (0, 1))
    with torch.no_grad():
        policy, moved = model.log_probabilities(*one), model.log_probabilities(*other)
        with adapters_disabled(model.decoder):
            reference, still = model.log_probabilities(*one), model.log_probabilities(*other)
    assert (policy != reference).all() and (moved != still).all()
    how = {"policy": policy, "reference": reference, "exchanged": moved - still, "verdicts": VERDICTS}
    loss = model(TOKENS, LABELS, DOCUMENTS, VERDICTS)
    assert loss.item() == pytest.approx(kto_loss_sum(**how, beta=0.3, weights=(1.0, 2.0)).item(), rel=1e-12)


def test_adapters_in_16_bits_have_gradients_although_they_ran_without_before():
    exact, model = judged(torch.float64), judged(torch.float32)
    exact(TOKENS, LABELS, DOCUMENTS, VERDICTS).backward()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model(TOKENS, LABELS, DOCUMENTS, VERDICTS)
    loss.backward()
    pairs = zip(exact.named_parameters(), model.named_parameters(), strict=True)
    trained = [(name, one.grad, other.grad) for (name, one), (_, other) in pairs if one.requires_grad]
    assert trained
    for name, one, other in trained:
        assert other is not None, name
        assert (one - other).norm() < 0.05 * one.norm(), name


def test_weights_in_16_bits_without_gradient_are_forgotten_before_those_with_one(monkeypatch):
    """Of torch before 2.10 they would be used again, and the adapters not learn; a later one keeps none."""
    events, model = [], judged(torch.float32)
    compute = model.log_probabilities
    monkeypatch.setattr(torch, "clear_autocast_cache", lambda: events.append("forgotten"))
    model.log_probabilities = lambda *given: (events.append(torch.is_grad_enabled()), compute(*given))[1]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        model(TOKENS, LABELS, DOCUMENTS, VERDICTS)
    assert events[: events.index(True)] == [False, False, False, "forgotten"]


PREFERENCES = [partial(PreferenceModel, beta=0.3), partial(JudgedModel, beta=0.3, weights=(1.0, 2.0))]


@pytest.mark.parametrize(("make", "quantized"), list(itertools.product(PREFERENCES, [False, True])))
def test_dropout_of_the_base_is_off_for_preferences_and_that_of_adapters_is_not(make, quantized):
    """A GPT-2 has 0.1: the reference would differ from the model that it is at the first step."""
    raw = {**RAW["gpt2"], "attn_pdrop": 0.5, "resid_pdrop": 0.5}
    base = Decoder(decoder_config(raw))
    base.initialize(0)
    if quantized:
        quantize_linear_layers(base, list(linear_modules(base)))
    add_lora(base, LoraConfig(rank=2, alpha=4, targets=("all",), dropout=0.5), seed=1)
    model = make(base).train()
    given = (TOKENS[:, 0], LABELS[:, 0], DOCUMENTS[:, 0])
    one, other = model.log_probabilities(*given), model.of_reference(*given)
    assert torch.equal(one, other)  # B is 0
    for _, module in lora_modules(base):
        torch.nn.init.normal_(module.lora_B, std=0.1)
    assert not torch.equal(model.log_probabilities(*given), model.log_probabilities(*given))
    model.eval()
    assert torch.equal(model.log_probabilities(*given), model.log_probabilities(*given))


def test_layer_of_peft_has_its_dropout_for_preferences_and_the_base_has_not():
    layer = torch.nn.Module()
    layer.base_layer, layer.lora_dropout = torch.nn.Linear(2, 2), torch.nn.Dropout()
    base = torch.nn.Sequential(torch.nn.Dropout(), layer)
    model = PreferenceModel(base, beta=0.3).train()
    assert (model.training, base[0].training, layer.lora_dropout.training) == (True, False, True)
    model.eval()
    assert not layer.lora_dropout.training
