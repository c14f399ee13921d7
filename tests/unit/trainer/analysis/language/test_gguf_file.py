"""A trained model exported as GGUF and read back."""

from __future__ import annotations

import json

import pytest
import torch

from tests.fixtures.decoders import RAWS, SHAPE, folder_of
from tests.fixtures.file_tokenizers import byte_level, sentencepiece
from trainer.analysis.language.gguf_file import export, interleaved, split_of
from trainer.analysis.language.loading import load
from trainer.models.decoder.rope import frequencies
from trainer.runtime.errors import TrainerError


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
    assert fields["tokenizer.ggml.merges"].contents() == ["ÿ ÿ"]  # llama.cpp loads no file without merges


def test_gguf_of_another_family_is_refused(tmp_path):
    pytest.importorskip("gguf")
    with pytest.raises(TrainerError) as caught:
        export(load(folder_of(tmp_path / "gpt2", RAWS["gpt2"])), tmp_path / "model.gguf", kind="f16")
    assert caught.value.code == "RM707"


def test_windows_in_some_layers_and_a_network_by_its_own_class_are_refused(tmp_path):
    pytest.importorskip("gguf")
    windows = {"use_sliding_window": True, "sliding_window": 16, "max_window_layers": 1, "model_type": "qwen2"}
    rope = {"rope_parameters": {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10000.0}, "model_type": "llama"}
    folder_of(tmp_path / "windows", SHAPE | windows)
    with pytest.raises(TrainerError, match="windows of attention") as caught:
        export(load(tmp_path / "windows"), tmp_path / "a.gguf", kind="f16")
    assert caught.value.code == "RM707"
    pytest.importorskip("transformers")
    folder = folder_of(tmp_path / "dynamic", SHAPE | {"model_type": "llama"})
    (folder / "config.json").write_text(json.dumps(json.loads((folder / "config.json").read_text()) | rope))
    with pytest.raises(TrainerError, match="'dynamic' is not built in"):
        export(load(folder), tmp_path / "b.gguf", kind="f16")


def test_interleaving_puts_halves_next_to_each_other():
    import numpy as np

    assert interleaved(np.arange(8)[:, None], 2)[:, 0].tolist() == [0, 2, 1, 3, 4, 6, 5, 7]


LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}


def exported(tmp_path, raw, tokenizer=None):
    gguf = pytest.importorskip("gguf")
    folder = folder_of(tmp_path / "model", raw)
    if tokenizer is not None:
        for path in folder.glob("*token*"):
            path.unlink()
        tokenizer(folder)
    loaded = load(folder)
    export(loaded, tmp_path / "model.gguf", kind="q8_0")
    return loaded, gguf.GGUFReader(tmp_path / "model.gguf")


@pytest.mark.parametrize("family", ["llama", "mistral"])
def test_rope_scaling_of_llama_3_becomes_the_factors_that_divide_its_frequencies(tmp_path, family):
    scaled = {**LLAMA3, "original_max_position_embeddings": 32, "rope_theta": 10000.0}
    raw = RAWS["llama"] | {"model_type": family, "head_dim": 32, "rope_parameters": scaled}
    loaded, reader = exported(tmp_path, raw)
    (tensor,) = [each for each in reader.tensors if each.name == "rope_freqs.weight"]
    plain = 1.0 / 10000.0 ** (torch.arange(0, 32, 2) / 32)
    factors = torch.tensor(tensor.data.tolist())
    assert torch.allclose(plain / factors, frequencies(loaded.made.model.config.rope, 32), rtol=1e-6)
    assert factors.min() == 1.0 and factors.max() == 8.0


def test_rope_scaling_yarn_has_its_numbers_and_others_than_the_usual_are_refused(tmp_path):
    _, reader = exported(tmp_path, RAWS["qwen2"] | {"rope_parameters": YARN})
    fields = {name.partition(".")[2]: field.contents() for name, field in reader.fields.items() if "rope" in name}
    assert fields["rope.scaling.type"] == "yarn"
    assert (fields["rope.scaling.factor"], fields["rope.scaling.original_context_length"]) == (4.0, 16)
    for number, change in enumerate(({"beta_fast": 16}, {"attention_factor": 2.0}, {"truncate": False})):
        with pytest.raises(TrainerError, match="RM707"):
            exported(tmp_path / str(number), RAWS["qwen2"] | {"rope_parameters": {**YARN, **change}})


@pytest.mark.parametrize(("begin", "name"), [(True, "llama-bpe"), (False, "gpt-2")])
def test_tokenizer_of_a_folder_is_named_by_how_it_splits_text_and_its_begin_is_written(tmp_path, begin, name):
    words = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    pattern = words + r"|\s*[\r\n]+|\s+(?!\S)|\s+"  # of Llama 3's tokenizer.json

    def put(folder):
        byte_level(folder, begin=begin)
        if begin:
            content = json.loads((folder / "tokenizer.json").read_text())
            split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
            steps = [split, content["pre_tokenizer"] | {"use_regex": False}]
            content["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": steps}
            (folder / "tokenizer.json").write_text(json.dumps(content))

    loaded, reader = exported(tmp_path, RAWS["llama"], put)
    assert reader.fields["tokenizer.ggml.pre"].contents() == name
    assert reader.fields["tokenizer.ggml.add_bos_token"].contents() is begin
    if begin:
        assert reader.fields["tokenizer.ggml.bos_token_id"].contents() == loaded.tokenizer.begins[0]


@pytest.mark.parametrize(
    "steps",
    [
        [{"type": "Split", "pattern": {"Regex": "another"}}, {"type": "ByteLevel", "use_regex": False}],
        [{"type": "ByteLevel", "use_regex": False}],
        [{"type": "Digits", "individual_digits": False}, {"type": "ByteLevel", "use_regex": True}],
        [{"type": "Metaspace"}],
    ],
)
def test_tokenizer_that_splits_text_in_a_way_without_a_name_is_refused(steps):
    with pytest.raises(TrainerError) as caught:
        split_of({"pre_tokenizer": {"type": "Sequence", "pretokenizers": steps}})
    assert (caught.value.code, "llama-bpe" in caught.value.what) == ("RM705", True)


def test_tokenizer_made_from_sentencepiece_is_refused(tmp_path):
    with pytest.raises(TrainerError, match="RM705"):
        exported(tmp_path, RAWS["llama"] | {"vocab_size": 384}, sentencepiece)
