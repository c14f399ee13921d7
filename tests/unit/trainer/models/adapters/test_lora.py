"""LoRA: unchanged at first, switched off and merged exactly, and in peft's files both ways."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.fixtures.small_adapters import CONFIGS, GPT2, LLAMA, TOKENS, adapted, base, logits, save
from trainer.models.adapters.lora import (
    LoraConfig,
    adapters_disabled,
    add_lora,
    chosen_modules,
    linear_modules,
    lora_modules,
    merge,
)
from trainer.models.adapters.nf4 import NF4Linear, quantize_linear_layers
from trainer.models.pretrained.folder import Pretrained, write
from trainer.runtime.errors import TrainerError


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


class Router(nn.Linear):
    """As Llama 4's: derived from a linear layer, and returns more than its product."""

    def forward(self, inputs):
        return super().forward(inputs), inputs


def test_layers_that_peft_takes_for_experts_and_routers_are_left_out_of_all():
    layer = nn.Module()
    layer.q_proj, layer.up_proj, layer.router = nn.Linear(4, 4), nn.Linear(4, 4), Router(4, 2)
    model = nn.Module()
    model.layers = nn.ModuleList([layer])
    names = ["layers.0.q_proj", "layers.0.up_proj"]
    wrapped = nn.ModuleDict({"model": model})
    assert chosen_modules(wrapped, ("all",)) == [f"model.{name}" for name in names]
    layer.experts = nn.Module()
    assert chosen_modules(wrapped, ("all",)) == ["model.layers.0.q_proj"]
    assert chosen_modules(wrapped, ("up_proj",)) == ["model.layers.0.up_proj"]
    assert list(linear_modules(wrapped)) == [f"model.{name}" for name in names]


def test_unknown_target_is_refused_with_the_nearest_name():
    with pytest.raises(TrainerError) as caught:
        add_lora(base(), LoraConfig(targets=("q_prj",)), seed=0)
    assert caught.value.code == "RM713"
    assert "q_proj" in caught.value.what


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


class Times(nn.Linear):
    """A product by another line, as Falcon's class of linear layers."""

    def forward(self, inputs):
        found = inputs @ self.weight.T
        return found if self.bias is None else found + self.bias


class InGroups(nn.Linear):
    """A layer made of other things than its sizes."""

    def __init__(self, sizes):
        super().__init__(*sizes)

    def forward(self, inputs):
        return super().forward(inputs)


def test_layer_of_a_class_that_multiplies_alone_is_adapted_whatever_its_device():
    model = nn.Module()
    with torch.device("meta"):
        layer = nn.Module()
        layer.dense, layer.biased, layer.groups = Times(4, 4, bias=False), Times(4, 4), InGroups((4, 4))
        layer.router = Router(4, 2)
    model.h = nn.ModuleList([layer])
    before = torch.get_rng_state()
    assert list(linear_modules(nn.ModuleDict({"model": model}))) == ["model.h.0.dense", "model.h.0.biased"]
    assert torch.equal(torch.get_rng_state(), before)


def test_towers_of_pictures_and_sound_are_left_out_of_all_and_taken_by_name():
    model, paths = nn.Module(), ("language_model", "vision_tower", "visual", "audio_tower")
    for path in paths:
        block = nn.Module()
        block.q_proj = nn.Linear(4, 4)
        part = nn.Module()
        part.layers = nn.ModuleList([block])
        setattr(model, path, part)
    whole = nn.ModuleDict({"model": model})
    assert chosen_modules(whole, ("all",)) == ["model.language_model.layers.0.q_proj"]
    assert len(chosen_modules(whole, ("q_proj",))) == 4


def test_model_without_a_layer_to_adapt_is_refused():
    with pytest.raises(TrainerError, match="RM713") as caught:
        chosen_modules(nn.ModuleDict({"layer": nn.Linear(4, 4)}), ("all",))
    assert "no linear layer" in caught.value.what
