"""Logits of the built-in decoder against transformers' own, for each family, from tiny random weights."""

from __future__ import annotations

import json

import pytest
import torch

from trainer.models.pretrained.folder import read, write

transformers = pytest.importorskip("transformers")

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
