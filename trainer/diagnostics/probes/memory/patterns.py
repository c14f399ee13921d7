"""Patterns of 64-bit words: made, written and compared on the device, a piece at a time.

All pieces are written before the first is read, so that no cache answers for the memory and a word that another
address overwrote is found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

WORD = 8  # bytes
BITS = 64
LOWEST = -(1 << 63)


@dataclass(frozen=True, kw_only=True)
class Place:
    """Words that a pattern is made for: the number of the first among all that are held, how many, and where."""

    first: int
    words: int
    device: str
    seed: int

    def numbers(self) -> torch.Tensor:
        """Return the number of each word, (words,) in int64."""
        import torch

        return torch.arange(self.first, self.first + self.words, device=self.device, dtype=torch.int64)


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A view on held memory, (words,) in int64, with the number of its first word."""

    first: int
    view: torch.Tensor


@dataclass(frozen=True, kw_only=True)
class Wrong:
    """Words that differ from a pattern, and where the first is; `bits` are those that differ there."""

    words: int
    where: str = ""


def filled(place: Place, value: int) -> torch.Tensor:
    """Return words that are all `value`."""
    import torch

    return torch.full((place.words,), value, device=place.device, dtype=torch.int64)


def walking(place: Place) -> torch.Tensor:
    """Return words of one set bit, which moves on by one from word to word."""
    import torch

    return torch.bitwise_left_shift(filled(place, 1), place.numbers() % BITS)


def random(place: Place) -> torch.Tensor:
    """Return words that seed and number of the first word decide."""
    import torch

    source = torch.Generator(place.device).manual_seed(place.seed + place.first)
    return torch.empty(place.words, device=place.device, dtype=torch.int64).random_(LOWEST, None, generator=source)


PATTERNS: Mapping[str, Callable[[Place], torch.Tensor]] = {
    "address": lambda place: place.numbers(),
    "address inverted": lambda place: ~place.numbers(),
    "zeros": lambda place: filled(place, 0),
    "ones": lambda place: filled(place, -1),
    "walking one": walking,
    "walking zero": lambda place: ~walking(place),
    "random": random,
}


def pieces(blocks: Sequence[torch.Tensor], words: int) -> list[Piece]:
    """Return the blocks in pieces of at most `words` words, numbered through.

    Args:
        blocks: held memory, each (n,) in int64.
        words: most words of a piece.
    """
    found, first = [], 0
    for view in (view for block in blocks for view in block.split(words)):
        found.append(Piece(first=first, view=view))
        first += view.numel()
    return found


def store(view: torch.Tensor, words: torch.Tensor) -> None:
    """Write words to held memory of the same shape."""
    view.copy_(words)


def differing(view: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
    """Return how many words differ, counted on the device: a tensor of one number, so that nothing waits for it."""
    return view.ne(words).sum()


def tried(make: Callable[[Place], torch.Tensor], held: Sequence[Piece], device: str, seed: int) -> Wrong:
    """Write a pattern to all pieces, then read all of them.

    Args:
        make: makes the pattern for a place.
        held: pieces of the held memory; at least one.
        device: device of torch that holds them.
        seed: seed of the random pattern.
    """
    import torch

    places = [Place(first=piece.first, words=piece.view.numel(), device=device, seed=seed) for piece in held]
    for piece, place in zip(held, places, strict=True):
        store(piece.view, make(place))
    counted = [differing(piece.view, make(place)) for piece, place in zip(held, places, strict=True)]
    counts = torch.stack(counted).tolist()
    first = next((index for index, count in enumerate(counts) if count), None)
    return Wrong(words=sum(counts), where="" if first is None else where(held[first], make(places[first])))


def where(piece: Piece, words: torch.Tensor) -> str:
    """Return which word of a piece is the first wrong one, and its wrong bits; it is read once more for that.

    Args:
        words: what the piece should hold.
    """
    wrong = piece.view.ne(words).nonzero()
    if not wrong.numel():
        return f"from word {piece.first} on, and right when read again"
    index = int(wrong[0])
    bits = (int(piece.view[index]) ^ int(words[index])) % (1 << BITS)
    return f"first at byte {(piece.first + index) * WORD} of what is held, bits {bits:#x}"


def seen_bits(device: str, words: int, seed: int) -> int:
    """Return how many of 64 flipped bits the comparison finds, each in another word of a piece.

    Args:
        device: device of torch.
        words: words of the piece, 64 at least.
        seed: seed of its random words.
    """
    import torch

    right = random(Place(first=0, words=words, device=device, seed=seed))
    spoiled, bit = right.clone(), torch.arange(BITS, device=device)
    at = bit * ((words - 1) // (BITS - 1))
    spoiled[at] ^= torch.bitwise_left_shift(torch.ones_like(bit), bit)
    return int(differing(spoiled, right)) - int(differing(right, right))
