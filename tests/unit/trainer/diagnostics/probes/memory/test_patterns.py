"""Faults put into held memory: one bit anywhere, one address for two words; each just beyond what a sound one does."""

from __future__ import annotations

import pytest
import torch

from trainer.diagnostics.probes.memory import patterns
from trainer.diagnostics.probes.memory.patterns import BITS, PATTERNS, Piece, Place, Wrong

WORDS, PIECE = 1000, 128  # the last piece is shorter
FIRST, LAST = 0, WORDS - 1


def held() -> list[Piece]:
    return patterns.pieces([torch.zeros(600, dtype=torch.int64), torch.zeros(400, dtype=torch.int64)], PIECE)


def wrong(name: str, pieces: list[Piece]) -> Wrong:
    return patterns.tried(PATTERNS[name], pieces, "cpu", seed=7)


def bit(number: int) -> int:
    return 1 << number if number < 63 else patterns.LOWEST


def with_bit(monkeypatch: pytest.MonkeyPatch, word: int, number: int, *, stuck: bool | None) -> None:
    """A memory whose bit is flipped as a word is written; or stuck at 1 or at 0."""

    def change(old: int) -> int:
        if stuck is None:
            return old ^ bit(number)
        return old | bit(number) if stuck else old & ~bit(number)

    count = iter(range(0, 10**9))
    places = {index: piece.first for index, piece in enumerate(held())}

    def store(view: torch.Tensor, words: torch.Tensor) -> None:
        view.copy_(words)
        at = word - places[next(count) % len(places)]
        if 0 <= at < view.numel():
            view[at] = change(int(view[at]))

    monkeypatch.setattr(patterns, "store", store)


def test_pieces_cover_all_blocks_and_are_numbered_through() -> None:
    found = held()
    assert [piece.view.numel() for piece in found] == [128] * 4 + [88] + [128] * 3 + [16]
    assert [piece.first for piece in found] == [0, 128, 256, 384, 512, 600, 728, 856, 984]


@pytest.mark.parametrize("name", PATTERNS)
def test_sound_memory_keeps_each_pattern(name: str) -> None:
    assert wrong(name, held()) == Wrong(words=0)


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize(("word", "number"), [(FIRST, 0), (511, 31), (599, 32), (600, 62), (LAST, 63)])
def test_single_flipped_bit_is_found_by_each_pattern(
    monkeypatch: pytest.MonkeyPatch, name: str, word: int, number: int
) -> None:
    with_bit(monkeypatch, word, number, stuck=None)
    assert wrong(name, held()) == Wrong(
        words=1, where=f"first at byte {word * 8} of what is held, bits {1 << number:#x}"
    )


@pytest.mark.parametrize("number", [0, 17, 63])
@pytest.mark.parametrize(("stuck", "name"), [(True, "zeros"), (False, "ones")])
def test_stuck_bit_is_found_by_the_pattern_of_its_opposite(
    monkeypatch: pytest.MonkeyPatch, number: int, stuck: bool, name: str
) -> None:
    with_bit(monkeypatch, 700, number, stuck=stuck)
    assert wrong(name, held()).words == 1


@pytest.mark.parametrize("name", ["address", "address inverted", "random"])
@pytest.mark.parametrize(("one", "other"), [(0, 999), (3, 515), (599, 600), (130, 131)])
def test_word_that_another_address_overwrites_is_found(
    monkeypatch: pytest.MonkeyPatch, name: str, one: int, other: int
) -> None:
    pieces = held()
    words = {piece.first + index: piece.view[index] for piece in pieces for index in range(piece.view.numel())}

    def store(view: torch.Tensor, new: torch.Tensor) -> None:
        view.copy_(new)
        if view.data_ptr() <= words[other].data_ptr() < view.data_ptr() + view.nbytes:
            words[one].copy_(words[other])

    monkeypatch.setattr(patterns, "store", store)
    assert wrong(name, pieces).words == 1


def test_blocks_that_share_memory_are_found_by_their_addresses() -> None:
    block = torch.zeros(256, dtype=torch.int64)
    found = {name for name in PATTERNS if wrong(name, patterns.pieces([block, block], PIECE)).words}
    assert found == {"address", "address inverted", "random"}


def test_fault_that_is_gone_at_the_second_reading_is_reported_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    honest, calls = patterns.differing, []

    def differing(view: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return honest(view, words) + (len(calls) == 3)

    monkeypatch.setattr(patterns, "differing", differing)
    assert wrong("zeros", held()) == Wrong(words=1, where="from word 256 on, and right when read again")


def test_walking_bit_visits_each_place_and_random_words_have_all_64_bits() -> None:
    place = Place(first=0, words=640, device="cpu", seed=3)
    one, zero = patterns.walking(place), PATTERNS["walking zero"](place)
    assert one[:BITS].tolist() == [bit(number) for number in range(BITS)]
    assert torch.equal(one ^ zero, torch.full_like(one, -1))
    drawn = patterns.random(place)
    assert all(bool((drawn & bit(number)).any()) and bool((~drawn & bit(number)).any()) for number in range(BITS))
    assert torch.equal(drawn, patterns.random(place))


def test_comparison_that_is_blind_to_a_bit_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert patterns.seen_bits("cpu", 1000, seed=1) == patterns.seen_bits("cpu", BITS, seed=1) == BITS
    monkeypatch.setattr(patterns, "differing", lambda view, words: (view >> 1).ne(words >> 1).sum())
    assert patterns.seen_bits("cpu", 1000, seed=1) == BITS - 1
    monkeypatch.setattr(patterns, "differing", lambda view, words: torch.tensor(BITS))
    assert patterns.seen_bits("cpu", 1000, seed=1) == 0
