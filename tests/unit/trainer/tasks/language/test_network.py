"""A network below a folder: nothing is drawn that is then replaced, and every weight is the folder's."""

from __future__ import annotations

import json
import os
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from tests.fixtures.decoders import RAWS
from tests.unit.trainer.tasks.test_language_model import task_like
from trainer.config.sections.decoder import AdapterConfig, DecoderConfig
from trainer.models.adapters.nf4 import NF4Linear
from trainer.models.decoder.model import Decoder
from trainer.models.fast.choose import hold_frozen_weights_in
from trainer.models.pretrained import folder as pretrained
from trainer.models.pretrained.families import decoder_config
from trainer.runtime.errors import TrainerError
from trainer.tasks.language.network import build, load_weights, pretrained_vocabulary, require_positions

RAW = {
    "llama": {
        "model_type": "llama",
        "vocab_size": 61,
        "hidden_size": 32,
        "intermediate_size": 80,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "attention_bias": True,
        "max_position_embeddings": 32,
    },
    "gpt2": {"model_type": "gpt2", "vocab_size": 61, "n_positions": 32, "n_embd": 32, "n_layer": 2, "n_head": 4},
}


@pytest.fixture
def poisoned():
    """Memory that is not written is NaN, not by chance what was there before."""
    torch.use_deterministic_algorithms(True)
    before = torch.utils.deterministic.fill_uninitialized_memory
    torch.utils.deterministic.fill_uninitialized_memory = True
    yield
    torch.utils.deterministic.fill_uninitialized_memory = before
    torch.use_deterministic_algorithms(False)


def written(folder: Path, family: str) -> Decoder:
    torch.manual_seed(1)
    model = Decoder(decoder_config(RAW[family]))
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(torch.randn(weight.shape))  # norms and biases, too
    pretrained.write(folder, pretrained.Pretrained(model=model, raw=RAW[family]))
    return model


def made(folder: Path, family: str, adapter: str):
    config = DecoderConfig(model=folder, adapter=AdapterConfig(adapter=adapter, lora_rank=2))
    return build(RAW[family], config, "pretrain", seed=0)


@pytest.mark.parametrize("family", ["llama", "gpt2"])
@pytest.mark.parametrize("adapter", ["lora", "qlora"])
def test_load_weights_leaves_no_weight_unset_that_was_held_in_16_bits_unread(tmp_path, poisoned, family, adapter):
    source = written(tmp_path / "model", family)
    model = made(tmp_path / "model", family, adapter)
    hold_frozen_weights_in(model, torch.bfloat16, replaced=True)
    load_weights(model, folder=tmp_path / "model")
    for name, value in model.state_dict().items():
        assert value.float().isfinite().all(), name
    embedding = source.get_submodule("model.embed_tokens").weight
    assert torch.equal(model.decoder.model.embed_tokens.weight, embedding.bfloat16())


@pytest.mark.parametrize("family", ["llama", "gpt2"])
@pytest.mark.parametrize("adapter", ["none", "lora", "qlora"])
def test_load_weights_leaves_no_weight_of_a_built_network_unset(tmp_path, poisoned, family, adapter):
    source = written(tmp_path / "model", family)
    model = made(tmp_path / "model", family, adapter)
    load_weights(model, folder=tmp_path / "model")
    for name, value in model.state_dict().items():
        assert value.float().isfinite().all(), name
    for name, weight in source.named_parameters():
        module, _, kind = name.rpartition(".")
        base = model.decoder.get_submodule(module)
        base = getattr(base, "base", base)
        if isinstance(base, NF4Linear) and kind == "weight":
            quantised = NF4Linear(source.get_submodule(module)).dense(torch.float32)
            assert torch.equal(base.dense(torch.float32), quantised), name
        else:
            assert torch.equal(getattr(base, kind), weight), name


def test_build_below_a_folder_draws_nothing(tmp_path):
    written(tmp_path / "model", "llama")
    before = torch.get_rng_state()
    made(tmp_path / "model", "llama", "qlora")
    assert torch.equal(torch.get_rng_state(), before)


def test_build_without_a_folder_draws_every_weight(poisoned):
    torch.manual_seed(0)
    model = build(RAW["gpt2"], DecoderConfig(adapter=AdapterConfig(adapter="qlora")), "pretrain", seed=0)
    assert all(value.float().isfinite().all() for value in model.state_dict().values())
    assert model.decoder.model.embed_tokens.weight.std() > 0


def test_load_weights_quantises_on_as_many_threads_as_there_are_processors_and_leaves_torch_its_own(
    tmp_path, monkeypatch
):
    written(tmp_path / "model", "llama")
    model, seen = made(tmp_path / "model", "llama", "qlora"), set()
    meet = threading.Barrier(3, timeout=20)

    def load(self, weight, device):
        if len(seen) < 3:
            seen.add(threading.get_ident())
            meet.wait()  # passes where three layers are loaded at a time

    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1, 2})
    monkeypatch.setattr(NF4Linear, "load", load)
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        load_weights(model, folder=tmp_path / "model")
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)
    assert len(seen) == 3


def test_load_weights_that_fails_in_a_thread_fails_as_a_whole(tmp_path, monkeypatch):
    written(tmp_path / "model", "llama")
    model = made(tmp_path / "model", "llama", "qlora")
    monkeypatch.setattr(NF4Linear, "load", lambda self, weight, device: 1 / 0)
    threads = torch.get_num_threads()
    with pytest.raises(ZeroDivisionError):
        load_weights(model, folder=tmp_path / "model")
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize(
    ("size", "stops", "words"),
    [(61, (60,), ""), (62, (60,), "62 tokens"), (50, (49, 61), "eos_token_id 61 is beyond the 61 tokens")],
)
def test_token_or_stop_without_an_embedding_is_refused(size, stops, words):
    tokenizer = SimpleNamespace(size=size, stops=stops)
    if not words:
        return pretrained_vocabulary(RAW["llama"], tokenizer)
    with pytest.raises(TrainerError, match="RM704") as caught:
        pretrained_vocabulary(RAW["llama"], tokenizer)
    assert words in caught.value.what


def test_vocabulary_of_a_model_of_pictures_too_is_that_of_its_text():
    tokenizer = SimpleNamespace(size=61, stops=(60,))
    pretrained_vocabulary({"model_type": "gemma3", "text_config": {"vocab_size": 61}}, tokenizer)
    for raw in ({"text_config": {"vocab_size": 60}}, {"text_config": None}, {}):
        with pytest.raises(TrainerError, match="RM704"):
            pretrained_vocabulary(raw, tokenizer)


def test_weight_called_base_of_a_class_is_no_adapted_layers_base(tmp_path, monkeypatch):
    def model():
        part = torch.nn.Module()
        part.base, part.fn = torch.nn.Parameter(torch.zeros(2)), torch.nn.Parameter(torch.zeros(3))
        return torch.nn.ModuleDict({"part": part})

    source, made = model(), torch.nn.Module()
    with torch.no_grad():
        source["part"].fn.fill_(2.0)
    source.plain_head, made.decoder = True, model()
    monkeypatch.setattr(pretrained, "read", lambda folder: SimpleNamespace(model=source))
    load_weights(made, folder=tmp_path)
    assert made.decoder["part"].fn.tolist() == [2.0] * 3


def test_document_beyond_learned_positions_is_refused_with_the_length_that_fits():
    """It ended in an IndexError of torch, on a card in an assertion of its kernel."""
    require_positions(None, 99)
    require_positions(32, 32)
    with pytest.raises(TrainerError, match="RM500") as caught:
        build(RAW["gpt2"], DecoderConfig(), "pretrain", seed=0, longest=33)
    assert "33 tokens" in caught.value.what and "--sequence 32" in caught.value.next


def test_run_of_a_method_by_peft_is_planned_and_tried(tmp_path):
    method = {"peft_type": "LORA", "use_dora": True, "target_modules": "all-linear"}
    task = task_like(tmp_path, method="sft", adapter="peft", model=tmp_path)
    raws = {"qwen2": RAWS["qwen2"], "gpt_neo": {"model_type": "gpt_neo", "vocab_size": 300}}
    for family, raw in raws.items():
        (tmp_path / "config.json").write_text(json.dumps(raw))
        network = replace(task, peft=method).network()
        assert network.trial.keywords == {"kind": "LORA"}
        planned = network.planned and {name: network.planned[name] for name in ("adapter", "peft", "sequence")}
        # only shapes that the plan knows
        assert planned == ({"adapter": "peft", "peft": method, "sequence": 16} if family == "qwen2" else None)
    assert task_like(tmp_path, method="sft").network().trial is None
