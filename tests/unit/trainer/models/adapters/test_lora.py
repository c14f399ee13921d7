"""LoRA: unchanged at first, switched off and merged exactly, and in peft's files both ways."""

from __future__ import annotations

import json

import pytest
import torch

from trainer.models.adapters import peft_format
from trainer.models.adapters.lora import LoraConfig, adapters_disabled, add_lora, lora_modules, merge
from trainer.models.adapters.nf4 import NF4Linear, quantize_linear_layers
from trainer.models.decoder.model import Decoder
from trainer.models.pretrained.families import decoder_config
from trainer.models.pretrained.folder import Pretrained, write
from trainer.runtime.errors import TrainerError

LLAMA = {
    "model_type": "llama",
    "vocab_size": 61,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}
GPT2 = {"model_type": "gpt2", "vocab_size": 61, "n_positions": 32, "n_embd": 16, "n_layer": 2, "n_head": 2}
TOKENS = torch.arange(20).reshape(2, 10)
CONFIGS = {
    "plain": LoraConfig(rank=4, alpha=8),
    "stabilized": LoraConfig(rank=4, alpha=8, rank_stabilized=True),
    "half_alpha": LoraConfig(rank=3, alpha=1.5),
}


def base(raw=LLAMA):
    model = Decoder(decoder_config(raw)).eval()
    model.initialize(0)
    with torch.no_grad():
        for each in model.parameters():
            each.add_(0.1 * torch.randn(each.shape, generator=torch.Generator().manual_seed(each.numel())))
    return model


def adapted(config, raw=LLAMA):
    model = base(raw)
    add_lora(model, config, seed=1)
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for _, module in lora_modules(model):
            module.lora_B.copy_(torch.randn(module.lora_B.shape, generator=generator) * 0.3)
    return model


@torch.no_grad()
def logits(model):
    return model(TOKENS)


def test_new_adapter_leaves_the_model_unchanged_and_trains_only_itself():
    model = base()
    before = logits(model)
    names = add_lora(model, LoraConfig(rank=2, targets=("q_proj", "down_proj")), seed=0)
    assert len(names) == 4
    assert torch.equal(logits(model), before)
    trained = {name for name, each in model.named_parameters() if each.requires_grad}
    assert all("lora_" in name for name in trained)
    assert len(trained) == 8


def test_adapter_switched_off_gives_the_base_and_comes_back_after_an_error():
    model = adapted(CONFIGS["plain"])
    with_it = logits(model)
    with pytest.raises(KeyError), adapters_disabled(model):
        assert torch.equal(logits(model), logits(base()))
        raise KeyError
    assert torch.equal(logits(model), with_it)
    assert not torch.allclose(with_it, logits(base()))


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("raw", [LLAMA, GPT2], ids=["llama", "gpt2"])
def test_merge_gives_the_logits_of_the_adapter(config, raw):
    model = adapted(config, raw)
    expected = logits(model)
    merge(model)
    assert not list(lora_modules(model))
    assert model.state_dict().keys() == base(raw).state_dict().keys()
    assert torch.allclose(logits(model), expected, atol=1e-5)


def test_merge_over_nf4_gives_the_logits_of_the_adapter():
    model = base()
    names = [name for name, module in model.named_modules() if isinstance(module, torch.nn.Linear) and "layers" in name]
    quantize_linear_layers(model, names)
    assert sum(isinstance(module, NF4Linear) for module in model.modules()) == 14
    add_lora(model, CONFIGS["plain"], seed=1)
    with torch.no_grad():
        for _, module in lora_modules(model):
            module.lora_B.normal_(std=0.3)
    expected = logits(model)
    merge(model)
    assert torch.allclose(logits(model), expected, atol=1e-5)


def test_training_over_nf4_gives_gradients_to_the_adapter_only():
    model = base()
    quantize_linear_layers(model, ["model.layers.0.mlp.up_proj"])
    add_lora(model, LoraConfig(rank=2, targets=("up_proj",)), seed=0)
    model(TOKENS).sum().backward()
    module = model.get_submodule("model.layers.0.mlp.up_proj")
    assert module.lora_B.grad.abs().max() > 0


def test_dropout_changes_training_alone():
    model = adapted(LoraConfig(rank=4, dropout=0.5))
    assert torch.equal(logits(model), logits(model))
    model.train()
    assert not torch.equal(logits(model), logits(model))


def test_unknown_target_is_refused_with_the_nearest_name():
    with pytest.raises(TrainerError) as caught:
        add_lora(base(), LoraConfig(targets=("q_prj",)), seed=0)
    assert caught.value.code == "RM713"
    assert "q_proj" in caught.value.what


def save(folder, config, raw=LLAMA, model=None):
    folder.mkdir(exist_ok=True)
    for name, content in peft_format.files(
        model or adapted(config, raw), config, family=raw["model_type"], base="base"
    ).items():
        (folder / name).write_bytes(content)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("raw", [LLAMA, GPT2], ids=["llama", "gpt2"])
def test_written_adapter_in_peft_gives_the_same_logits(config, raw, tmp_path):
    peft = pytest.importorskip("peft")
    transformers = pytest.importorskip("transformers")
    write(tmp_path / "base", Pretrained(model=base(raw), raw=raw))
    save(tmp_path / "adapter", config, raw)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "base", local_files_only=True)
    theirs = peft.PeftModel.from_pretrained(theirs, tmp_path / "adapter").eval()
    with torch.no_grad():
        assert torch.allclose(theirs(TOKENS).logits, logits(adapted(config, raw)), atol=1e-5)


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
