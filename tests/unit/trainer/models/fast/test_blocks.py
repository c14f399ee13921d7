"""Blocks computed in other ways, forced on the CPU, against the plain ones: values and gradients of whole models."""

from __future__ import annotations

import copy

import pytest
import torch

from trainer.models.activation_checkpointing import checkpointed
from trainer.models.adapters.lora import LoraConfig, adapters_disabled, add_lora, lora_modules
from trainer.models.adapters.nf4 import quantize_linear_layers
from trainer.models.decoder.model import Decoder
from trainer.models.fast import choose
from trainer.models.fast.adapted import AdaptedBlock
from trainer.models.fast.compiled import CompiledBlock
from trainer.models.fast.elementwise import PLAIN
from trainer.models.language.model import LanguageModel, PreferenceModel
from trainer.models.pretrained.families import decoder_config

SHAPE = {"vocab_size": 61, "hidden_size": 32, "intermediate_size": 80, "num_hidden_layers": 2}
HEADS = {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 32}
RAW = {
    "llama": {"model_type": "llama", **SHAPE, **HEADS},
    "qwen2": {"model_type": "qwen2", **SHAPE, **HEADS},
    "qwen3": {"model_type": "qwen3", **SHAPE, **HEADS, "head_dim": 8},
    "gemma": {"model_type": "gemma", **SHAPE, **HEADS, "head_dim": 8},
    "biased": {"model_type": "llama", **SHAPE, **HEADS, "attention_bias": True, "mlp_bias": True},
    "gpt2": {
        "model_type": "gpt2",
        "vocab_size": 61,
        "n_positions": 32,
        "n_embd": 32,
        "n_layer": 2,
        "n_head": 4,
        "attn_pdrop": 0.0,
        "resid_pdrop": 0.0,
    },
}
TOKENS = torch.randint(61, (2, 12), generator=torch.Generator().manual_seed(5))
LABELS = TOKENS.roll(-1, 1)


def decoder(family, targets=None, rank=3, dtype=torch.float64, quantized=False):
    model = Decoder(decoder_config(RAW[family]))
    model.initialize(0)
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.1 * torch.randn(weight.shape, generator=generator))
    if quantized:
        names = [name for name, module in model.named_modules() if isinstance(module, torch.nn.Linear)]
        quantize_linear_layers(model, [name for name in names if ".layers." in name])
    if targets:
        add_lora(model, LoraConfig(rank=rank, alpha=8, targets=targets), seed=1)
        for _, module in lora_modules(model):
            torch.nn.init.normal_(module.lora_B, std=0.1, generator=generator)
    return model.to(dtype)


def adapt(model, *, stream=None):
    dtype = next(model.parameters()).dtype
    for block in model.model.layers:
        how = {"dtype": dtype, "stream": stream or dtype, "ops": PLAIN}
        block.fast = AdaptedBlock(block, model.config.feed_forward.activation, **how)
    return model


def learned(model, loss):
    weights = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
    return loss.detach(), dict(zip(weights, torch.autograd.grad(loss, list(weights.values())), strict=True))


def both(plain, fast, *, compute):
    torch.manual_seed(0)
    exact = learned(plain, compute(plain))
    found = learned(fast, compute(fast))
    assert torch.allclose(found[0], exact[0], rtol=1e-12)
    assert found[1].keys() == exact[1].keys()
    assert all(value.abs().max() > 0 for value in exact[1].values())  # an adapter without gradient would prove nothing
    for name, value in exact[1].items():
        assert torch.allclose(found[1][name], value, rtol=1e-9, atol=1e-12), name


def next_token(model):
    return LanguageModel(model)(TOKENS, LABELS)


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3", "gemma", "biased", "gpt2"])
def test_adapted_blocks_of_each_family_equal_plain_ones_in_value_and_gradient(family):
    plain = decoder(family, ("all",))
    both(plain, adapt(copy.deepcopy(plain)), compute=next_token)


@pytest.mark.parametrize("targets", [("q_proj", "v_proj"), ("down_proj",), ("k_proj", "up_proj", "o_proj")])
def test_adapted_blocks_with_some_layers_adapted_equal_plain_ones(targets):
    plain = decoder("llama", targets)
    both(plain, adapt(copy.deepcopy(plain)), compute=next_token)


@pytest.mark.parametrize("rank", [1, 8, 40])
def test_adapted_blocks_of_any_rank_equal_plain_ones(rank):
    plain = decoder("qwen2", ("all",), rank=rank)
    both(plain, adapt(copy.deepcopy(plain)), compute=next_token)


def test_adapted_blocks_over_four_bit_weights_equal_plain_ones():
    plain = decoder("qwen2", ("all",), quantized=True)
    both(plain, adapt(copy.deepcopy(plain)), compute=next_token)


@pytest.mark.parametrize("choice", ["full", "selective"])
def test_adapted_blocks_under_checkpointing_equal_plain_ones(choice):
    plain = decoder("llama", ("all",))
    fast = adapt(copy.deepcopy(plain))
    checkpointed(fast, choice, list(fast.model.layers))
    both(plain, fast, compute=next_token)


def test_adapted_blocks_over_packed_documents_equal_plain_ones():
    documents = torch.tensor([[0] * 5 + [1] * 7, [0] * 9 + [1] * 3])
    positions = torch.tensor([[*range(5), *range(7)], [*range(9), *range(3)]])
    plain = decoder("llama", ("all",))
    both(
        plain,
        adapt(copy.deepcopy(plain)),
        compute=lambda model: LanguageModel(model)(TOKENS, LABELS, positions=positions, documents=documents),
    )


def test_preference_loss_over_adapted_blocks_equals_that_over_plain_ones():
    tokens = torch.randint(61, (3, 2, 10), generator=torch.Generator().manual_seed(6))
    labels, documents = tokens.roll(-1, 2), torch.zeros_like(tokens)
    plain = decoder("llama", ("all",))
    both(
        plain,
        adapt(copy.deepcopy(plain)),
        compute=lambda model: PreferenceModel(model, beta=0.3)(tokens, labels, documents),
    )


def test_adapted_blocks_after_a_step_use_the_new_adapters():
    plain = decoder("llama", ("all",))
    fast = adapt(copy.deepcopy(plain))
    for model in (plain, fast):
        optimizer = torch.optim.SGD([each for each in model.parameters() if each.requires_grad], lr=0.1)
        next_token(model).backward()
        optimizer.step()
    with torch.no_grad():
        assert torch.allclose(next_token(fast), next_token(plain), rtol=1e-12)
        with adapters_disabled(plain), adapters_disabled(fast):
            assert torch.allclose(next_token(fast), next_token(plain), rtol=1e-12)


def test_adapted_blocks_keep_names_and_values_of_the_state_dict():
    plain = decoder("llama", ("all",))
    held = adapt(copy.deepcopy(plain)).state_dict()
    assert held.keys() == plain.state_dict().keys()
    assert all(torch.equal(held[name], value) for name, value in plain.state_dict().items())


def test_adapted_blocks_when_copied_compute_plainly_and_equally():
    fast = adapt(decoder("llama", ("all",)))
    twin = copy.deepcopy(fast)
    assert all(block.fast is None for block in twin.model.layers)
    assert torch.allclose(next_token(twin), next_token(fast), rtol=1e-12)


@pytest.mark.parametrize("family", ["llama", "gpt2", "qwen3"])
def test_compiled_blocks_in_two_parts_equal_plain_ones(family):
    """With a compiler that changes nothing: the two parts and attention between them are the whole block."""
    plain = decoder(family)
    fast = copy.deepcopy(plain)
    shared = CompiledBlock(compile_=lambda function, **how: function)
    for block in fast.model.layers:
        block.fast = shared
    both_trained(plain, fast)


def both_trained(plain, fast):
    exact, found = learned(plain, next_token(plain)), learned(fast, next_token(fast))
    assert torch.equal(found[0], exact[0])
    assert all(torch.equal(found[1][name], value) for name, value in exact[1].items())


def request(**more):
    how = {"rows": 2, "tokens": 16, "dtype": torch.float32, "device": torch.device("cpu")}
    return choose.Request(**(how | more))


def wrapped(model):
    return LanguageModel(model.float())


@pytest.fixture
def quick(monkeypatch):
    """Every way counts as faster than plain, and the compiler is left out."""
    times = iter(2.0**-step for step in range(1000))
    monkeypatch.setattr(choose, "seconds_of", lambda work, device: (work(), next(times))[1])
    monkeypatch.setattr(choose.elementwise, "compiled", lambda **how: PLAIN)
    monkeypatch.setattr(choose.cross_entropy, "candidates", lambda: {"plain": choose_plain})


def choose_plain():
    return choose.cross_entropy.softmax_gradient


def test_use_fast_of_right_blocks_installs_them_and_gives_errors_and_times(quick):
    model = wrapped(decoder("qwen2", ("all",)))
    before = copy.deepcopy(model)
    chosen = choose.use_fast(model, request())
    assert chosen.names()["blocks"] == "adapters folded, compiled elementwise"
    assert all(isinstance(block.fast, AdaptedBlock) for block in model.decoder.model.layers)
    assert torch.allclose(model(TOKENS, LABELS), before(TOKENS, LABELS), rtol=1e-5)
    state = before.state_dict()
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    (plain, folded) = chosen.choices["blocks"].trials
    assert 0 < plain.error < 1e-5 and 0 < folded.error < 1e-5 and folded.seconds < plain.seconds


@pytest.mark.parametrize(
    ("name", "factor"), [("inner_backward", 1.01), ("added_and_normed", 1.01), ("heads", 1.01), ("inner", 1.01)]
)
def test_use_fast_of_a_block_one_percent_wrong_leaves_it_out_with_the_error(quick, monkeypatch, name, factor):
    right = getattr(PLAIN, name)

    def wrong(*values):
        made = right(*values)
        if isinstance(made, tuple):
            return (made[0] * factor, *made[1:])
        return made * factor

    from dataclasses import replace

    broken = replace(PLAIN, **{name: wrong})
    monkeypatch.setattr(choose.elementwise, "compiled", lambda **how: broken)
    monkeypatch.setattr(choose.elementwise, "PLAIN", broken)
    model = wrapped(decoder("qwen2", ("all",)))
    choice = choose.use_fast(model, request()).choices["blocks"]
    assert choice.name == "plain"
    assert "against fp64" in choice.why
    assert all(block.fast is None for block in model.decoder.model.layers)


@pytest.mark.parametrize("wrong", ["up", "down"])
def test_use_fast_of_an_adapter_left_out_of_the_joint_product_is_refused(quick, monkeypatch, wrong):
    right = choose.adapted.Joint.refresh

    def refresh(self):
        right(self)
        getattr(self, wrong).zero_()

    monkeypatch.setattr(choose.adapted.Joint, "refresh", refresh)
    model = wrapped(decoder("qwen2", ("all",)))
    assert choose.use_fast(model, request()).names()["blocks"] == "plain"


def test_use_fast_of_slower_blocks_leaves_them_out(quick, monkeypatch):
    times = iter(range(1, 1000))
    monkeypatch.setattr(choose, "seconds_of", lambda work, device: float(next(times)))
    choice = choose.use_fast(wrapped(decoder("llama", ("all",))), request()).choices["blocks"]
    assert choice.name == "plain"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"dropout": 0.1}, "dropout"),
        ({"trained": True}, "weights other than the adapters' are trained"),
    ],
)
def test_use_fast_of_a_model_it_cannot_compute_names_the_reason(quick, change, words):
    model = decoder("llama", ("all",))
    if "dropout" in change:
        for _, module in lora_modules(model):
            module.dropout = change["dropout"]
    else:
        model.model.layers[1].input_layernorm.weight.requires_grad_(True)
    choice = choose.use_fast(wrapped(model), request()).choices["blocks"]
    assert (choice.name, words in choice.why) == ("plain", True)


def test_use_fast_of_an_unfinished_run_uses_what_it_chose(quick):
    before = {"attention": "math, grouped", "blocks": "plain", "loss": "plain"}
    model = wrapped(decoder("llama", ("all",)))
    assert choose.use_fast(model, request(before=before)).names() == before
    before["blocks"] = "adapters folded, plain elementwise"
    assert choose.use_fast(model, request(before=before)).names() == before


def test_adapted_blocks_in_bf16_are_as_near_to_fp64_as_plain_ones():
    """The gate's own measure, on the CPU: bf16 products and stream, weights rounded beforehand."""
    model = decoder("qwen2", ("all",), dtype=torch.float32)
    choose.hold_frozen_weights_in(model, torch.bfloat16)
    block = model.model.layers[0]
    asked = request(dtype=torch.bfloat16)
    plain = choose._examined(block, None, asked, name="plain")
    block.fast = AdaptedBlock(block, "silu", dtype=torch.bfloat16, stream=torch.bfloat16, ops=PLAIN)
    fast = choose._examined(block, plain, asked, name="fast")
    assert not plain.refused and not fast.refused
    assert 1e-4 < fast.error < 3e-2


def test_held_weights_are_those_that_autocast_would_round_to():
    model = decoder("llama", ("q_proj",), dtype=torch.float32)
    before = copy.deepcopy(model)
    choose.hold_frozen_weights_in(model, torch.bfloat16)
    held, was = dict(model.named_parameters()), dict(before.named_parameters())
    assert held["model.layers.0.mlp.up_proj.weight"].dtype == torch.bfloat16
    assert held["model.layers.0.self_attn.q_proj.lora_A"].dtype == torch.float32
    assert held["model.norm.weight"].dtype == torch.float32
    assert all(torch.equal(held[name], was[name].to(held[name].dtype)) for name in held)
