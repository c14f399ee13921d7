"""Batch size by epoch: growing batches are an alternative to a falling learning rate."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from dataclasses import dataclass
from itertools import pairwise

MOST_EPOCHS, MOST_ROWS = 1_000_000, 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class BatchSchedule:
    """`changes` are pairs, the epochs rising: an epoch's number, from 1, and the rows of a batch from then on."""

    changes: tuple[tuple[int, int], ...] = ()

    def rows(self, epoch: int, first: int) -> int:
        """Return the rows of a batch in the epoch of this number, from 1; before all changes they are `first`."""
        return next((rows for since, rows in reversed(self.changes) if epoch >= since), first)

    def epochs(self, since: int, until: int) -> list[int]:
        """Return the epochs after `since` and before `until`, all counted from 0, that begin with another size."""
        return [number - 1 for number, _ in self.changes if since < number - 1 < until]

    def __str__(self) -> str:
        return ",".join(f"{since}:{rows}" for since, rows in self.changes) or "none"


CONSTANT = BatchSchedule()


def parse_batch_schedule(text: str) -> BatchSchedule:
    """Read `10:64,30:256`, or none.

    Raises:
        ArgumentTypeError: for anything else, and for epochs that do not rise.
    """
    if text == "none":
        return CONSTANT
    matches = [re.fullmatch(r"(\d{1,12}):(\d{1,12})", part.strip(), re.ASCII) for part in text.split(",")]
    changes = tuple((int(match[1]), int(match[2])) for match in matches if match)
    if len(changes) < len(matches):
        raise ArgumentTypeError(f"{text!r} is not a list of epoch:rows such as 10:64,30:256")
    if any(one >= other for (one, _), (other, _) in pairwise(changes)):
        raise ArgumentTypeError(f"{text!r} is not in the order of its epochs, each given once")
    if not all(2 <= since <= MOST_EPOCHS and 1 <= rows <= MOST_ROWS for since, rows in changes):
        raise ArgumentTypeError(
            f"{text!r} is not made of epochs from 2 on, of whose batches each has a row or more; "
            "the first epoch's batches are --batch-size"
        )
    return BatchSchedule(changes=changes)
