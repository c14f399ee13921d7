"""A trained model used: loaded, measured, generated with, merged and exported."""

from __future__ import annotations

import json
import math

import pytest
import torch

from trainer.analysis.language import command
from trainer.analysis.language.evaluation import evaluate
from trainer.analysis.language.generation import Sampling, answer, draw, generate
from trainer.analysis.language.gguf_file import export, interleaved
from trainer.analysis.language.loading import load
from trainer.cli import main
from trainer.data.tokens.tokenizer import ByteTokenizer
from trainer.models.adapters import peft_format
from trainer.models.adapters.lora import LoraConfig, add_lora, lora_modules
from trainer.models.decoder.model import Decoder
from trainer.models.pretrained.families import decoder_config
from trainer.models.pretrained.folder import Pretrained, read, write
from trainer.runtime.errors import TrainerError

TOKENIZER = ByteTokenizer()
SHAPE = {
    "vocab_size": 320,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "head_dim": 8,
}
RAWS = {
    "llama": SHAPE | {"model_type": "llama"},
    "qwen2": SHAPE | {"model_type": "qwen2", "tie_word_embeddings": True},
    "qwen3": SHAPE | {"model_type": "qwen3", "head_dim": 128},  # what transformers assumes of a GGUF file,
    "gpt2": {"model_type": "gpt2", "vocab_size": 320, "n_positions": 24, "n_embd": 32, "n_layer": 1, "n_head": 2},
}


def folder_of(path, raw):
    model = Decoder(decoder_config(raw))
    model.initialize(0)
    with torch.no_grad():
        for each in model.parameters():
            each.add_(0.1 * torch.randn(each.shape, generator=torch.Generator().manual_seed(each.numel())))
    write(path, Pretrained(model=model, raw=raw, generation={"eos_token_id": [256, 258]}))
    for name, content in TOKENIZER.files().items():
        (path / name).write_bytes(content)
    return path


@pytest.fixture
def base(tmp_path):
    return folder_of(tmp_path / "base", RAWS["llama"])


@pytest.fixture
def adapter(tmp_path, base):
    model, config = read(base).model, LoraConfig(rank=2)
    add_lora(model, config, seed=0)
    with torch.no_grad():
        for _, module in lora_modules(model):
            module.lora_B.normal_(std=0.5, generator=torch.Generator().manual_seed(1))
    (tmp_path / "adapter").mkdir()
    for name, content in peft_format.files(model, config, family="llama", base=str(base)).items():
        (tmp_path / "adapter" / name).write_bytes(content)
    return tmp_path / "adapter"


def said(capsys):
    out = capsys.readouterr()
    lines = (out.out + out.err).splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


def test_greedy_generation_with_the_cache_equals_one_pass_per_token(base):
    model = load(base).made.model
    tokens = prompt = list(b"Hello")
    given = list(generate(model, prompt, (), Sampling(most=12, temperature=0)))
    for _ in range(12):
        tokens = [*tokens, int(model(torch.tensor([tokens]))[0, -1].argmax())]
    assert given == tokens[5:]


def test_generation_ends_at_a_stop_token_and_draws_by_the_seed(base):
    loaded = load(base)
    long = list(generate(loaded.made.model, [72], (), Sampling(most=30, seed=3)))
    assert long == list(generate(loaded.made.model, [72], (), Sampling(most=30, seed=3)))
    assert long != list(generate(loaded.made.model, [72], (), Sampling(most=30, seed=4)))
    stopped = list(generate(loaded.made.model, [72], (long[5],), Sampling(most=30, seed=3)))
    assert stopped == long[: long.index(long[5])]


def test_draw_of_the_top_k_never_takes_another():
    logits, generator = torch.tensor([0.0, 5.0, 4.9, 1.0]), torch.Generator().manual_seed(0)
    drawn = {draw(logits, Sampling(temperature=100, top_k=2), generator) for _ in range(100)}
    assert drawn == {1, 2}


def test_generation_within_learned_positions_ends_at_the_table(tmp_path):
    loaded = load(folder_of(tmp_path / "gpt2", RAWS["gpt2"]))
    assert len(list(generate(loaded.made.model, [1] * 20, (), Sampling(most=100)))) == 4
    with pytest.raises(TrainerError) as caught:
        answer(loaded, "x" * 24, Sampling())
    assert caught.value.code == "RM711"


def test_empty_prompt_is_refused(base):
    with pytest.raises(TrainerError):
        answer(load(base), "", Sampling())


@pytest.mark.parametrize("sequence", [7, 64])
def test_evaluation_predicts_each_token_once(base, tmp_path, sequence):
    (tmp_path / "text.txt").write_text("Grüße und noch ein Satz. " * 3, encoding="utf-8")
    loaded = load(base)
    figures = evaluate(loaded, tmp_path / "text.txt", sequence=sequence)
    ids = [*(tmp_path / "text.txt").read_bytes(), 256]
    total = 0.0
    for begin in range(0, len(ids) - 1, sequence):
        window = torch.tensor(ids[begin : begin + sequence + 1])
        logits = loaded.made.model(window[None, :-1])[0]
        total += torch.nn.functional.cross_entropy(logits, window[1:], reduction="sum").item()
    assert figures["tokens"] == len(ids) - 1
    assert figures["loss"] == pytest.approx(total / (len(ids) - 1), rel=1e-5)
    assert figures["bits_per_byte"] == pytest.approx(total / math.log(2) / (len(ids) - 1), rel=1e-5)


def test_commands_show_base_and_tuned_side_by_side(adapter, tmp_path, capsys):
    (tmp_path / "text.txt").write_text("some text " * 5)
    command.evaluate(model=adapter, data=tmp_path / "text.txt")
    command.generate(model=adapter, prompt="Hi", most=8, temperature=0)
    command.chat(model=adapter, lines=["Hi\n", "\n", "And?\n"], most=8, temperature=0)
    events = said(capsys)
    assert [event["model"] for event in events] == ["base", "tuned"] * 4
    assert events[0]["loss"] != events[1]["loss"]
    assert events[2]["text"] != events[3]["text"]


def test_merged_folder_gives_the_logits_of_the_adapter(adapter, tmp_path, capsys):
    command.merge(model=adapter, output=tmp_path / "merged")
    (event,) = said(capsys)
    assert event["largest_difference"] < 1e-4
    tokens = torch.arange(20).reshape(1, 20)
    with torch.no_grad():
        merged, adapted = load(tmp_path / "merged").made.model(tokens), load(adapter).made.model(tokens)
    assert torch.allclose(merged, adapted, atol=1e-5)
    for name in ("tokenizer.json", "chat_template.jinja", "generation_config.json"):
        assert (tmp_path / "merged" / name).is_file()


def test_merge_without_adapter_or_onto_a_folder_is_refused(base, adapter, tmp_path):
    for folder, output in ((base, tmp_path / "new"), (adapter, base)):
        with pytest.raises(TrainerError) as caught:
            command.merge(model=folder, output=output)
        assert caught.value.code == "RM500"


def test_merge_that_changes_the_logits_is_refused(adapter, tmp_path, monkeypatch):
    from trainer.models.adapters.lora import LoraLinear

    true = LoraLinear.merged
    monkeypatch.setattr(LoraLinear, "merged", lambda self: true(self) * 1.01)
    with pytest.raises(TrainerError) as caught:
        command.merge(model=adapter, output=tmp_path / "merged")
    assert caught.value.code == "RM718"
    assert not (tmp_path / "merged").exists()


def test_adapter_whose_base_is_gone_names_it(adapter, base, tmp_path):
    base.rename(tmp_path / "moved")
    with pytest.raises(TrainerError) as caught:
        load(adapter)
    assert caught.value.code == "RM712"
    assert load(adapter, base=tmp_path / "moved").adapted


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
@pytest.mark.parametrize(("kind", "near"), [("f16", 2e-2), ("q8_0", 0.1)])
def test_gguf_file_read_by_transformers_gives_the_logits(tmp_path, family, kind, near):
    transformers, _ = pytest.importorskip("transformers"), pytest.importorskip("gguf")
    loaded = load(folder_of(tmp_path / family, RAWS[family]))
    figures = export(loaded, tmp_path / "model.gguf", kind=kind)
    assert figures["largest_error"] < 5e-3
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, gguf_file="model.gguf", local_files_only=True)
    tokens = torch.arange(30).reshape(1, 30)
    with torch.no_grad():
        expected = loaded.made.model(tokens)
        assert (theirs(tokens).logits - expected).abs().max() < near
    assert expected.abs().max() > 10 * near


def test_gguf_file_holds_tokens_stop_and_template(base, tmp_path):
    gguf = pytest.importorskip("gguf")
    export(load(base), tmp_path / "model.gguf", kind="q8_0")
    fields = gguf.GGUFReader(tmp_path / "model.gguf").fields
    assert fields["tokenizer.ggml.eos_token_id"].contents() == 256
    assert len(fields["tokenizer.ggml.tokens"].contents()) == 320
    assert "im_start" in fields["tokenizer.chat_template"].contents()


def test_gguf_of_another_family_is_refused(tmp_path):
    pytest.importorskip("gguf")
    with pytest.raises(TrainerError) as caught:
        export(load(folder_of(tmp_path / "gpt2", RAWS["gpt2"])), tmp_path / "model.gguf", kind="f16")
    assert caught.value.code == "RM707"


def test_interleaving_puts_halves_next_to_each_other():
    import numpy as np

    assert interleaved(np.arange(8)[:, None], 2)[:, 0].tolist() == [0, 2, 1, 3, 4, 6, 5, 7]


def test_command_line_merges_generates_and_names_an_unknown_flag(adapter, tmp_path, capsys):
    merged = tmp_path / "merged"
    assert main(["merge", "--model", str(adapter), "--output", str(merged)]) == 0
    assert main(["generate", "--model", str(merged), "--prompt", "Hi", "--most", "3", "--top-k", "1"]) == 0
    assert [event["event"] for event in said(capsys)] == ["merged", "generated"]
    assert main(["evaluate", "--model", str(merged), "--data", "none.txt"]) == 2
    assert "RM717" in capsys.readouterr().err
    assert main(["chat", "--model", str(merged), "--temprature", "1"]) == 2
    assert "--temperature" in capsys.readouterr().err
