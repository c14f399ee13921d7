from __future__ import annotations

import json
import math
from typing import Any, ClassVar

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from trainer.storage.serialization import HostMemory, pack, unpack

LEAVES = st.none() | st.booleans() | st.integers() | st.text() | st.binary() | st.floats(allow_nan=False)
KEYS = st.text() | st.integers()
TREES = st.recursive(
    LEAVES | st.lists(st.floats(width=32), max_size=4).map(torch.tensor),
    lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


def equal(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor):
        return isinstance(other, Tensor) and one.numpy().tobytes() == other.numpy().tobytes()
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return type(one) is type(other) and len(one) == len(other) and all(map(equal, one, other))
    return type(one) is type(other) and one == other


@given(TREES)
def test_packed_value_is_unpacked_bit_identical(tree: Any) -> None:
    tensors: dict[str, Tensor] = {}
    record = json.loads(json.dumps(pack(tree, tensors), allow_nan=False))
    assert equal(unpack(record, tensors), tree)


def test_numbers_that_json_lacks_are_kept() -> None:
    tree = {"lowest": math.inf, "least": -math.inf, 3: math.nan}
    got = unpack(json.loads(json.dumps(pack(tree, {}), allow_nan=False)), {})
    assert (got["lowest"], got["least"]) == (math.inf, -math.inf)
    assert math.isnan(got[3])


@pytest.mark.parametrize("value", [object(), {1, 2}, test_numbers_that_json_lacks_are_kept])
def test_value_without_a_place_is_refused_by_name(value: Any) -> None:
    with pytest.raises(TypeError, match="/state/0"):
        pack({"state": [value]}, {})


@pytest.mark.parametrize("record", [{"tensor": "absent"}, {"code": "import os"}, {"map": 3}, {"a": 1, "b": 2}])
def test_bytes_that_were_not_packed_are_refused(record: Any) -> None:
    with pytest.raises((KeyError, ValueError, TypeError)):
        unpack(record, {})


def test_copy_on_the_host_does_not_change_with_the_original() -> None:
    original = {"weights": [torch.ones(3)], "links": bytearray(b"ab")}
    copy = HostMemory().copy(original)
    original["weights"][0].zero_()
    original["links"].extend(b"c")
    assert copy["weights"][0].tolist() == [1, 1, 1]
    assert copy["links"] == b"ab"


def test_later_copy_takes_the_place_of_the_one_before() -> None:
    memory, original = HostMemory(), {"a/b": {"c": torch.ones(3)}, "a": {"b/c": torch.zeros(3)}}
    first = memory.copy(original, "model")
    address = first["a/b"]["c"].data_ptr()
    original["a/b"]["c"] += 1
    second = memory.copy(original, "model")
    assert second["a/b"]["c"].tolist() == [2, 2, 2]
    assert second["a"]["b/c"].tolist() == [0, 0, 0]
    assert second["a/b"]["c"].data_ptr() == address
    assert memory.copy({"a/b": {"c": torch.ones(2)}}, "model")["a/b"]["c"].tolist() == [1, 1]
    assert memory.copy({"a/b": {"c": torch.ones(2).half()}}, "model")["a/b"]["c"].dtype == torch.float16


def test_copy_of_what_is_turned_over_is_contiguous_and_needs_no_gradient() -> None:
    value = torch.arange(6.0).reshape(2, 3).requires_grad_().t()
    copy = HostMemory().copy(value)
    assert copy.is_contiguous()
    assert not copy.requires_grad
    assert copy.tolist() == value.tolist()


def test_packed_tree_is_plain_json_and_names_each_tensor_by_its_path() -> None:
    tensors: dict[str, Tensor] = {}
    tree = {"a": [torch.ones(1), (torch.ones(1), 1.5)], 2: {"b": torch.ones(1)}, "c": [b"\1", math.inf, None, True]}
    assert pack(tree, tensors) == {
        "map": [
            ["a", [{"tensor": "/a/0"}, {"tuple": [{"tensor": "/a/1/0"}, 1.5]}]],
            [2, {"map": [["b", {"tensor": "/2/b"}]]}],
            ["c", [{"bytes": "01"}, {"float": "inf"}, None, True]],
        ]
    }
    assert list(tensors) == ["/a/0", "/a/1/0", "/2/b"]


def test_refusal_names_the_kind() -> None:
    with pytest.raises(TypeError, match=r"^/a: object has no place in a checkpoint$"):
        pack({"a": object()}, {})
    with pytest.raises(ValueError, match=r"^unknown kind 'code'$"):
        unpack({"code": "x"}, {})


def test_tensor_is_copied_to_memory_of_its_own_and_other_values_stay() -> None:
    memory = HostMemory()
    original = {"a": [torch.ones(1), torch.zeros(1)], "b": [torch.full((1,), 2.0)], "c": (7, "x", bytearray(b"y"))}
    copies = [memory.copy(original, path) for path in ("one", "two")]
    original["a"][0] += 5  # type: ignore[operator]
    for copy in copies:
        assert [tensor.item() for tensor in (*copy["a"], *copy["b"])] == [1, 0, 2]
        assert copy["c"] == (7, "x", b"y")
    held = {tensor.data_ptr() for copy in copies for tensor in (*copy["a"], *copy["b"])}
    assert len(held) == 6


class Spread(Tensor):
    """A stand-in for a DTensor of one rank."""

    moves: ClassVar[list[tuple[Any, ...]]] = []

    def full_tensor(self) -> Tensor:
        raise AssertionError("the other ranks' parts are not gathered")

    def to(self, *place: Any, **how: Any) -> Tensor:  # type: ignore[override]
        self.moves.append((place, how))
        return super().to(*place, **how)


def test_tensor_that_is_spread_over_ranks_is_copied_anew_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Spread, "moves", [])
    memory, original = HostMemory(), torch.ones(3, requires_grad=True).as_subclass(Spread)
    one, two = memory.copy(original, "model"), memory.copy(original, "model")
    assert len({tensor.data_ptr() for tensor in (original, one, two)}) == 3
    assert not one.requires_grad
    assert Spread.moves == [(("cpu",), {"copy": True})] * 2
