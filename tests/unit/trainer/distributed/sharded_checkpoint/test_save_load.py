"""Checkpoints in parts, written and read by real ranks of gloo on the CPU, of other numbers."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from trainer.distributed.sharded_checkpoint.save_load import described, filled, whole
from trainer.run.checkpoint_writer import newest_good
from trainer.storage.checkpoint_store import DamagedCheckpointError, read, stored
from trainer.storage.checkpoint_tree import INDEX, decode

PROGRAM = Path(__file__).with_name("shards_program.py")
Ranks = Callable[..., list[dict[str, Any]]]


@pytest.fixture(scope="module")
def written(two_ranks: Ranks, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shards")
    found = two_ranks(PROGRAM, "write_whole_and_parts", str(folder))
    assert [rank["path"] for rank in found] == ["step-000000000004", None]
    return folder


def read_whole(folder: Path) -> dict[str, Any]:
    refused: list[str] = []
    found = newest_good(folder, lambda path, reason: refused.append(reason))
    assert found is not None, refused
    assert found[0] == 4
    return found[1]


def assert_equal_to(tree: dict[str, Any], reference: dict[str, Any]) -> None:
    weights, moments = reference["weights"], reference["moments"]
    for name, value in weights.items():
        assert torch.equal(tree["model"][name], value), name
        assert torch.equal(tree["state"]["best"][name], 2 * value), name
    for number, state in moments.items():
        for name, value in state.items():
            assert torch.equal(tree["optimizer"]["state"][number][name], value), name
    assert tree["state"]["step"] == 4
    assert torch.equal(tree["state"]["losses"], torch.ones(3))


def test_checkpoint_of_two_ranks_is_read_whole_by_one(written: Path) -> None:
    assert_equal_to(read_whole(written / "parts"), torch.load(written / "whole.pt"))


def test_shards_of_two_ranks_are_each_ranks_own_part(written: Path) -> None:
    checkpoint = stored(written / "parts")[0].path
    index = json.loads((checkpoint / INDEX).read_text())
    sizes = {name: about["shape"] for name, about in index.items()}
    assert sizes["/model/0.weight"] == [7, 5]
    assert [chunk["sizes"] for chunk in index["/model/0.weight"]["chunks"]] == [[4, 5], [3, 5]]
    parts = sorted(path.name for path in checkpoint.glob("shard-*"))
    assert parts == ["shard-00000.safetensors", "shard-00001.safetensors"]
    assert not [path for path in checkpoint.iterdir() if path.suffix in (".pt", ".distcp", ".metadata")]  # no pickle


@pytest.mark.parametrize("ranks", [2, 3])
def test_checkpoint_read_by_other_ranks_and_written_again_is_the_same(
    written: Path, two_ranks: Ranks, ranks: int, tmp_path: Path
) -> None:
    """Three ranks hold 7 rows as 3, 3 and 1, and two rows as 1, 1 and none."""
    (tmp_path / "parts").symlink_to(written / "parts")
    found = two_ranks(PROGRAM, "copy_parts", str(tmp_path), ranks=ranks)
    assert all(rank["sharded"] for rank in found)
    assert_equal_to(read_whole(tmp_path / "again"), torch.load(written / "whole.pt"))


def test_rank_that_cannot_write_leaves_no_checkpoint_and_the_next_is_written(two_ranks: Ranks, tmp_path: Path) -> None:
    for rank in two_ranks(PROGRAM, "full_disk", str(tmp_path)):
        assert rank["errno"] == errno.ENOSPC
        assert rank["left"] == []
        assert rank["then"] == ["step-000000000005"]


def copied(written: Path, folder: Path) -> Path:
    shutil.copytree(written / "parts", folder)
    return stored(folder)[0].path


@pytest.mark.parametrize("name", ["shard-00001.safetensors", INDEX, "tensors.safetensors"])
@pytest.mark.parametrize("damage", ["changed", "truncated", "missing", "pipe"])
def test_damaged_part_is_found_before_anything_is_read(written: Path, tmp_path: Path, name: str, damage: str) -> None:
    path = copied(written, tmp_path / "parts") / name
    content = bytearray(path.read_bytes())
    path.unlink()
    if damage == "changed":
        content[-1] ^= 1
        path.write_bytes(content)
    elif damage == "truncated":
        path.write_bytes(content[:-1])
    elif damage == "pipe":
        os.mkfifo(path)
    with pytest.raises(DamagedCheckpointError, match=Path(name).stem):
        read(stored(tmp_path / "parts")[0])


def test_target_of_another_shape_is_refused(written: Path) -> None:
    one = stored(written / "parts")[0]
    files, _ = read(one)
    tree = decode(files, described(files[INDEX]))

    def wider(name: str, value: Tensor) -> Tensor:
        return torch.empty(9, 9) if name == "/model/0.weight" else whole(name, value)

    with pytest.raises(ValueError, match=r"/model/0.weight has shape \[7, 5\], not \[9, 9\]"):
        filled(tree, one.path, wider)


def test_tree_without_shards_stays_as_it_is(tmp_path: Path) -> None:
    tree = {"a": torch.ones(2)}
    assert filled(tree, tmp_path, whole) is tree
    assert described(None) == {}
