"""Rows from the device, from the host by threads, and from a mapped file: the same batches in the same order."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.data.loading import chunks
from trainer.data.loading.placement import Feed, TensorPartition, batches, choose_feed, mapped, place
from trainer.data.loading.sampler import Sampler
from trainer.runtime.errors import TrainerError

CPU, CARD = torch.device("cpu"), torch.device("cuda", 0)


def part(rows: int, dtype: torch.dtype = torch.float32) -> TensorPartition:
    generator = torch.Generator().manual_seed(0)
    inputs, targets = (torch.randn(rows, width, generator=generator, dtype=dtype) for width in (5, 1))
    return TensorPartition(inputs=inputs, targets=targets)


def taken(data: TensorPartition, size: int, *, start: int = 0, workers: int = 0, ranks: int = 1) -> list[list[bytes]]:
    """Return the bytes of all that comes, rank by rank."""
    sampler = Sampler(rows=len(data), batch_size=size, seed=3)

    def of(rank: int) -> list[bytes]:
        def rank_slice(rows: int) -> slice:
            return slice(rows * rank // ranks, rows * (rank + 1) // ranks)

        source = batches(data, sampler, epoch=2, start=start, rank_slice=rank_slice, device=CPU, workers=workers)
        return [b"".join(value.numpy().tobytes() for value in batch) for batch in source]

    return [of(rank) for rank in range(ranks)]


@settings(max_examples=30)
@given(st.integers(1, 60), st.integers(1, 20), st.integers(0, 3), st.integers(1, 3), st.sampled_from(["fp32", "fp64"]))
def test_placements_give_the_same_bits(rows: int, size: int, start: int, ranks: int, name: str) -> None:
    data = part(rows, {"fp32": torch.float32, "fp64": torch.float64}[name])
    expected = taken(data, size, start=start, ranks=ranks)
    file = mapped([data])
    for workers in (0, 1, 3):
        assert taken(data, size, start=start, workers=workers, ranks=ranks) == expected
        assert taken(file, size, start=start, workers=workers, ranks=ranks) == expected


def test_batches_follow_the_order() -> None:
    data, sampler = part(23), Sampler(rows=23, batch_size=4, seed=3)
    source = batches(data, sampler, epoch=1, start=0, rank_slice=lambda rows: slice(0, rows), device=CPU, workers=0)
    for (rows, inputs, targets), numbers in zip(source, sampler.order(1).split(4), strict=True):
        assert torch.equal(rows, numbers)
        assert torch.equal(inputs, data.inputs[numbers])
        assert torch.equal(targets, data.targets[numbers])


def test_mapped_file_is_written_in_blocks_and_is_nobodys_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "PIECE", 7)
    data = part(50)
    split = [TensorPartition(inputs=data.inputs[piece], targets=data.targets[piece]) for piece in chunks.chunks(50)]
    assert len(split) == 8
    file = mapped(split, tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert torch.equal(file.inputs, data.inputs)
    assert torch.equal(file.targets, data.targets)
    maps = Path("/proc/self/maps").read_text().splitlines()
    assert any(str(tmp_path) in line for line in maps)
    del file
    assert not any(str(tmp_path) in line for line in Path("/proc/self/maps").read_text().splitlines())


def test_rows_that_fit_are_placed_on_the_device() -> None:
    chosen = choose_feed("auto", 0, needs=2**20, device=CARD, free=2**22)
    assert chosen == Feed(name="device", reason="auto: the rows take 1.0 MiB of 4 MiB free on cuda:0")
    assert choose_feed("auto", 0, needs=2**40, device=CPU, free=None).name == "device"


def test_rows_that_do_not_fit_come_from_the_host_by_a_thread() -> None:
    chosen = choose_feed("auto", 0, needs=3 * 2**20, device=CARD, free=2**22)
    assert (chosen.name, chosen.workers) == ("host", 1)
    assert "3.0 MiB of 4 MiB free" in chosen.reason
    with pytest.raises(TrainerError, match="RM586"):
        choose_feed("device", 0, needs=3 * 2**20, device=CARD, free=2**22)
    with pytest.raises(TrainerError, match="RM586"):
        choose_feed("device", 2, needs=1, device=CARD, free=2**22)


@pytest.mark.parametrize(
    ("requested", "workers", "device", "expected"),
    [
        ("auto", 3, CPU, ("host", 3)),
        ("host", 0, CARD, ("host", 1)),
        ("host", 4, CARD, ("host", 4)),
        ("mapped", 0, CPU, ("mapped", 0)),
        ("mapped", 0, CARD, ("mapped", 1)),
        ("device", 0, CARD, ("device", 0)),
    ],
)
def test_requested_placement_is_taken(requested: str, workers: int, device: torch.device, expected: object) -> None:
    chosen = choose_feed(requested, workers, needs=1, device=device, free=2**22)
    assert (chosen.name, chosen.workers) == expected


def test_rows_are_placed_as_the_placement_requires() -> None:
    data = part(9)
    assert place([data], Feed(name="host", reason=""), CPU) is data
    for name in ("device", "mapped"):
        assert torch.equal(place([data], Feed(name=name, reason=""), CPU).inputs, data.inputs)
