"""Comparison of two sets of records of one cell: what passed before and does not now, and which figures got worse."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rocmatrix.evidence.level import NOT_APPLICABLE_STATUSES, ON_CARD, PASSED
from rocmatrix.evidence.record import Record, ordered

WORSE_BY = 0.10  # of the figure before: runs on one machine differ by a few per cent
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
    def summary(self) -> str:
        """The change in one line."""
        card = "" if self.card == "-" else f" on {self.card}"
        return f"{self.cell}{card}: {self.probe} {self.what}: {self.before} before, {self.after} now"


def compare(cell: str, before: Iterable[Record], after: Iterable[Record]) -> list[Change]:
    """Return the changes, failures first. Of several records of one kind and card the newest decides.

    A probe that passed before and has no verdict now has vanished, where its kind of run was done at all on its card.
    A failed run in which no card answered is one of each card before. Runs that the host's trouble ended are left out.

    Args:
        cell: the cell\'s whole name, such as rocm7.2-torch2.12.1-gfx1100.
        before: records of the earlier night, in any order.
        after: records of the later night, in any order.
    """
    before, after = _decided(before), _decided(after)
    old = _verdicts(before)
    new = _verdicts(after, cards=tuple(dict.fromkeys(card for card, kind, _ in old if kind in ON_CARD)))
    checked = {(card, kind) for card, kind, _ in new}
    _expect_whole_ends(old, new)
    changes = [
        Change(cell=cell, card=key[0], probe=key[2], what=what, before=was, after=new.get(key, "no verdict"))
        for key, was in old.items()
        if (what := _turn(was, new.get(key), checked=key[:2] in checked))
    ]
    changes += _figures(cell, _numbers(before), _numbers(after))
    return sorted(changes, key=lambda change: (not change.failure, change.cell, change.card, change.probe, change.what))


def _turn(was: str, now: str | None, *, checked: bool) -> What | None:
    if now is None:
        return "vanished" if was in PASSED and checked else None
    if (was in PASSED) == (now in PASSED):
        return None
    return "regressed" if was in PASSED else "repaired"


def _decided(records: Iterable[Record]) -> list[Record]:
    return [record for record in ordered(records) if record.trouble is None]


def _verdicts(records: Iterable[Record], cards: Sequence[str] = ()) -> dict[Key, str]:
    """Return the newest verdict of each probe. `cards` are those that a run without any card is held against."""
    reported: dict[Key, str] = {}
    for record in records:
        lost = record.kind in ON_CARD and not record.passed and record.hardware.device in ("none", "cpu")
        lost = lost and record.card not in cards
        for card in (cards or (record.card,)) if lost else (record.card,):
            reported |= {(card, record.kind, probe): status for probe, status in _outcomes(record).items()}
    return reported


def _expect_whole_ends(old: dict[Key, str], new: Mapping[Key, str]) -> None:
    """Let a run that passed before stand for its own end, where that is what failed now."""
    kinds = {key[:2] for key, status in old.items() if status in PASSED}
    for card, kind, probe in new:
        if probe == kind and (card, kind) in kinds:
            old.setdefault((card, kind, probe), "passed")


def _outcomes(record: Record) -> dict[str, str]:
    """Return the outcome of each probe, and the run's own where its verdicts leave it open.

    A probe that stated two things in one run, a failure among them, has failed.
    """
    verdicts = [(v.probe, v.status) for v in record.verdicts if v.status not in NOT_APPLICABLE_STATUSES]
    agreed = record.passed or any(verdict.status not in PASSED for verdict in record.verdicts)
    own = {} if verdicts and agreed else {record.kind: "passed" if record.passed else "failed"}
    passed = {probe: status for probe, status in verdicts if status in PASSED}
    return passed | {probe: status for probe, status in verdicts if status not in PASSED} | own


def _numbers(records: Iterable[Record]) -> dict[tuple[str, str, str, str], float]:
    return {
        (record.card, number.probe, number.name, number.unit): number.value
        for record in records
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
    """Name a drift of rates, times and sizes by more than WORSE_BY; other units have no known direction."""
    if unit.endswith("/s") and abs(share) > WORSE_BY:
        return "faster" if share > 0 else "slower"
    if unit in ("s", "ms", "us") and abs(share) > WORSE_BY:
        return "slower" if share > 0 else "faster"
    return "grown" if unit == "B" and share > WORSE_BY else None
