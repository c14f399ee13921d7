"""How much is held: nearly all that is free on a made-up card, less where time or the machine's memory forbids it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from trainer.device import capacity
from trainer.diagnostics.probes.memory import holding
from trainer.diagnostics.probes.memory.holding import GIB, MIB, PIECE, SPARE, Room
from trainer.diagnostics.probes.verdict import Device

XT = Device(kind="rocm", name="AMD Radeon RX 7900 XT", arch="gfx1100")
HALO = Device(kind="rocm", name="Radeon 8060S Graphics", arch="gfx1151")


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Free bytes by device; the card's properties do not show that it is integrated, as older torches' do not."""
    found = {"cuda:0": 19 * GIB, "cpu": 60 * GIB}
    monkeypatch.setattr(capacity, "free_memory", lambda device: found[device])
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: SimpleNamespace())
    return found


def test_card_is_tested_but_for_a_spare(free: dict[str, int]) -> None:
    assert holding.room(XT, 40.0, 600e9) == Room(free=19 * GIB, requested=19 * GIB - SPARE)


def test_slow_card_is_tested_as_far_as_the_time_goes_and_the_reason_is_given(free: dict[str, int]) -> None:
    found = holding.room(XT, 10.0, 84e9)
    assert found.requested == 10 * 10**9
    assert "10 s" in found.why
    assert holding.room(XT, 0.0, 1.0).requested == PIECE


def test_card_without_memory_of_its_own_leaves_half_to_the_machine(free: dict[str, int]) -> None:
    free["cuda:0"] = 90 * GIB
    assert holding.room(HALO, 1e3, 1e12).free == 30 * GIB
    assert holding.room(XT, 1e3, 1e12).free == 90 * GIB


def test_card_that_torch_calls_integrated_counts_as_such(free: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: SimpleNamespace(is_integrated=1))
    assert holding.shares_memory(Device(kind="rocm", name="AMD Instinct MI300A", arch="gfx942:sramecc+:xnack-"))


def test_card_that_is_full_has_no_room(free: dict[str, int]) -> None:
    free["cuda:0"] = SPARE // 2
    assert holding.room(XT, 40.0, 600e9).requested == 0
    assert holding.hold("cpu", 0) == []


@pytest.mark.parametrize("requested", [8, 1000, 50 * MIB, PIECE, PIECE + 8])
def test_held_bytes_are_those_requested_to_a_word(monkeypatch: pytest.MonkeyPatch, requested: int) -> None:
    monkeypatch.setattr(holding, "LARGEST", 16 * MIB)
    monkeypatch.setattr(holding, "PIECE", 1 * MIB)
    held = sum(block.nbytes for block in holding.hold("cpu", requested))
    assert requested - MIB < held <= requested
    assert held > 0


def test_blocks_get_smaller_where_large_ones_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    honest, most = torch.empty, 3 * MIB // 8

    def empty(*size: int, **how: object) -> torch.Tensor:
        if size[0] > most:
            raise torch.cuda.OutOfMemoryError("injected")
        return honest(*size, **how)  # type: ignore[call-overload, no-any-return]

    monkeypatch.setattr(torch, "empty", empty)
    monkeypatch.setattr(holding, "LARGEST", 16 * MIB)
    monkeypatch.setattr(holding, "PIECE", 1 * MIB)
    assert [block.nbytes for block in holding.hold("cpu", 5 * MIB)] == [5 * MIB // 2] * 2
    most = 0
    assert holding.hold("cpu", 5 * MIB) == []
