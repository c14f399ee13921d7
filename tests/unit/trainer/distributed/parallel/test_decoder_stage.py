"""Which rank holds what of a decoder; that the stages train like one process is tested by `test_sequence`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from trainer.distributed.parallel.decoder_stage import costs, head_of, modules_of, owner_of
from trainer.distributed.parallel.pipeline import Pipeline
from trainer.distributed.parallel.sequence import SequenceSplit
from trainer.distributed.parallel.split import cost
from trainer.models.adapters.lora import LoraConfig, add_lora
from trainer.models.decoder.model import Decoder
from trainer.models.language.model import LanguageModel, PreferenceModel
from trainer.models.pretrained.families import decoder_config
from trainer.runtime.errors import TrainerError

SLICES = [slice(0, 1), slice(1, 3), slice(3, 4)]


def decoder(*, tied: bool = True) -> Decoder:
    raw = {
        "model_type": "llama", "vocab_size": 10, "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 4,
        "num_attention_heads": 2, "num_key_value_heads": 2, "hidden_act": "silu", "max_position_embeddings": 8,
        "rms_norm_eps": 1e-5, "rope_theta": 1e4, "tie_word_embeddings": tied,
    }  # fmt: skip
    return Decoder(decoder_config(raw))


@pytest.mark.parametrize("tied", [True, False])
def test_weights_are_each_trained_by_one_rank_but_a_tied_one_by_two(tied: bool) -> None:
    model = LanguageModel(decoder(tied=tied))
    held = [{id(w) for each in modules_of(model, SLICES, rank) for w in each.parameters()} for rank in range(3)]
    twice = {id(model.decoder.head_weight)} if tied else set()
    assert held[0] | held[1] | held[2] == {id(weight) for weight in model.parameters()}
    assert (held[0] & held[1], held[1] & held[2], held[0] & held[2]) == (set(), set(), twice)
    for name, weight in model.named_parameters():
        assert id(weight) in held[owner_of(name, SLICES)]


def test_owner_rank_of_a_weight_follows_from_its_name() -> None:
    names = ["decoder.model.embed_tokens.weight", "decoder.model.embed_positions.weight", "decoder.model.norm.weight"]
    names += [f"decoder.model.layers.{block}.mlp.up_proj.base.packed" for block in range(4)] + [
        "decoder.lm_head.weight"
    ]
    assert [owner_of(name, SLICES) for name in names] == [0, 0, 2, 0, 1, 1, 2, 2]


@pytest.mark.parametrize("tied", [True, False])
def test_head_counts_for_the_last_rank_tied_or_not(tied: bool) -> None:
    model = LanguageModel(decoder(tied=tied))
    block, embedding = cost(model.decoder.model.layers[0]), 4 * 4 * 10 * 8
    assert costs(model) == [block + embedding, block, block, block + 4 * 4 * 8 + embedding]
    assert head_of(model).weight is model.decoder.head_weight


def test_frozen_weights_cost_their_own_bytes_alone() -> None:
    layer = nn.Linear(3, 4).requires_grad_(False)
    assert cost(layer) == 4 * (12 + 4)
    layer.register_buffer("packed", torch.zeros(5, dtype=torch.uint8))
    assert cost(layer) == 4 * (12 + 4) + 5


@pytest.mark.parametrize("kind", [Pipeline, SequenceSplit])
def test_preferences_over_layers_or_tokens_are_refused_with_what_works(kind: type) -> None:
    model = decoder()
    add_lora(model, LoraConfig(rank=2), seed=0)
    world: Any = kind.__new__(kind)
    choice = SimpleNamespace(transport=SimpleNamespace(backend="gloo", name="gloo"), reason="")
    world.member = SimpleNamespace(choice=choice, compression="none", device=torch.device("cpu"))
    with pytest.raises(TrainerError, match="RM563") as caught:
        world.prepare(PreferenceModel(model, beta=0.1))
    assert "PreferenceModel" in str(caught.value.what)
    assert "--parallel ddp or fsdp2" in str(caught.value.next)


@pytest.mark.parametrize("kind", [Pipeline, SequenceSplit])
def test_transport_through_the_host_between_cards_is_refused(kind: type) -> None:
    world: Any = kind.__new__(kind)
    choice = SimpleNamespace(transport=SimpleNamespace(backend="gloo", name="host"), reason="RCCL hung")
    world.member = SimpleNamespace(choice=choice, compression="none", device=torch.device("cuda", 0))
    with pytest.raises(TrainerError, match="RM563") as caught:
        world.prepare(LanguageModel(decoder()))
    assert "host" in str(caught.value.what)
    assert caught.value.why == "RCCL hung"
