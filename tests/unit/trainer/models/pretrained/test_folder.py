"""Model folders as users bring them: incomplete, damaged, of another family, with older names."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.fixtures.small_adapters import GPT2, LLAMA
from trainer.models.decoder.model import Decoder
from trainer.models.pretrained import shards
from trainer.models.pretrained.families import decoder_config
from trainer.models.pretrained.folder import Pretrained, read, require_vocabulary, write
from trainer.runtime.errors import TrainerError


def made(raw):
    model = Decoder(decoder_config(raw))
    model.initialize(0)
    return Pretrained(model=model, raw=raw, generation={"eos_token_id": 60})


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "model", made(LLAMA), shard_bytes=4000)
    return tmp_path / "model"


def refused(folder, **options):
    with pytest.raises(TrainerError) as caught:
        read(folder, **options)
    return caught.value


@pytest.mark.parametrize("raw", [LLAMA, GPT2], ids=["llama", "gpt2"])
@pytest.mark.parametrize("shard_bytes", [1, 4000, 10**9])
def test_read_after_write_for_any_shard_size_returns_the_same_weights(raw, shard_bytes, tmp_path):
    before = made(raw)
    write(tmp_path, before, shard_bytes=shard_bytes)
    after = read(tmp_path).model.state_dict()
    assert after.keys() == before.model.state_dict().keys()
    assert all(torch.equal(value, after[name]) for name, value in before.model.state_dict().items())
    assert json.loads((tmp_path / "generation_config.json").read_text()) == {"eos_token_id": 60}


def test_write_twice_gives_the_same_bytes(tmp_path):
    for name in "ab":
        write(tmp_path / name, made(LLAMA), shard_bytes=4000)
    files = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert all((tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes() for name in files)


def test_read_in_bf16_gives_bf16_and_the_written_config_reports_it(folder, tmp_path):
    half = read(folder, dtype=torch.bfloat16)
    write(tmp_path / "half", half)
    assert {value.dtype for value in read(tmp_path / "half").model.state_dict().values()} == {torch.bfloat16}
    assert json.loads((tmp_path / "half" / "config.json").read_text())["dtype"] == "bfloat16"


def test_write_into_the_source_folder_is_refused(folder):
    with pytest.raises(TrainerError) as caught:
        write(folder, read(folder))
    assert caught.value.code == "RM540"


def test_missing_folder_reports_that_no_hub_is_reached(tmp_path):
    error = refused(tmp_path / "meta-llama" / "Llama-3.2-1B")
    assert error.code == "RM700"
    assert "hub" in error.why


def test_missing_shard_is_named_with_its_number_of_tensors(folder):
    gone = sorted(folder.glob("model-*.safetensors"))[1]
    gone.unlink()
    error = refused(folder)
    assert (error.code, gone.name in error.what) == ("RM700", True)


def test_pickled_weights_are_named_and_not_opened(folder):
    for path in folder.glob("model*"):
        path.unlink()
    (folder / "pytorch_model.bin").write_bytes(b"never opened")
    error = refused(folder)
    assert error.code == "RM700"
    assert "pytorch_model.bin" in error.why


@pytest.mark.parametrize("keep", [0, 5, 100, -1])
def test_truncated_shard_is_named_with_its_size(folder, keep):
    path = sorted(folder.glob("model-*.safetensors"))[0]
    content = path.read_bytes()
    path.write_bytes(content[:keep])
    error = refused(folder)
    assert error.code == "RM702"
    assert path.name in error.what


def test_index_that_puts_a_tensor_into_another_shard_is_refused(folder):
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    files = sorted(set(index["weight_map"].values()))
    name = next(name for name, file in index["weight_map"].items() if file == files[0])
    index["weight_map"][name] = files[1]
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    error = refused(folder)
    assert error.code == "RM702"
    assert name in error.what


@pytest.mark.parametrize("file", ["../secret.safetensors", "/etc/passwd"])
def test_index_that_leaves_the_folder_is_refused(folder, file):
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    index["weight_map"]["model.norm.weight"] = file
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert refused(folder).code == "RM702"


@pytest.fixture
def single(tmp_path):
    write(tmp_path / "single", made(LLAMA))
    return tmp_path / "single"


def change(folder, edit):
    weights = load_file(folder / "model.safetensors")
    edit(weights)
    save_file({name: value.contiguous() for name, value in weights.items()}, folder / "model.safetensors")


def test_wrong_shape_names_tensor_and_both_shapes(single):
    name = "model.layers.1.mlp.up_proj.weight"
    change(single, lambda weights: weights.update({name: weights[name][:-1]}))
    error = refused(single)
    assert error.code == "RM703"
    assert all(part in error.what for part in (name, "[23, 16]", "[24, 16]"))


def test_missing_and_unknown_tensors_are_counted_and_named(single):
    change(single, lambda weights: weights.update({"model.extra": weights.pop("model.norm.weight")}))
    error = refused(single)
    assert error.code == "RM703"
    assert "model.norm.weight" in error.what
    assert "model.extra" in error.what


def test_tied_model_that_holds_only_the_head_is_read(tmp_path):
    before = made(LLAMA | {"tie_word_embeddings": True})
    write(tmp_path, before)
    change(tmp_path, lambda weights: weights.update({"lm_head.weight": weights.pop("model.embed_tokens.weight")}))
    assert torch.equal(read(tmp_path).model.head_weight, before.model.head_weight)


def test_gpt2_files_without_prefix_and_with_mask_buffers_are_read(tmp_path):
    before = made(GPT2)
    write(tmp_path, before)

    def old(weights):
        for name in list(weights):
            weights[name.removeprefix("transformer.")] = weights.pop(name)
        weights["h.0.attn.bias"] = torch.ones(1, 1, 32, 32)
        weights["h.0.attn.masked_bias"] = torch.tensor(-1e4)

    change(tmp_path, old)
    after = read(tmp_path).model.state_dict()
    assert all(torch.equal(value, after[name]) for name, value in before.model.state_dict().items())


def test_tied_model_whose_files_hold_another_head_is_refused(tmp_path):
    write(tmp_path, made(LLAMA | {"tie_word_embeddings": True}))
    same = load_file(tmp_path / "model.safetensors")["model.embed_tokens.weight"]
    change(tmp_path, lambda weights: weights.update({"lm_head.weight": same.clone()}))
    read(tmp_path)
    change(tmp_path, lambda weights: weights.update({"lm_head.weight": same + 1}))
    error = refused(tmp_path)
    assert (error.code, "tie_word_embeddings" in error.next) == ("RM703", True)


@pytest.mark.parametrize("tied", [True, False])
def test_files_of_a_bare_model_are_read_where_the_head_is_tied_and_lack_it_otherwise(tmp_path, tied):
    before = made(LLAMA | {"tie_word_embeddings": tied})
    write(tmp_path, before)

    def bare(weights):
        for name in list(weights):
            value = weights.pop(name)
            if name != "lm_head.weight":
                weights[name.removeprefix("model.")] = value

    change(tmp_path, bare)
    if not tied:
        assert "lm_head.weight" in refused(tmp_path).what
        return
    after = read(tmp_path).model.state_dict()
    assert all(torch.equal(value, after[name]) for name, value in before.model.state_dict().items())


@pytest.mark.parametrize(("named", "kept"), [("float16", torch.float16), ("auto", torch.bfloat16)])
def test_files_of_several_number_formats_take_one_to_compute(single, named, kept):
    change(
        single,
        lambda weights: weights.update(
            {name: value if "norm" in name else value.bfloat16() for name, value in weights.items()}
        ),
    )
    raw = json.loads((single / "config.json").read_text())
    (single / "config.json").write_text(json.dumps(raw | {"dtype": named}))
    assert {value.dtype for value in read(single).model.state_dict().values()} == {torch.bfloat16, torch.float32}
    model = read(single, to_compute=True).model
    assert {value.dtype for value in model.state_dict().values()} == {kept}
    assert model(torch.arange(4)[None]).dtype == kept


def test_whole_file_next_to_an_older_index_counts(folder, tmp_path):
    newer = made(LLAMA)
    with torch.no_grad():
        newer.model.model.norm.weight.add_(1)
    write(tmp_path / "newer", newer)
    (folder / "model.safetensors").write_bytes((tmp_path / "newer" / "model.safetensors").read_bytes())
    assert torch.equal(read(folder).model.model.norm.weight, newer.model.model.norm.weight)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("model-00001-of-00002.safetensors", "the index that lists them is not there"),
        ("consolidated.safetensors", "consolidated.safetensors is there, which has another name"),
        ("model.gguf", "model.gguf is for llama.cpp"),
    ],
)
def test_weights_under_another_name_are_named(single, name, words):
    (single / "model.safetensors").rename(single / name)
    assert words in refused(single).why


def test_folder_of_an_adapter_is_no_model_and_the_way_on_is_named(tmp_path):
    (tmp_path / "adapter_config.json").write_text("{}")
    error = refused(tmp_path)
    assert (error.code, "./invokew merge" in error.next) == ("RM700", True)


def test_folder_with_adapters_within_names_them(tmp_path):
    (tmp_path / "second").mkdir()
    (tmp_path / "second" / "adapter_config.json").write_text("{}")
    error = refused(tmp_path)
    assert (error.code, str(tmp_path / "second") in error.next) == ("RM700", True)


@pytest.mark.parametrize(
    ("edit", "code", "words"),
    [
        ({"model_type": "no-such-family"}, "RM701", "no-such-family"),
        ({"quantization_config": {"bits": 4}}, "RM707", "quantization_config"),
        ({"hidden_act": "unknown_gelu"}, "RM707", "unknown_gelu"),
        ({"rope_scaling": {"type": "spiral", "factor": 2}}, "RM707", "spiral"),
        ({"num_key_value_heads": 3}, "RM707", "3 key-value heads"),
        ({"hidden_size": None}, "RM707", "invalid"),
        ({"num_attention_heads": 0}, "RM707", "no whole number"),
    ],
)
def test_config_that_is_not_supported_names_the_value(single, edit, code, words):
    raw = json.loads((single / "config.json").read_text())
    (single / "config.json").write_text(json.dumps(raw | edit))
    error = refused(single)
    assert error.code == code
    assert words in str(error)


@pytest.mark.parametrize("text", ["{", "[]", "null"])
def test_config_that_is_no_object_is_refused(single, text):
    (single / "config.json").write_text(text)
    assert refused(single).code == "RM707"


def test_tokenizer_larger_than_the_embedding_is_refused_with_both_sizes():
    model = made(LLAMA).model
    require_vocabulary(model, 61, "here")
    with pytest.raises(TrainerError) as caught:
        require_vocabulary(model, 62, "here")
    assert caught.value.code == "RM704"
    assert "62" in caught.value.what
    assert "61" in caught.value.what


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.float8_e4m3fn], ids=str)
def test_weights_that_need_a_scale_are_refused(tmp_path, dtype):
    save_file({"a": torch.ones(4), "b": torch.ones(4).to(dtype)}, tmp_path / "model.safetensors")
    with pytest.raises(TrainerError) as caught:
        dict(shards.tensors(tmp_path, shards.weight_map(tmp_path)))
    assert (caught.value.code, "without a scale" in caught.value.what) == ("RM703", True)
