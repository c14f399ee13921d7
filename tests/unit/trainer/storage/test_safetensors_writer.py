from __future__ import annotations

import sys

import pytest
import safetensors.torch
import torch
from hypothesis import given
from hypothesis import strategies as st

from trainer.storage.safetensors_writer import NAMES, chunks

NAME = st.text(max_size=12).filter(lambda name: name != "__metadata__")
SHAPE = st.lists(st.integers(0, 4), max_size=3)


def drawn(dtype: torch.dtype, shape: list[int], generator: torch.Generator) -> torch.Tensor:
    """Any bits, where a type has no others than numbers."""
    if dtype is torch.bool:
        return torch.rand(shape, generator=generator) < 0.5
    drawn = torch.randint(0, 256, (*shape, dtype.itemsize), generator=generator, dtype=torch.uint8)
    return drawn.view(dtype)[..., 0]


@given(st.dictionaries(NAME, st.tuples(st.sampled_from(list(NAMES)), SHAPE), max_size=6), st.integers(0, 2**32))
def test_library_reads_what_was_written(requested: dict[str, tuple[torch.dtype, list[int]]], seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    tensors = {name: drawn(dtype, shape, generator) for name, (dtype, shape) in requested.items()}
    read = safetensors.torch.load(b"".join(chunks(tensors)))
    assert read.keys() == tensors.keys()
    for name, value in tensors.items():
        assert read[name].dtype == value.dtype
        assert read[name].shape == value.shape
        one, other = (each.contiguous().reshape(-1).view(torch.uint8) for each in (read[name], value))
        assert torch.equal(one, other)


def test_contiguous_tensor_is_not_copied() -> None:
    value = torch.arange(6.0)
    _, piece = chunks({"value": value})
    value[0] = 7
    assert torch.frombuffer(bytearray(piece), dtype=torch.float32)[0] == 7


def test_tensors_begin_at_a_multiple_of_their_own_size() -> None:
    tensors = {"a": torch.ones(3, dtype=torch.uint8), "b": torch.ones(1).double(), "c": torch.ones(1).half()}
    first, *others = chunks(tensors)
    assert len(first) % 8 == 0
    assert [len(each) for each in others] == [8, 2, 3]


def test_type_without_a_name_is_refused() -> None:
    with pytest.raises(TypeError, match="complex64"):
        list(chunks({"value": torch.ones(1, dtype=torch.complex64)}))


def test_big_endian_machine_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "byteorder", "big")
    with pytest.raises(TypeError, match="big-endian"):
        list(chunks({}))
