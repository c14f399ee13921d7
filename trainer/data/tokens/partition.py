"""Rows of tokens as the loop takes them: by number, as inputs and the weights of their labels."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from trainer.data.loading.batch import Batch, apply, to
from trainer.data.tokens.corpus import TokenStream
from trainer.data.tokens.labels import IGNORED, PADDING
from trainer.data.tokens.packing import PackedRows
from trainer.data.tokens.row import JudgedRow, TokenRow, answered_by

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
    """Preference pairs, each tensor (pairs, 2, length), the chosen answer first.

    reference: log-probabilities of the answers under the reference, (pairs, 2), where they are known.
    """

    tokens: Tensor
    labels: Tensor
    documents: Tensor
    reference: Tensor | None = None
    device: torch.device = HOST

    def __len__(self) -> int:
        return len(self.tokens)

    def rows(self, numbers: Tensor, device: torch.device) -> Batch:
        """Return the pairs' fields by name, and ones: each pair weighs the same."""
        inputs = _there(self, ("tokens", "labels", "documents", "reference"), numbers)
        return to(inputs, device), to(torch.ones(len(numbers)), device)


@dataclass(frozen=True, kw_only=True)
class JudgedPartition:
    """Groups of answers, (groups, 2, answers, length): prompts with their own answer, then with another one's.

    verdicts: (groups, answers), 1 for a good answer, -1 for a bad one, 0 for one that only fills the last group up.
    reference: log-probabilities of all answers under the reference, (groups, 2, answers), where they are known.
    """

    tokens: Tensor
    labels: Tensor
    documents: Tensor
    verdicts: Tensor
    reference: Tensor | None = None
    device: torch.device = HOST

    def __len__(self) -> int:
        return len(self.tokens)

    def rows(self, numbers: Tensor, device: torch.device) -> Batch:
        """Return the groups' fields by name, and what each answer weighs: 1, or 0 where it fills up."""
        inputs = _there(self, ("tokens", "labels", "documents", "verdicts", "reference"), numbers)
        return to(inputs, device), to(inputs["verdicts"].abs(), device)


def _there(part: PairPartition | JudgedPartition, names: Sequence[str], numbers: Tensor) -> dict[str, Tensor]:
    """Return the rows of a part's tensors by name, without those that it has not."""
    held = {name: getattr(part, name) for name in names}
    return {name: value[numbers] for name, value in held.items() if value is not None}


def groups_of(count: int, size: int, seed: int) -> list[list[int]]:
    """Return the numbers of rows by group, drawn by `seed`; the last group is filled up from the first ones' rows.

    Neighbours in a file often answer one prompt, and its answers measure little of the distance to the reference.

    Args:
        count: how many rows.
        size: rows of a group.
        seed: draws the order.
    """
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed)).tolist()
    whole = list(itertools.islice(itertools.cycle(order), -(-count // size) * size))
    return [whole[begin : begin + size] for begin in range(0, len(whole), size)]


def judged_partition(rows: Sequence[JudgedRow], length: int, *, size: int, seed: int, filling: int) -> JudgedPartition:
    """Return groups as tensors, filled up at the end to the longest row, at most `length`.

    Within a group, each prompt's other answer is that of the row before it, and the first one's that of the last.

    Args:
        rows: answers with their prompts.
        length: most tokens of a row.
        size: answers of a group.
        seed: draws which rows share a group.
        filling: id of the token that fills shorter rows.
    """
    groups = groups_of(len(rows), size, seed)
    both: list[TokenRow] = []
    for group in groups:
        own = [rows[number].row for number in group]
        both += [*own, *(answered_by(row, own[place - 1], length) for place, row in enumerate(own))]
    verdicts = torch.tensor([[1.0 if rows[number].good else -1.0 for number in group] for group in groups])
    verdicts.view(-1)[len(rows) :] = 0.0
    tensors = _filled(both, length, filling)
    shaped: dict[str, Any] = {name: each.view(len(groups), 2, size, each.shape[-1]) for name, each in tensors.items()}
    return JudgedPartition(**shaped, verdicts=verdicts)


def pair_partition(pairs: Sequence[tuple[TokenRow, TokenRow]], length: int, *, filling: int) -> PairPartition:
    """Return pairs as tensors, filled up at the end to the longest row, at most `length`.

    Args:
        pairs: chosen and rejected row of each pair.
        length: most tokens of a row.
        filling: id of the token that fills shorter rows.
    """
    tensors = _filled([row for pair in pairs for row in pair], length, filling)
    shaped: dict[str, Any] = {name: each.view(len(pairs), 2, each.shape[-1]) for name, each in tensors.items()}
    return PairPartition(**shaped)


def _filled(rows: Sequence[TokenRow], length: int, filling: int) -> dict[str, Tensor]:
    """Return tokens, labels and documents of rows, (rows, tokens of the longest), at most `length`."""
    shape = (len(rows), min(length, max((len(row.tokens) for row in rows), default=1)))
    empty = {"tokens": filling, "labels": IGNORED, "documents": PADDING}
    made = {name: torch.full(shape, value) for name, value in empty.items()}
    for number, row in enumerate(rows):
        count = len(row.tokens)
        tokens, weights = torch.tensor(row.tokens), torch.tensor(row.weights)
        made["tokens"][number, :count] = tokens
        made["documents"][number, :count] = 0
        made["labels"][number, : count - 1] = tokens[1:].where(weights[1:] > 0, IGNORED)
    return made
