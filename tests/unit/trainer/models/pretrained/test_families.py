"""Logits of the built-in decoder against transformers' own, for each family, from tiny random weights."""

from __future__ import annotations

import json

import pytest
import torch

from tests.fixtures.later import imported_later
from trainer.models.pretrained import families
from trainer.models.pretrained.folder import read, write
from trainer.runtime.errors import TrainerError

transformers = imported_later("transformers", "transformers is not installed")

SHAPE = {
    "vocab_size": 97,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 100.0,  # the four waves of a head lie in all three ranges: kept, interpolated, stretched
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 16}
GPT2 = {"vocab_size": 97, "n_positions": 64, "n_embd": 32, "n_layer": 3, "n_head": 4}
CASES = {
    "llama2": ("Llama", SHAPE | {"num_key_value_heads": 4}),
    "llama3_grouped_scaled": ("Llama", SHAPE | {"rope_parameters": LLAMA3}),
    "llama_tied_biases_head_dim": (
        "Llama",
        SHAPE | {"tie_word_embeddings": True, "attention_bias": True, "mlp_bias": True, "head_dim": 12},
    ),
    "llama_linear_rope": (
        "Llama",
        SHAPE | {"rope_parameters": {"rope_type": "linear", "rope_theta": 1e4, "factor": 2.0}},
    ),
    "llama_one_kv_head_gelu": ("Llama", SHAPE | {"num_key_value_heads": 1, "hidden_act": "gelu"}),
    "mistral_window": ("Mistral", SHAPE | {"sliding_window": 5}),
    "mistral_no_window_head_dim": ("Mistral", SHAPE | {"sliding_window": None, "head_dim": 16}),
    "qwen2_tied": ("Qwen2", SHAPE | {"tie_word_embeddings": True}),
    "qwen2_yarn": ("Qwen2", SHAPE | {"rope_parameters": YARN}),
    "qwen2_window_in_upper_layers": (
        "Qwen2",
        SHAPE | {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": 2},
    ),
    "qwen3_qk_norm": ("Qwen3", SHAPE | {"head_dim": 16}),
    "qwen3_bias_tied": ("Qwen3", SHAPE | {"head_dim": 8, "attention_bias": True, "tie_word_embeddings": True}),
    "gemma": ("Gemma", SHAPE | {"head_dim": 16}),
    "gpt2": ("GPT2", GPT2),
    "gpt2_untied_inner": ("GPT2", GPT2 | {"tie_word_embeddings": False, "n_inner": 40}),
    "gpt2_scaled_by_layer": ("GPT2", GPT2 | {"scale_attn_by_inverse_layer_idx": True}),
}


def reference(kind, options, seed=0):
    torch.manual_seed(seed)
    config = getattr(transformers, f"{kind}Config")(**options, attn_implementation="eager")
    name = "GPT2LMHeadModel" if kind == "GPT2" else f"{kind}ForCausalLM"
    model = getattr(transformers, name)(config).eval()
    with torch.no_grad():
        for each in model.parameters():  # biases and norms start at 0 and 1, where mistakes stay unseen
            each.add_(0.2 * torch.randn_like(each))
    model.tie_weights()
    return model


@pytest.mark.parametrize("case", CASES)
def test_decoder_for_each_family_gives_the_logits_of_transformers(case, tmp_path):
    model = reference(*CASES[case])
    model.save_pretrained(tmp_path)
    ours = read(tmp_path).model.eval()
    tokens = torch.randint(97, (2, 21), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        expected = model(tokens).logits
        assert torch.allclose(ours(tokens), expected, atol=1e-5, rtol=1e-5), (ours(tokens) - expected).abs().max()


@pytest.mark.parametrize("case", CASES)
def test_written_folder_for_each_family_loads_in_transformers_with_the_same_logits(case, tmp_path):
    model = reference(*CASES[case])
    model.save_pretrained(tmp_path / "a")
    write(tmp_path / "b", read(tmp_path / "a"), shard_bytes=20_000)
    assert (tmp_path / "b" / "model.safetensors.index.json").is_file()
    again = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "b", local_files_only=True).eval()
    tokens = torch.randint(97, (2, 9), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        assert torch.allclose(again(tokens).logits, model(tokens).logits, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("case", ["llama3_grouped_scaled", "mistral_window", "gpt2", "qwen3_qk_norm"])
def test_padding_on_either_side_gives_the_logits_of_transformers(case, tmp_path):
    model = reference(*CASES[case])
    model.save_pretrained(tmp_path)
    ours = read(tmp_path).model.eval()
    tokens = torch.randint(97, (2, 11), generator=torch.Generator().manual_seed(2))
    there = torch.ones(2, 11, dtype=torch.long)
    there[0, :4] = 0
    there[1, 8:] = 0
    positions = (there.cumsum(1) - 1).clamp_min(0)
    documents = torch.where(there.bool(), 0, -1)
    with torch.no_grad():
        expected = model(tokens, attention_mask=there, position_ids=positions).logits
        given = ours(tokens, positions=positions, documents=documents)
    seen = there.bool()
    assert torch.allclose(given[seen], expected[seen], atol=1e-5, rtol=1e-5)
    assert given.isfinite().all()


@pytest.mark.parametrize("case", ["llama3_grouped_scaled", "mistral_window", "gpt2", "gemma"])
def test_cache_token_by_token_gives_the_logits_of_one_pass(case, tmp_path):
    reference(*CASES[case]).save_pretrained(tmp_path)
    ours = read(tmp_path).model.eval()
    tokens = torch.randint(97, (2, 12), generator=torch.Generator().manual_seed(3))
    cache = ours.new_cache()
    with torch.no_grad():
        whole = ours(tokens)
        parts = [ours(piece, cache=cache) for piece in tokens.split([5, 1, 1, 3, 2], dim=1)]
    assert torch.allclose(torch.cat(parts, dim=1), whole, atol=1e-5, rtol=1e-5)


def test_old_style_config_with_rope_scaling_gives_the_logits_of_transformers(tmp_path):
    model = reference(*CASES["llama3_grouped_scaled"])
    model.save_pretrained(tmp_path)
    raw = json.loads((tmp_path / "config.json").read_text())
    old = raw.pop("rope_parameters")
    theta = old.pop("rope_theta")
    (tmp_path / "config.json").write_text(json.dumps(raw | {"rope_theta": theta, "rope_scaling": old}))
    tokens = torch.arange(40).reshape(1, 40)
    with torch.no_grad():
        assert torch.allclose(read(tmp_path).model(tokens), model(tokens).logits, atol=1e-5, rtol=1e-5)


LLAMA = SHAPE | {"model_type": "llama"}


def refused(**changes):
    with pytest.raises(TrainerError) as caught:
        families.decoder_config(LLAMA | changes)
    return caught.value.code, caught.value.what


@pytest.mark.parametrize("family", ["bert", "Llama", "", None])
def test_other_family_is_refused_with_those_that_are_built_in(family):
    code, what = refused(model_type=family)
    assert (code, repr(family) in what) == ("RM701", True)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"quantization_config": {"bits": 4}}, "quantization_config"),
        ({"hidden_act": "nothing"}, "hidden_act"),
        ({"rope_scaling": {"type": "dynamic"}}, "rope_type = 'dynamic'"),
        ({"rope_scaling": {"type": "linear"}}, "'linear' has no factor"),
        ({"rope_parameters": {"rope_type": "llama3", "rope_theta": 1e4}}, "'llama3' has no factor"),
        ({"rope_theta": 0}, "rope_theta = 0"),
        ({"rope_parameters": {"rope_theta": -1.0}}, "rope_theta = -1.0"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor"),
        ({"num_hidden_layers": 0}, "num_hidden_layers = 0"),
        ({"num_hidden_layers": families.MOST_LAYERS + 1}, "num_hidden_layers"),
        ({"num_attention_heads": 5, "num_key_value_heads": 2, "head_dim": 8}, "5 attention heads cannot share 2"),
        ({"vocab_size": 0}, "vocabulary: 0"),
        ({"vocab_size": families.MOST_SIZE + 1}, "vocabulary"),
        ({"hidden_size": "wide"}, "hidden_size = 'wide' is no whole number"),
        ({"head_dim": 7}, "even width of a head, not 7"),
        ({"num_attention_heads": 0}, "num_attention_heads = 0 is no whole number"),
    ],
)
def test_value_that_is_not_implemented_is_named(changes, words):
    code, what = refused(**changes)
    assert (code, words in what) == ("RM707", True), what


@pytest.mark.parametrize("missing", ["vocab_size", "hidden_size", "num_attention_heads", "intermediate_size"])
def test_value_that_is_missing_is_named(missing):
    with pytest.raises(TrainerError, match="RM707") as caught:
        families.decoder_config({key: value for key, value in LLAMA.items() if key != missing})
    assert f"lacks {missing!r}" in caught.value.what


@pytest.mark.parametrize("changes", [{"num_hidden_layers": families.MOST_LAYERS}, {"vocab_size": families.MOST_SIZE}])
def test_largest_sizes_are_taken(changes):
    families.decoder_config(LLAMA | changes)


QWEN = SHAPE | {"model_type": "qwen2", "use_sliding_window": True, "sliding_window": 4}


@pytest.mark.parametrize(
    ("changes", "windows"),
    [
        ({"max_window_layers": 1}, (None, 4, 4)),
        ({"max_window_layers": 3}, (None, None, None)),
        ({"max_window_layers": 0}, (4, 4, 4)),
        ({}, (None, None, None)),
        ({"use_sliding_window": False, "max_window_layers": 0}, (None, None, None)),
        ({"sliding_window": None, "max_window_layers": 0}, (None, None, None)),
        ({"layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}, (4, None, 4)),
    ],
)
def test_windows_of_qwen_are_those_of_its_upper_or_named_layers(changes, windows):
    assert families.decoder_config(QWEN | changes).windows == windows


@pytest.mark.parametrize("kinds", [["full_attention"] * 2, ["full_attention"] * 4, ["full_attention", "linear", "x"]])
def test_kinds_of_layers_that_do_not_fit_are_refused(kinds):
    with pytest.raises(TrainerError, match="RM707"):
        families.decoder_config(QWEN | {"layer_types": kinds})


@pytest.mark.parametrize(
    ("family", "parameter", "name", "transposed"),
    [
        ("llama", "model.layers.1.mlp.up_proj.weight", "model.layers.1.mlp.up_proj.weight", False),
        ("gpt2", "model.layers.11.self_attn.qkv_proj.weight", "transformer.h.11.attn.c_attn.weight", True),
        ("gpt2", "model.layers.0.mlp.down_proj.bias", "transformer.h.0.mlp.c_proj.bias", False),
        ("gpt2", "model.norm.weight", "transformer.ln_f.weight", False),
        ("gpt2", "model.embed_positions.weight", "transformer.wpe.weight", False),
        ("gpt2", "lm_head.weight", "lm_head.weight", False),
    ],
)
def test_parameter_has_the_name_that_files_give_it(family, parameter, name, transposed):
    assert families.file_tensor(family, parameter) == (name, transposed)


@pytest.mark.parametrize(
    ("family", "name", "ignored"),
    [
        ("gpt2", "transformer.h.0.attn.bias", True),
        ("gpt2", "transformer.h.0.attn.masked_bias", True),
        ("gpt2", "transformer.h.0.attn.c_attn.bias", False),
        ("llama", "model.layers.0.self_attn.rotary_emb.inv_freq", True),
        ("llama", "model.layers.0.attn.bias", False),
    ],
)
def test_constant_of_older_files_is_no_weight(family, name, ignored):
    assert families.is_ignored(family, name) is ignored
