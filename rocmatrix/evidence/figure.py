"""Numbers of a record as figures: each with its spread, where the program that measured it gave one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rocmatrix.evidence.record import Number

SPREAD = " spread"  # what the trainer's benchmarks add to a figure's name, in per cent of its median
COLUMNS = ("BENCHMARK", "FIGURE", "MEDIAN", "UNIT", "SPREAD")


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One number in `unit`; `spread` is the interquartile range of its samples, in per cent of the median."""

    probe: str
    name: str
    value: float
    unit: str
    spread: float | None = None

    @property
    def spread_text(self) -> str:
        """The spread with its unit, `-` where none was taken."""
        return "-" if self.spread is None else f"{self.spread:g} %"

    @property
    def row(self) -> tuple[str, ...]:
        """The figure under COLUMNS."""
        return self.probe, self.name, f"{self.value:.4g}", self.unit, self.spread_text


def figures(numbers: Iterable[Number]) -> tuple[Figure, ...]:
    """Return every number that is no spread of another, in their order."""
    reported = {(number.probe, number.name): number for number in numbers}
    found = []
    for (probe, name), number in reported.items():
        if name.endswith(SPREAD) and (probe, name.removesuffix(SPREAD)) in reported:
            continue
        spread = reported.get((probe, name + SPREAD))
        found.append(
            Figure(
                probe=probe, name=name, value=number.value, unit=number.unit, spread=spread.value if spread else None
            )
        )
    return tuple(found)
