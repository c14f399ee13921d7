"""Price bars in time order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

NUMBERS = ("open", "high", "low", "close", "volume", "vix_close")

Floats = NDArray[np.float64]
Dates = NDArray[np.datetime64]


@dataclass(frozen=True, kw_only=True)
class Bars:
    """Bars in time order, oldest first; each array has shape (bars,) and cannot be written to.

    Prices are in the currency or points of the file, `volume` in shares or contracts, `vix_close` in
    VIX points (annualised per cent), or None where the data has none. `date` has second resolution, in UTC;
    days without a time of day are midnight of their date, in no zone.
    """

    date: Dates
    open: Floats
    high: Floats
    low: Floats
    close: Floats
    volume: Floats
    vix_close: Floats | None = None

    def __post_init__(self) -> None:
        for array in vars(self).values():
            if array is not None:
                array.setflags(write=False)

    def __len__(self) -> int:
        return len(self.date)

    def __getitem__(self, rows: slice) -> Bars:
        return self._picked(rows)

    def where(self, rows: NDArray[np.bool_]) -> Bars:
        """Return the bars for which `rows`, shape (bars,), is true."""
        return self._picked(rows)

    def at(self, places: NDArray[np.int64]) -> Bars:
        """Return the bars at `places`, in that order."""
        return self._picked(places)

    def _picked(self, rows: slice | NDArray[np.bool_] | NDArray[np.int64]) -> Bars:
        columns: dict[str, Any] = {name: None if v is None else v[rows] for name, v in vars(self).items()}
        return Bars(**columns)


def joined(parts: Sequence[Bars]) -> Bars:
    """Return the bars of all `parts`, one after the other."""
    lists = {name: [getattr(part, name) for part in parts] for name in vars(parts[0])}
    columns: dict[str, Any] = {name: None if v[0] is None else np.concatenate(v) for name, v in lists.items()}
    return Bars(**columns)
