"""Rows of tokens put together into sequences of one length, without cutting any."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from trainer.data.tokens.labels import IGNORED, PADDING
from trainer.data.tokens.row import TokenRow


def best_fit(lengths: Sequence[int], capacity: int) -> list[list[int]]:
    """Return which rows share a sequence: best-fit decreasing, ties by number, so always the same.

    Each row goes into the fullest sequence that still has room for it (Johnson 1974).

    Raises:
        ValueError: for a row longer than `capacity`.
    """
    bins: list[list[int]] = []
    room: list[tuple[int, int]] = []  # (free tokens, number of the bin), sorted
    for row in sorted(range(len(lengths)), key=lambda row: (-lengths[row], row)):
        if lengths[row] > capacity:
            raise ValueError(f"row {row} has {lengths[row]} tokens, more than {capacity}")
        place = bisect.bisect_left(room, (lengths[row], -1))
        if place == len(room):
            bins.append([row])
            bisect.insort(room, (capacity - lengths[row], len(bins) - 1))
        else:
            free, number = room.pop(place)
            bins[number].append(row)
            bisect.insort(room, (free - lengths[row], number))
    return bins


@dataclass(frozen=True, kw_only=True)
class PackedRows:
    """Sequences of equal length; each tensor is (sequences, length).

    tokens, positions: int64. documents: int64, PADDING for filling. labels: the next token of the document, IGNORED
    where it carries no loss. weights: fp32, what that label weighs.
    """

    tokens: Tensor
    positions: Tensor
    documents: Tensor
    labels: Tensor
    weights: Tensor

    def __len__(self) -> int:
        return len(self.tokens)


def pack(rows: Sequence[TokenRow], bins: Sequence[Sequence[int]], length: int, *, filling: int) -> PackedRows:
    """Return the sequences that `bins` describe. `filling` is a token id for what stays free.

    Args:
        rows: all rows.
        bins: numbers of the rows of each sequence.
        length: tokens of a sequence.
        filling: id of the token for what stays free.
    """
    shape = (len(bins), length)
    packed = PackedRows(
        tokens=torch.full(shape, filling),
        positions=torch.zeros(shape, dtype=torch.long),
        documents=torch.full(shape, PADDING),
        labels=torch.full(shape, IGNORED),
        weights=torch.zeros(shape),
    )
    for sequence, numbers in enumerate(bins):
        begin = 0
        for document, number in enumerate(numbers):
            _put(packed, sequence, begin, document, rows[number])
            begin += len(rows[number].tokens)
    return packed


def _put(packed: PackedRows, sequence: int, begin: int, document: int, row: TokenRow) -> None:
    length = len(row.tokens)
    tokens, weights = torch.tensor(row.tokens), torch.tensor(row.weights, dtype=torch.float32)
    place = slice(begin, begin + length)
    packed.tokens[sequence, place] = tokens
    packed.positions[sequence, place] = torch.arange(length)
    packed.documents[sequence, place] = document
    before = slice(begin, begin + length - 1)  # the last token predicts nothing
    packed.labels[sequence, before] = tokens[1:].where(weights[1:] > 0, IGNORED)
    packed.weights[sequence, before] = weights[1:]
