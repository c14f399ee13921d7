from __future__ import annotations

import json
from typing import Any

import torch

from trainer.storage.checkpoint_tree import INDEX, STATE, TENSORS, decode, encode


def joined(tree: dict[str, Any]) -> dict[str, bytes]:
    return {name: b"".join(bytes(piece) for piece in pieces) for name, pieces in encode(tree).items()}


def test_tree_of_plain_data_and_tensors_comes_back() -> None:
    tree = {"a": [1, None, 2.5, ("b", b"c")], "w": torch.arange(6.0).view(2, 3), 7: {"inf": float("inf")}}
    files = joined(tree)
    assert set(files) == {STATE, TENSORS}
    found = decode(files)
    assert torch.equal(found.pop("w"), tree.pop("w"))
    assert found == tree


def test_tensor_that_another_file_holds_takes_its_place() -> None:
    files = joined({"a": torch.ones(1), "b": torch.ones(2)})
    record = json.loads(files[STATE])
    assert ["b", {"tensor": "/b"}] in record["map"]
    meta = torch.empty(3, device="meta")
    assert decode(files, {"/b": meta})["b"] is meta
    assert INDEX not in files
