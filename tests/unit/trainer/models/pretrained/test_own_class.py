"""Families that only transformers has: the same logits, trained, adapted and used through the same commands."""

from __future__ import annotations

import io
import json
import sys
from contextlib import redirect_stdout

import pytest
import torch

from tests.fixtures.later import imported_later
from trainer.analysis.language.loading import load
from trainer.cli import main
from trainer.data.tokens.labels import PADDING
from trainer.data.tokens.tokenizer import ByteTokenizer
from trainer.models.adapters.lora import LoraConfig, add_lora, lora_modules
from trainer.models.language.model import LanguageModel, PreferenceModel
from trainer.models.pretrained import own_class
from trainer.models.pretrained.folder import read
from trainer.runtime.errors import TrainerError
from trainer.tasks.language.network import lora_of

transformers = imported_later("transformers", "transformers is not installed")
SHAPE = {
    "vocab_size": 320,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}
CONFIGS = {
    "gpt_neox": lambda: transformers.GPTNeoXConfig(**SHAPE),  # names of its own, biases, rotary on a part of a head
    "cohere": lambda: transformers.CohereConfig(**SHAPE, num_key_value_heads=2),  # a scale on its logits
    "gemma2": lambda: transformers.Gemma2Config(**SHAPE, num_key_value_heads=2, head_dim=8, sliding_window=16),
}


@pytest.fixture
def made(tmp_path):
    def write(family):
        torch.manual_seed(0)
        model = transformers.AutoModelForCausalLM.from_config(CONFIGS[family]())
        model.save_pretrained(tmp_path / family)
        for name, content in ByteTokenizer().files().items():
            (tmp_path / family / name).write_bytes(content)
        return tmp_path / family

    return write


def theirs(folder):
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


@pytest.mark.parametrize("family", CONFIGS)
def test_model_by_its_own_class_has_its_logits_and_losses_with_rows_filled_up(made, family):
    folder = made(family)
    decoder = read(folder, dtype=torch.float32).model.eval()
    tokens = torch.randint(256, (2, 12), generator=torch.Generator().manual_seed(1))
    documents = torch.zeros(2, 12, dtype=torch.long)
    documents[1, 8:] = PADDING
    labels = tokens.roll(-1, 1).masked_fill(documents == PADDING, -100)
    with torch.no_grad():
        logits = theirs(folder)(tokens, attention_mask=(documents == 0).long()).logits
        assert torch.allclose(decoder(tokens, documents=documents)[0], logits[0], atol=1e-6)
        exact = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum")
        found = LanguageModel(decoder, drop_ignored=True)(tokens, labels, documents=documents)
    assert found.item() == pytest.approx(exact.item(), rel=1e-6)
    assert decoder.plain_head is (family == "gpt_neox")
    assert len(decoder.blocks) == 2


@pytest.mark.parametrize("family", ["gpt_neox", "cohere"])
def test_preference_loss_of_an_adapter_at_its_beginning_is_that_of_the_reference(made, family):
    from trainer.config.sections.decoder import AdapterConfig

    decoder = read(made(family), dtype=torch.float32).model
    add_lora(decoder, lora_of(AdapterConfig(adapter="lora", lora_rank=2)), seed=0)
    assert len(list(lora_modules(decoder))) >= 8
    tokens = torch.randint(256, (3, 2, 10), generator=torch.Generator().manual_seed(1))
    loss = PreferenceModel(decoder, beta=0.1)(tokens, tokens.roll(-1, 2), torch.zeros_like(tokens))
    assert loss.item() == pytest.approx(3 * 0.6931472, rel=1e-5)
    loss.backward()
    assert all(module.lora_B.grad.abs().sum() > 0 for _, module in lora_modules(decoder))


def ran(*words):
    with redirect_stdout(io.StringIO()) as out:
        code = main([str(word) for word in words])
    return code, [json.loads(line) for line in out.getvalue().splitlines()]


@pytest.mark.parametrize("adapter", ["none", "qlora"])
def test_model_by_its_own_class_is_trained_and_used_through_the_same_commands(made, tmp_path, adapter, capsys):
    rows = [
        {"messages": [{"role": "user", "content": f"{n}?"}, {"role": "assistant", "content": "yes"}]} for n in range(12)
    ]
    (tmp_path / "chat.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    base = made("gpt_neox")
    flags = ["--data", tmp_path / "chat.jsonl", "--sequence", "64", "--batch-size", "4", "--max-steps", "8"]
    flags += ["--adapter", adapter, "--learning-rate", "1e-2", "--activation-checkpointing", "full"]
    code, _ = ran("train", "--task", "lm", "--model", base, *flags, "--output", tmp_path, "--run", "tuned")
    assert code == 0
    assert "not packed" in capsys.readouterr().err
    record = json.loads((tmp_path / "tuned" / "metadata.json").read_text())
    assert record["language"]["train_sequences"] == 11  # one of 12 rows is held out
    loaded = load(tmp_path / "tuned")
    with torch.no_grad():
        before = theirs(base)(torch.arange(60, 72)[None]).logits
        after = loaded.made.model(torch.arange(60, 72)[None])
    assert (after - before).abs().max() > 1e-3
    if adapter == "none":
        assert torch.equal(theirs(tmp_path / "tuned")(torch.arange(60, 72)[None]).logits, after)
        return
    peft = imported_later("peft", "peft is not installed")
    peft.PeftModel.from_pretrained(theirs(base), tmp_path / "tuned")
    assert ran("merge", "--model", tmp_path / "tuned", "--output", tmp_path / "merged")[0] == 0
    (one, two) = (ran("generate", "--model", tmp_path / name, "--prompt", "5?", "--most", "4", "--temperature", "0")
                  for name in ("tuned", "merged"))  # fmt: skip
    assert one[1][-1]["text"] == two[1][-1]["text"]


def test_cached_generation_by_its_own_class_equals_one_pass_per_token(made):
    decoder = read(made("gpt_neox")).model.eval()
    cache, tokens = decoder.new_cache(), torch.arange(60, 66)[None]
    with torch.no_grad():
        stepped = [decoder.next_logits(tokens[:, :4], cache), decoder.next_logits(tokens[:, 4:5], cache)]
        whole = decoder(tokens[:, :5])[0]
    assert torch.allclose(torch.stack(stepped), whole[3:], atol=1e-5)


def test_weights_that_are_missing_or_unknown_are_refused_and_not_drawn(made):
    from safetensors.torch import load_file, save_file

    folder = made("gpt_neox")
    weights = load_file(folder / "model.safetensors")
    for change in ({"gpt_neox.final_layer_norm.weight": None}, {"more.weight": torch.ones(2)}):
        kept = {name: value for name, value in {**weights, **change}.items() if value is not None}
        save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
        with pytest.raises(TrainerError, match=next(iter(change)).replace(".", r"\.")) as caught:
            read(folder)
        assert caught.value.code == "RM703"


def test_family_without_transformers_or_that_it_does_not_have_is_refused(made, monkeypatch):
    folder = made("gpt_neox")
    with pytest.raises(TrainerError, match="RM701") as caught:
        own_class.made({"model_type": "no-such-family", "auto_map": {"AutoConfig": "their.Config"}})
    assert len(caught.value.what) < 200 and "no-such-family" in caught.value.what
    assert "none of a folder is run" in caught.value.why
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(TrainerError) as caught:
        read(folder)
    assert (caught.value.code, "not installed" in caught.value.why) == ("RM701", True)


ROPES = {
    "dynamic": {"rope_type": "dynamic", "factor": 4.0},
    "longrope": {
        **{"rope_type": "longrope", "factor": 4.0, "original_max_position_embeddings": 8},
        **{"short_factor": [1.0, 1.5, 2.0, 3.0], "long_factor": [2.0, 3.0, 4.0, 6.0]},
    },
    "part of a head": {"rope_type": "default", "partial_rotary_factor": 0.5},
}


@pytest.mark.parametrize("rope", ROPES)
def test_positions_of_llama_that_are_not_built_in_are_computed_by_its_own_class(tmp_path, rope, monkeypatch):
    rope_parameters = {"rope_theta": 10000.0, **ROPES[rope]}
    config = transformers.LlamaConfig(**SHAPE, max_position_embeddings=16, rope_parameters=rope_parameters)
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path)
    tokens = torch.randint(256, (1, 40), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        assert torch.allclose(read(tmp_path).model(tokens), theirs(tmp_path)(tokens).logits, atol=1e-6)
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(TrainerError, match="Install transformers") as caught:
        read(tmp_path)
    assert caught.value.code == "RM707"


def test_config_with_infinity_as_transformers_writes_it_makes_the_model(tmp_path):
    config = transformers.FalconH1Config(
        **SHAPE, num_key_value_heads=2, mamba_d_ssm=32, mamba_n_heads=4, mamba_d_head=8
    )
    config.save_pretrained(tmp_path)
    raw = json.loads((tmp_path / "config.json").read_text())
    assert raw["time_step_limit"][1] == {"__float__": "Infinity"}
    assert own_class.made(raw).causal.config.time_step_limit[1] == float("inf")


def test_pickled_weights_of_another_family_are_not_opened(made):
    folder = made("gpt_neox")
    (folder / "model.safetensors").unlink()
    torch.save({}, folder / "pytorch_model.bin")
    with pytest.raises(TrainerError, match="RM70"):
        read(folder)


def test_adapter_of_mamba_is_refused_as_its_kernels_read_weights_themselves(tmp_path, capsys):
    config = transformers.MambaConfig(vocab_size=320, hidden_size=32, num_hidden_layers=1, state_size=4)
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path / "mamba")
    for name, content in ByteTokenizer().files().items():
        (tmp_path / "mamba" / name).write_bytes(content)
    (tmp_path / "a.txt").write_text("a text " * 99)
    flags = ["--model", tmp_path / "mamba", "--data", tmp_path / "a.txt", "--sequence", "32", "--output", tmp_path]
    assert ran("train", "--task", "lm", *flags, "--adapter", "lora")[0] == 2
    assert "RM713" in capsys.readouterr().err


@pytest.mark.parametrize(("is_decoder", "code"), [(False, "RM701"), (True, "")])
def test_class_in_which_tokens_see_later_ones_is_refused(tmp_path, is_decoder, code):
    torch.manual_seed(0)
    config = transformers.BertConfig(**SHAPE, max_position_embeddings=32, is_decoder=is_decoder)
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path)
    if code:
        with pytest.raises(TrainerError, match=code) as caught:
            read(tmp_path)
        assert "is_decoder" in caught.value.next
    else:
        with pytest.raises(TrainerError, match="RM713"):  # its layers are called otherwise than blocks are
            add_lora(read(tmp_path).model, LoraConfig(rank=2), seed=0)


def test_weight_of_a_class_that_is_not_finite_is_refused_with_its_name(made):
    from safetensors.torch import load_file, save_file

    folder = made("gpt_neox")
    weights = load_file(folder / "model.safetensors")
    name = "gpt_neox.layers.0.mlp.dense_h_to_4h.weight"
    weights[name][0, 0] = float("nan")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(TrainerError, match="RM702") as caught:
        read(folder)
    assert name in caught.value.what


@pytest.mark.parametrize("family", ["qwen2", "no-such-family"])
def test_quantised_weights_are_refused_with_the_way_to_4_bits(tmp_path, family):
    """The class of transformers took them for dense ones, and the first step ended in an assertion of bitsandbytes."""
    raw = {"model_type": family, "quantization_config": {"quant_method": "gptq", "bits": 4}}
    for make in (own_class.made, lambda raw: own_class.read(tmp_path, raw, None)):
        with pytest.raises(TrainerError, match="RM707") as caught:
            make(raw)
        assert "gptq" in caught.value.what and "--adapter qlora" in caught.value.next


@pytest.mark.parametrize(
    ("raw", "positions"),
    [
        ({"model_type": "opt", "ffn_dim": 48, "max_position_embeddings": 40}, 40),  # its table has two rows more
        ({"model_type": "gpt_bigcode", "n_positions": 24, "n_embd": 32, "n_layer": 1, "n_head": 2}, 24),
        ({"model_type": "gpt_neox", "max_position_embeddings": 40}, None),
    ],
)
def test_table_of_positions_of_a_class_is_found(raw, positions):
    assert own_class.made(SHAPE | raw).config.positions == positions


def test_table_of_positions_of_pictures_is_none_of_the_text():
    """Gemma 3 from 4B on: its text has rotary positions, and its tower learned ones of patches."""
    text = {**SHAPE, "num_key_value_heads": 2, "head_dim": 8}
    vision = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    raw = {
        "text_config": text,
        "vision_config": {**vision, "image_size": 28, "patch_size": 14, "vision_use_head": False},
    }
    assert own_class.made({"model_type": "gemma3", "mm_tokens_per_image": 4, **raw}).config.positions is None
