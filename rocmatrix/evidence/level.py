"""How far a cell is supported on a card: computed from records, never written down.

The rungs are those of one image: a proof or a smoke of other inputs says nothing of this one. Of builds, proofs and
smokes the newest decides, so that a failure takes its rung away; a training that ended early may have ended for
reasons of its own (Ctrl-C, the data), so it takes nothing away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal, Protocol

from rocmatrix.evidence.record import Kind, Record

Level = Literal["none", "rendered", "built", "proven", "smoked", "two-gpu", "trained"]
LEVELS: tuple[Level, ...] = ("none", "rendered", "built", "proven", "smoked", "two-gpu", "trained")
DECIDED_BY_NEWEST: tuple[Kind, ...] = ("build", "prove", "smoke")
TWO_CARDS = "two_gpu_step"
NO_CARD = "-"


class Subject(Protocol):
    """What is asked of a cell: its name, and the instruction set that it is for (None: the CPU)."""

    @property
    def name(self) -> str:
        """The cell's name."""

    @property
    def architecture(self) -> str | None:
        """The gfx name, None for the CPU."""


@dataclass(frozen=True, kw_only=True)
class Standing:
    """A cell on a card. `at` is when its level was last seen, None for `rendered` and below.

    `failing` are the kinds of run whose newest record failed, `missing` the rungs below the level that nothing shows
    (two-gpu, where one card was trained on). `set_aside` counts records that are marked, native, or of another card.
    `current` says whether its image is made of what the checkout holds now, None where nobody looked.
    """

    cell: str
    card: str
    level: Level
    at: str | None = None
    inputs: str | None = None
    failing: tuple[Kind, ...] = ()
    missing: tuple[Level, ...] = ()
    set_aside: int = 0
    current: bool | None = None

    def age_days(self, now: datetime) -> float | None:
        """Days since the level was last seen."""
        return (now - instant(self.at)).total_seconds() / 86400 if self.at else None


def instant(text: str) -> datetime:
    """Read a record's time."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)


def why_not(record: Record, cell: Subject) -> str | None:
    """Say why a record is no evidence for `cell`, None where it is."""
    if record.cell != cell.name:
        return f"it is of {record.cell}"
    if record.kind == "bench":
        return "a bench shows how fast it is, and raises no level"
    if record.marks:
        return f"marked {', '.join(record.marks)}"
    if record.kind in ("build", "prove"):
        return None if record.inputs else "it does not say what the image was made of"
    if record.where != "container" or not record.inputs:
        return "it did not run in the cell's image"
    return _other_device(record, cell.architecture)


def _other_device(record: Record, architecture: str | None) -> str | None:
    hardware = record.hardware
    if architecture is None:
        return None if hardware.device == "cpu" else f"it ran on {hardware.device}, and the cell is the CPU's"
    if hardware.device != "rocm":
        return f"it ran on {hardware.device}, and the cell is for {architecture}"
    if set(hardware.seen) != {architecture} or architecture not in hardware.gfx:
        seen = ", ".join(sorted({*hardware.seen, *hardware.gfx})) or "no card"
        return f"it met {seen}, and the cell is for {architecture}"
    return None


def standings(
    cell: Subject, records: Iterable[Record], *, rendered: bool, current_inputs: str | None = None
) -> tuple[Standing, ...]:
    """Return the standing of `cell` on every card that was met, or one without a card. `records` in any order."""
    own = sorted((r for r in records if r.cell == cell.name and r.kind != "bench"), key=lambda r: (r.at, r.id))
    counted = [record for record in own if why_not(record, cell) is None]
    made = [record for record in counted if record.kind == "build"]
    inputs = made[-1].inputs if made else None
    of_image = [record for record in counted if record.inputs == inputs]
    cards = list(dict.fromkeys(r.card for r in counted if r.kind not in ("build", "prove"))) or [NO_CARD]
    current = None if current_inputs is None or inputs is None else inputs == current_inputs
    return tuple(
        _standing(
            Standing(cell=cell.name, card=card, level="none", set_aside=len(own) - len(counted), current=current),
            _of_card(of_image, card),
            rendered=rendered,
            inputs=inputs,
        )
        for card in cards
    )


def _of_card(records: Sequence[Record], card: str) -> list[Record]:
    return [record for record in records if record.kind in ("build", "prove") or record.card == card]


def _standing(blank: Standing, records: Sequence[Record], *, rendered: bool, inputs: str | None) -> Standing:
    newest = {kind: [r for r in records if r.kind == kind][-1:] for kind in DECIDED_BY_NEWEST}
    failing = tuple(kind for kind, found in newest.items() if found and not found[0].passed)
    shown: Mapping[Level, str | None] = {
        "rendered": "" if rendered else None,
        "built": _passed_at(newest["build"]),
        "proven": _passed_at(newest["prove"]),
        "smoked": None if "smoke" in failing else _last_at(records, _smoked),
        "two-gpu": None if "smoke" in failing else _last_at(records, _two_cards),
        "trained": _last_at(records, lambda r: r.kind == "train" and r.passed),
    }
    level = _climbed(shown)
    reached = LEVELS[: LEVELS.index(level)]
    missing = tuple(rung for rung in reached if rung != "none" and shown[rung] is None)
    at = shown.get(level) or None
    return replace(blank, level=level, at=at, inputs=inputs, failing=failing, missing=missing)


def _climbed(shown: Mapping[Level, str | None]) -> Level:
    """Return the highest rung below which none is lacking; two cards are no condition for training on one."""
    level: Level = "none"
    for rung in LEVELS[1:]:
        if shown[rung] is not None:
            level = rung
        elif rung != "two-gpu":
            break
    return level


def _passed_at(newest: Sequence[Record]) -> str | None:
    return newest[0].at if newest and newest[0].passed else None


def _last_at(records: Sequence[Record], shows: Callable[[Record], bool]) -> str | None:
    return next((record.at for record in reversed(records) if shows(record)), None)


def _smoked(record: Record) -> bool:
    return record.kind == "smoke" and record.passed and record.whole


def _two_cards(record: Record) -> bool:
    """Whether two cards stepped together: the probe passed and the host has two of one kind."""
    gfx = record.hardware.gfx
    several = any(gfx.count(name) > 1 for name in record.hardware.seen)
    return (
        record.kind == "smoke" and several and any(v.probe == TWO_CARDS and v.status == "pass" for v in record.verdicts)
    )
