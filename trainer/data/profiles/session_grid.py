"""A block's bars as a table of sessions, so that `so far` is a running operation along a row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainer.data.bar import Floats
from trainer.data.profiles.session_blocks import Block
from trainer.data.sessions import Integers


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Places of flat bars in a table (sessions, longest session); `row` and `column` have shape (bars,)."""

    row: Integers
    column: Integers
    shape: tuple[int, int]

    @classmethod
    def of(cls, block: Block) -> Grid:
        """Return the grid of a block, bars in order of arrival from the left."""
        column = np.arange(len(block.bars)) - np.repeat(block.starts, block.counts)
        return cls(row=block.session, column=column, shape=(len(block.starts), int(block.counts.max())))

    def table(self, values: Floats, fill: float) -> Floats:
        """Return flat `values` as a table, `fill` right of a session's last bar."""
        table = np.full(self.shape, fill)
        table[self.row, self.column] = values
        return table

    def flat(self, table: Floats) -> Floats:
        """Return the table's values in the order of the bars."""
        return np.asarray(table[self.row, self.column])

    def running(self, values: Floats, operation: np.ufunc) -> Floats:
        """Return `operation` accumulated from each session's first bar; sums go bar by bar, in order."""
        return self.flat(operation.accumulate(self.table(values, 0.0), axis=1))

    def earlier(self, values: Floats, bars: int) -> Floats:
        """Return the value `bars` earlier in the same session, at most that of its first bar."""
        first = np.arange(len(values)) - self.column
        return np.asarray(values[np.maximum(np.arange(len(values)) - bars, first)])

    def first(self, values: Floats) -> Floats:
        """Return the session's first value, for each bar."""
        return np.asarray(values[np.arange(len(values)) - self.column])

    def first_above_zero(self, values: Floats) -> Integers:
        """Return the place of the session's first value above zero up to each bar; until there is one, of its first."""
        place = np.arange(len(values), dtype=np.float64)
        found = self.running(np.where(values > 0, place, np.inf), np.minimum)
        return np.where(np.isinf(found), place - self.column, found).astype(np.int64)
