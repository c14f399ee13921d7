"""Rows of tokens as the loop takes them: by number, as inputs and the weights of their labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from trainer.data.loading.batch import Batch, apply, to
from trainer.data.tokens.corpus import TokenStream
from trainer.data.tokens.labels import IGNORED, PADDING
from trainer.data.tokens.packing import PackedRows
from trainer.data.tokens.row import TokenRow

HOST = torch.device("cpu")


@dataclass(frozen=True, kw_only=True)
class WindowRows:
    """Windows of a stream: row n is the tokens from (first + n) * length on. Nothing but the stream is held."""

    stream: TokenStream
    first: int
    count: int
    length: int
    device: torch.device = HOST

    def __len__(self) -> int:
        return self.count

    def rows(self, numbers: Tensor, device: torch.device) -> Batch:
        """Return {tokens, labels}, (rows, length) each, and what each label weighs: 1."""
        windows = [self.window(number) for number in numbers.tolist()]
        both = torch.stack(windows) if windows else torch.empty(0, self.length + 1, dtype=torch.long)
        inputs = {"tokens": both[:, :-1].contiguous(), "labels": both[:, 1:].contiguous()}
        moved: Batch = (to(inputs, device), to(torch.ones(inputs["labels"].shape), device))
        return moved

    def window(self, number: int) -> Tensor:
        """Return the row's tokens and the one after them, (length + 1,)."""
        begin = (self.first + number) * self.length
        return torch.from_numpy(self.stream.window(begin, begin + self.length + 1))


@dataclass(frozen=True, kw_only=True)
class PackedPartition:
    """Packed sequences, held on the host."""

    packed: PackedRows
    device: torch.device = HOST

    def __len__(self) -> int:
        return len(self.packed)

    def rows(self, numbers: Tensor, device: torch.device) -> Batch:
        """Return the sequences' fields by name, and the labels' weights."""
        inputs = apply(lambda value: value[numbers.to(value.device)], vars(self.packed))
        return to(inputs, device), to(inputs["weights"], device)


@dataclass(frozen=True, kw_only=True)
class PairPartition:
    """Preference pairs, each tensor (pairs, 2, length), the chosen answer first."""

    tokens: Tensor
    labels: Tensor
    documents: Tensor
    device: torch.device = HOST

    def __len__(self) -> int:
        return len(self.tokens)

    def rows(self, numbers: Tensor, device: torch.device) -> Batch:
        """Return the pairs' fields by name, and ones: each pair weighs the same."""
        inputs = {"tokens": self.tokens[numbers], "labels": self.labels[numbers], "documents": self.documents[numbers]}
        return to(inputs, device), to(torch.ones(len(numbers)), device)


def pair_partition(pairs: Sequence[tuple[TokenRow, TokenRow]], length: int, *, filling: int) -> PairPartition:
    """Return pairs as tensors, filled up at the end to the longest row, at most `length`.

    Args:
        pairs: chosen and rejected row of each pair.
        length: most tokens of a row.
        filling: id of the token that fills shorter rows.
    """
    most = min(length, max((len(row.tokens) for pair in pairs for row in pair), default=1))
    shape = (len(pairs), 2, most)
    made = PairPartition(
        tokens=torch.full(shape, filling), labels=torch.full(shape, IGNORED), documents=torch.full(shape, PADDING)
    )
    for number, pair in enumerate(pairs):
        for place, row in enumerate(pair):
            count = len(row.tokens)
            tokens, weights = torch.tensor(row.tokens), torch.tensor(row.weights)
            made.tokens[number, place, :count] = tokens
            made.documents[number, place, :count] = 0
            made.labels[number, place, : count - 1] = tokens[1:].where(weights[1:] > 0, IGNORED)
    return made
