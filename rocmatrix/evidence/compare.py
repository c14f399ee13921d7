"""Two sets of records of one cell: what passed before and does not now, and which figures became worse."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from rocmatrix.evidence.record import Record

WORSE_BY = 0.10  # of the figure before: runs on one machine differ by a few per cent
PASSED = ("pass", "passed")
UNTOLD = ("not-applicable", "not checked")  # no verdict at all
What = Literal["regressed", "repaired", "slower", "faster", "grown", "vanished"]
Key = tuple[str, str, str]  # card, probe, name


@dataclass(frozen=True, kw_only=True)
class Change:
    """One difference. `regressed` and `vanished` are failures; figures carry no judgement of their own."""

    cell: str
    card: str
    probe: str
    what: What
    before: str
    after: str

    @property
    def failure(self) -> bool:
        """Whether something that worked does not, or was no longer asked."""
        return self.what in ("regressed", "vanished")

    @property
    def words(self) -> str:
        """The change in one line."""
        card = "" if self.card == "-" else f" on {self.card}"
        return f"{self.cell}{card}: {self.probe} {self.what}: {self.before} before, {self.after} now"


def compare(cell: str, before: Iterable[Record], after: Iterable[Record]) -> list[Change]:
    """Return the changes, failures first. Of several records of one kind and card the newest speaks.

    A probe that passed before and has no verdict now has vanished, where its kind of run was done at all on its card.
    """
    old, new = _verdicts(before), _verdicts(after)
    asked = {(card, kind) for card, kind, _ in new}
    changes = [
        Change(cell=cell, card=key[0], probe=key[2], what=what, before=was, after=new.get(key, "no verdict"))
        for key, was in old.items()
        if (what := _turn(was, new.get(key), asked=key[:2] in asked))
    ]
    changes += _figures(cell, _numbers(before), _numbers(after))
    return sorted(changes, key=lambda change: (not change.failure, change.cell, change.card, change.probe, change.what))


def _turn(was: str, now: str | None, *, asked: bool) -> What | None:
    if now is None:
        return "vanished" if was in PASSED and asked else None
    if (was in PASSED) == (now in PASSED):
        return None
    return "regressed" if was in PASSED else "repaired"


def _verdicts(records: Iterable[Record]) -> dict[Key, str]:
    told: dict[Key, str] = {}
    for record in sorted(records, key=lambda r: (r.at, r.id)):
        outcome = "passed" if record.passed else "failed"
        if not record.verdicts:
            told[record.card, record.kind, record.kind] = outcome
        for verdict in record.verdicts:
            if verdict.status not in UNTOLD:
                told[record.card, record.kind, verdict.probe] = verdict.status
    return told


def _numbers(records: Iterable[Record]) -> dict[tuple[str, str, str, str], float]:
    return {
        (record.card, number.probe, number.name, number.unit): number.value
        for record in sorted(records, key=lambda r: (r.at, r.id))
        for number in record.numbers
    }


def _figures(
    cell: str, old: Mapping[tuple[str, str, str, str], float], new: Mapping[tuple[str, str, str, str], float]
) -> Iterable[Change]:
    for key, was in old.items():
        if key not in new or was <= 0:
            continue
        card, probe, name, unit = key
        if what := _drift(unit, new[key] / was - 1):
            figures = (f"{was:.4g} {unit}", f"{new[key]:.4g} {unit}")
            yield Change(cell=cell, card=card, probe=f"{probe} {name}", what=what, before=figures[0], after=figures[1])


def _drift(unit: str, share: float) -> What | None:
    """Name a drift of rates, times and sizes by more than WORSE_BY; of other units nobody knows which way is worse."""
    if unit.endswith("/s") and abs(share) > WORSE_BY:
        return "faster" if share > 0 else "slower"
    if unit in ("s", "ms", "us") and abs(share) > WORSE_BY:
        return "slower" if share > 0 else "faster"
    return "grown" if unit == "B" and share > WORSE_BY else None
