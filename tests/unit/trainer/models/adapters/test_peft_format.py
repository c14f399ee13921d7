"""Adapters in PEFT's format are read and written."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.fixtures.small_adapters import CONFIGS, GPT2, LLAMA, TOKENS, adapted, base, logits, save
from trainer.models.adapters import peft_format
from trainer.models.adapters.lora import LoraConfig
from trainer.models.pretrained.folder import Pretrained, write
from trainer.runtime.errors import TrainerError


@pytest.mark.parametrize("raw", [LLAMA, GPT2], ids=["llama", "gpt2"])
@pytest.mark.parametrize("stabilized", [False, True])
def test_adapter_of_peft_is_read_with_the_same_logits(raw, stabilized, tmp_path):
    peft = pytest.importorskip("peft")
    transformers = pytest.importorskip("transformers")
    write(tmp_path / "base", Pretrained(model=base(raw), raw=raw))
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "base", local_files_only=True)
    config = peft.LoraConfig(
        r=3, lora_alpha=5, use_rslora=stabilized, target_modules="all-linear", task_type="CAUSAL_LM"
    )
    theirs = peft.get_peft_model(theirs, config).eval()
    torch.manual_seed(0)
    with torch.no_grad():
        for name, each in theirs.named_parameters():
            if "lora_B" in name:
                each.normal_(std=0.3)
    theirs.save_pretrained(tmp_path / "adapter")
    ours = base(raw)
    peft_format.read(ours, tmp_path / "adapter", family=raw["model_type"])
    with torch.no_grad():
        assert torch.allclose(theirs(TOKENS).logits, logits(ours), atol=1e-5)


def test_adapter_of_some_layers_is_written_with_full_names(tmp_path):
    config = LoraConfig(rank=2, targets=("model.layers.1.mlp.up_proj", "o_proj"))
    save(tmp_path, config)
    targets = json.loads((tmp_path / "adapter_config.json").read_text())["target_modules"]
    assert targets == [
        "model.layers.0.self_attn.o_proj",
        "model.layers.1.mlp.up_proj",
        "model.layers.1.self_attn.o_proj",
    ]
    again = base()
    peft_format.read(again, tmp_path, family="llama")
    assert torch.equal(logits(again), logits(adapted(config)))


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        ({"use_dora": True}, "use_dora"),
        ({"bias": "all"}, "bias"),
        ({"peft_type": "IA3"}, "IA3"),
        ({"modules_to_save": ["lm_head"]}, "modules_to_save"),
        ({"r": 0}, "r = 0"),
        ({"lora_alpha": "16"}, "lora_alpha"),
        ({"alpha_pattern": {"q_proj": 4}}, "alpha_pattern"),
    ],
)
def test_adapter_config_that_is_not_implemented_names_the_option(edit, words, tmp_path):
    save(tmp_path, CONFIGS["plain"])
    record = json.loads((tmp_path / "adapter_config.json").read_text())
    (tmp_path / "adapter_config.json").write_text(json.dumps(record | edit))
    with pytest.raises(TrainerError) as caught:
        peft_format.read(base(), tmp_path, family="llama")
    assert caught.value.code == "RM712"
    assert words in caught.value.what


@pytest.mark.parametrize("file", ["adapter_config.json", "adapter_model.safetensors"])
@pytest.mark.parametrize("how", ["missing", "truncated"])
def test_adapter_file_missing_or_truncated_is_named(file, how, tmp_path):
    save(tmp_path, CONFIGS["plain"])
    path = tmp_path / file
    content = path.read_bytes()
    path.unlink()
    if how == "truncated":
        path.write_bytes(content[: len(content) // 2])
    with pytest.raises(TrainerError) as caught:
        peft_format.read(base(), tmp_path, family="llama")
    assert caught.value.code == "RM712"
    assert file in caught.value.what


def test_adapter_of_another_shape_is_refused_with_the_layer(tmp_path):
    save(tmp_path, CONFIGS["plain"])
    with pytest.raises(TrainerError) as caught:
        peft_format.read(base(LLAMA | {"intermediate_size": 32}), tmp_path, family="llama")
    assert caught.value.code == "RM713"
    assert "mlp" in caught.value.what


def changed(folder, change):
    """Write the adapter's weights again, changed."""
    path = folder / peft_format.WEIGHTS
    save_file(change(dict(load_file(path))), path, metadata={"format": "pt"})


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (lambda weights: {"x": torch.ones(1, dtype=torch.int8)}, "RM712", "int8"),
        (lambda weights: {"x": torch.ones(1).to(torch.float8_e4m3fn)}, "RM712", "float8"),
        (lambda weights: {name: value / 0.0 for name, value in weights.items()}, "RM702", "NaN or infinity"),
        (lambda weights: {}, "RM713", "lacks"),
        (lambda weights: {key: value for key, value in weights.items() if "layers.0." not in key}, "RM713", "lacks 2"),
    ],
    ids=["int8", "float8", "infinity", "empty", "a layer less"],
)
def test_weights_that_are_not_those_of_the_record_are_refused(tmp_path, change, code, words):
    save(tmp_path, LoraConfig(rank=2, targets=("q_proj", "v_proj")))
    changed(tmp_path, change)
    with pytest.raises(TrainerError) as caught:
        peft_format.read(base(), tmp_path, family="llama")
    assert (caught.value.code, words in caught.value.what) == (code, True), caught.value.what


def test_rank_of_the_weights_is_that_of_the_record(tmp_path):
    save(tmp_path, LoraConfig(rank=2, targets=("q_proj", "v_proj")))
    path = tmp_path / "adapter_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "r": 4}))
    with pytest.raises(TrainerError) as caught:
        peft_format.read(base(), tmp_path, family="llama")
    assert (caught.value.code, "has rank 2" in caught.value.what) == ("RM713", True)


@pytest.mark.parametrize("rslora", [False, True])
def test_ranks_by_pattern_give_the_logits_of_peft(tmp_path, rslora):
    peft = pytest.importorskip("peft")
    transformers = pytest.importorskip("transformers")
    write(tmp_path / "base", Pretrained(model=base(), raw=LLAMA))
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "base", local_files_only=True)
    targets = {"target_modules": ["q_proj", "v_proj"], "rank_pattern": {"q_proj": 5}, "init_lora_weights": False}
    theirs = peft.get_peft_model(
        theirs, peft.LoraConfig(r=3, use_rslora=rslora, task_type="CAUSAL_LM", **targets)
    ).eval()
    theirs.save_pretrained(tmp_path / "adapter")
    ours = base()
    peft_format.read(ours, tmp_path / "adapter", family="llama")
    with torch.no_grad():
        assert torch.allclose(theirs(TOKENS).logits, logits(ours), atol=1e-5)
