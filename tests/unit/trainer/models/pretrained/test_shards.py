"""Weight files of a model folder: which are read, which are refused and why, and how shards are written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from trainer.models.pretrained.shards import INDEX, WHOLE, names_in, read_json, tensors, weight_map, write
from trainer.runtime.errors import TrainerError

WEIGHTS = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.ones(4, dtype=torch.bfloat16), "c": torch.zeros(2)}


def index(folder: Path, mapping: object) -> None:
    (folder / INDEX).write_text(json.dumps({"weight_map": mapping}))


@pytest.mark.parametrize(("most", "files"), [(10**6, 1), (24, 2), (8, 3)])
def test_weights_are_read_as_they_were_written(tmp_path: Path, most: int, files: int) -> None:
    names = write(tmp_path, WEIGHTS, shard_bytes=most)
    assert names[files:] == [INDEX] * (files > 1)
    found = dict(tensors(tmp_path, weight_map(tmp_path)))
    assert found.keys() == WEIGHTS.keys()
    assert all(found[name].dtype == value.dtype and found[name].equal(value) for name, value in WEIGHTS.items())
    if files > 1:
        total = sum(value.numel() * value.element_size() for value in WEIGHTS.values())
        assert json.loads((tmp_path / INDEX).read_text())["metadata"]["total_size"] == total
        assert names[0] == f"model-00001-of-{files:05d}.safetensors"


def test_whole_file_counts_before_an_index(tmp_path: Path) -> None:
    save_file({"a": WEIGHTS["a"]}, tmp_path / WHOLE)
    index(tmp_path, {"b": "model-00001-of-00001.safetensors"})
    assert weight_map(tmp_path) == {"a": WHOLE}


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("pytorch_model-00001-of-00002.bin", "is a pickle, which may run code"),
        ("model-00001-of-00002.safetensors", "the index that lists them is not there"),
        ("weights.safetensors", "has another name"),
        ("model.Q4_K_M.gguf", "is for llama.cpp"),
        ("config.json", ""),
    ],
)
def test_folder_without_weights_is_refused_with_what_is_there(tmp_path: Path, file: str, reason: str) -> None:
    (tmp_path / file).touch()
    with pytest.raises(TrainerError, match="RM700") as caught:
        weight_map(tmp_path)
    assert reason in caught.value.why
    assert (file in caught.value.why) is bool(reason)


@pytest.mark.parametrize(
    ("mapping", "code", "what"),
    [
        ([], "RM702", "has no valid weight_map"),
        ({"a": 1}, "RM702", "has no valid weight_map"),
        ({"a": "../other.safetensors"}, "RM702", "a file outside the folder"),
        ({"a": "/etc/passwd"}, "RM702", "a file outside the folder"),
        ({"a": "x.safetensors", "b": "x.safetensors"}, "RM700", "shard x.safetensors is missing; it holds 2 tensors"),
    ],
)
def test_index_that_cannot_be_followed_is_refused(tmp_path: Path, mapping: object, code: str, what: str) -> None:
    index(tmp_path, mapping)
    with pytest.raises(TrainerError, match=code) as caught:
        weight_map(tmp_path)
    assert what in caught.value.what


def test_damaged_shard_is_named_with_its_size(tmp_path: Path) -> None:
    (tmp_path / "x.safetensors").write_bytes(b"no weights at all")
    with pytest.raises(TrainerError, match="RM702") as caught:
        names_in(tmp_path / "x.safetensors")
    assert caught.value.what == "x.safetensors (17 bytes) cannot be read"
    with pytest.raises(TrainerError, match="RM702"):
        list(tensors(tmp_path, {"a": "x.safetensors"}))


def test_tensor_that_a_shard_lacks_is_named(tmp_path: Path) -> None:
    save_file({"a": WEIGHTS["a"]}, tmp_path / "x.safetensors")
    with pytest.raises(TrainerError, match="RM702") as caught:
        list(tensors(tmp_path, {"a": "x.safetensors", "z": "x.safetensors"}))
    assert caught.value.what == "tensor z is not in x.safetensors"


@pytest.mark.parametrize("dtype", [torch.int8, torch.float8_e4m3fn])
def test_numbers_that_need_a_scale_are_refused(tmp_path: Path, dtype: torch.dtype) -> None:
    save_file({"a": torch.zeros(2).to(dtype)}, tmp_path / WHOLE)
    with pytest.raises(TrainerError, match="RM703") as caught:
        list(tensors(tmp_path, weight_map(tmp_path)))
    assert str(dtype).removeprefix("torch.") in caught.value.what


@pytest.mark.parametrize(("text", "code"), [(None, "RM700"), ("{", "RM702"), ("[" * 100_000, "RM702"), ("3", "RM702")])
def test_file_that_is_no_object_is_refused(tmp_path: Path, text: str | None, code: str) -> None:
    if text is not None:
        (tmp_path / "config.json").write_text(text)
    with pytest.raises(TrainerError, match=code):
        read_json(tmp_path / "config.json", code="RM702")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_tensor_with_a_number_that_is_not_finite_is_refused_with_its_name(
    tmp_path: Path, value: float, dtype: torch.dtype
) -> None:
    weight = torch.linspace(-1, 1, 8).to(dtype)
    save_file({"a": weight, "e": torch.zeros(0, 4)}, tmp_path / WHOLE)
    assert dict(tensors(tmp_path, weight_map(tmp_path))).keys() == {"a", "e"}
    weight[3] = value
    save_file({"a": weight}, tmp_path / WHOLE)
    with pytest.raises(TrainerError) as caught:
        dict(tensors(tmp_path, weight_map(tmp_path)))
    assert (caught.value.code, caught.value.what) == ("RM702", "a holds NaN or infinity in 1 of 8 numbers")
    assert caught.value.where == str(tmp_path / WHOLE)


def test_pointer_of_git_lfs_is_named_with_the_command_that_gets_the_file(tmp_path: Path) -> None:
    folder = tmp_path / "my model"
    folder.mkdir()
    (folder / WHOLE).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n")
    with pytest.raises(TrainerError) as caught:
        weight_map(folder)
    assert (caught.value.code, f"git -C '{folder}' lfs pull" in str(caught.value.next)) == ("RM702", True)
