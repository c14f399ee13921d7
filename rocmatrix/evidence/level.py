"""Support level of a cell on a card: computed from records, never stored.

The rungs are those of one image, by its id: what passed in another one of the same inputs does not count for it. Where
several were built, the one that came farthest is shown. A failure counts for all of them, and stands until
a whole run of its kind, newer than it, has passed the same probe: a run of chosen probes takes a rung away and gives
none back. A run that was started and stated nothing has failed. Trouble of the host counts neither way.

What was done on a simulated machine is no evidence of the cell. It has a status of its own, by the same rules, which
shows what the chain from build to promotion does; it is named simulated, and nothing else is computed from it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal, Protocol

from rocmatrix.evidence.counted import required
from rocmatrix.evidence.record import Device, Kind, Mark, Record, ordered

Level = Literal["none", "rendered", "built", "proven", "smoked", "two-gpu", "trained"]
LEVELS: tuple[Level, ...] = ("none", "rendered", "built", "proven", "smoked", "two-gpu", "trained")
DECIDED_BY_NEWEST: tuple[Kind, ...] = ("build", "prove", "train")
ON_CARD: tuple[Kind, ...] = ("smoke", "train", "bench")
WITH_VERDICTS: tuple[Kind, ...] = ("prove", "smoke")
TWO_CARDS = "two_gpu_step"
NO_CARD = "-"
SUITE = "the suite"  # what a run has failed that names no failed probe: its own end
PASSED = required.PASSED
NOT_APPLICABLE_STATUSES = ("not-applicable", "not checked")  # neither passed nor failed
SIMULATED: Mark = "simulated"
OF_SIMULATION: tuple[Mark, ...] = (SIMULATED, "stand-in", "other-base")  # what a simulation is made of


Made = tuple[str | None, str | None]  # inputs and id of an image


class Released(Protocol):
    """Interface of a cell's release: its torch and its ROCm."""

    @property
    def torch(self) -> str:
        """The version of torch, such as 2.12.1."""

    @property
    def rocm(self) -> str | None:
        """The ROCm that it was built for, such as 7.2; None for the CPU's."""


class Subject(Protocol):
    """Interface of a cell: its name, the instruction set that it is for (None: the CPU) and its release."""

    @property
    def name(self) -> str:
        """The cell's name."""

    @property
    def architecture(self) -> str | None:
        """The gfx name, None for the CPU."""

    @property
    def release(self) -> Released:
        """The release that its image holds."""


@dataclass(frozen=True, kw_only=True)
class CellStatus:
    """A cell on a card. `at` is when its level was last seen, None for `rendered` and below.

    `failing` are the kinds of run with a failure that nothing has answered, `failures` its probes. `missing` are the
    rungs below the level that nothing shows (two-gpu, where one card was trained on). `took_part` are the cards that
    stepped together, `left_out` those that were there and did not. `set_aside` counts records that are marked, native
    or of another card, `troubles` those that the host's trouble ended. `current` states whether its image is made of
    what the checkout holds now, None where that was not compared. A `simulated` one is no evidence of the cell.
    """

    cell: str
    card: str
    level: Level
    at: str | None = None
    inputs: str | None = None
    image: str | None = None
    newest: bool = True
    failing: tuple[Kind, ...] = ()
    failures: tuple[str, ...] = ()
    missing: tuple[Level, ...] = ()
    took_part: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    set_aside: int = 0
    troubles: int = 0
    current: bool | None = None
    simulated: bool = False

    def age_days(self, now: datetime) -> float | None:
        """Days since the level was last seen."""
        return (now - instant(self.at)).total_seconds() / 86400 if self.at else None


def instant(text: str) -> datetime:
    """Read a record's time."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)


def why_not(  # noqa: PLR0911 -- one line a reason
    record: Record, cell: Subject, *, simulated: bool = False, images: Collection[Made] | None = None
) -> str | None:
    """Return why a record is no evidence for `cell`, None where it is.

    The outcome of a failed run is no reason: a card that did not answer has shown that.

    Args:
        simulated: judge for the status on simulated machines, which only simulated records raise.
        images: inputs and ids of the images that are known, see `known_images`; None leaves that comparison out.
    """
    if record.cell != cell.name:
        return f"it is of {record.cell}"
    if record.trouble is not None:
        return f"the host's trouble ({record.trouble.stage}) ended it: {record.trouble.words}"
    if record.kind == "bench":
        return "a bench shows how fast it is, and raises no level"
    if simulated and SIMULATED not in record.marks:
        return "it was not simulated"
    # neither data nor errors that a card counted excuse a failure
    marks = [mark for mark in record.marks if record.passed or mark not in ("synthetic", "card-errors")]
    if marks := [mark for mark in marks if not (simulated and mark in OF_SIMULATION)]:
        return f"marked {', '.join(marks)}"
    if record.kind in ("build", "prove"):
        return _unnamed(record) or (required.why_not(record) if held(record) else None)
    if record.where != "container" or not record.inputs:
        return "it did not run in the cell's image"
    if not held(record):
        return None
    if images is not None and (record.inputs, record.image) not in images:  # labels alone say what it was made of
        return "it ran in an image that no build or proof on record names"
    return of_another(record, cell, simulated=simulated) or required.why_not(record)


def of_another(record: Record, cell: Subject, *, simulated: bool = False) -> str | None:
    """Return why a run that passed shows another torch or another card than the cell's, None where it shows its own.

    Args:
        simulated: leave out the comparison of torch: an image of a simulation holds any.
    """
    # a training states none: the suite of the same image does, without which it raises nothing
    torch = record.versions.get("torch", "" if record.kind == "smoke" else cell.release.torch)
    if not simulated and not _is_of_release(torch, cell.release):
        return f"it ran torch {torch or '(not stated)'}, and the cell has {_named(cell.release)}"
    return _other_device(record, cell.architecture)


def _unnamed(record: Record) -> str | None:
    if not record.inputs:
        return "it does not say what the image was made of"
    return "it names no image" if record.passed and not record.image else None


def _is_of_release(torch: str, release: Released) -> bool:
    """Return whether a version of torch is the release's; a build that it names, such as +rocm6.4, has to be, too."""
    version, _, build = torch.partition("+")
    own = f"rocm{release.rocm}" if release.rocm else "cpu"
    return version == release.torch and (not build or build == own or build.startswith((f"{own}.", f"{own}-")))


def _named(release: Released) -> str:
    return f"{release.torch} of ROCm {release.rocm}" if release.rocm else f"{release.torch} for a CPU"


def held(record: Record) -> bool:
    """Return whether a run passed and its own verdicts bear that out: one that names no passed check has failed."""
    if not record.passed or record.kind not in WITH_VERDICTS:
        return record.passed
    statuses = {verdict.status for verdict in record.verdicts}
    return bool(statuses & {*PASSED}) and statuses <= {*PASSED, *NOT_APPLICABLE_STATUSES}


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


def cell_statuses(
    cell: Subject,
    records: Iterable[Record],
    *,
    rendered: bool,
    current_inputs: str | None = None,
    simulated: bool = False,
) -> tuple[CellStatus, ...]:
    """Return the status of `cell` on every card that was met, or one without a card. `records` in any order.

    Args:
        records: all records of the cell, in any order.
        rendered: the cell has a recipe in the checkout.
        current_inputs: input hash that the image would have now; None where it was not computed.
        simulated: take what was done on simulated machines alone; nothing where nothing was.
    """
    own = [record for record in ordered(records) if record.cell == cell.name and record.kind != "bench"]
    if simulated:
        own = [record for record in own if SIMULATED in record.marks]
        if not own:
            return ()
    images = known_images(own, cell, simulated=simulated)
    counted = [record for record in own if why_not(record, cell, simulated=simulated, images=images) is None]
    made = [record for record in counted if record.kind == "build"]
    inputs = made[-1].inputs if made else None
    of_inputs = [record for record in counted if record.inputs == inputs]
    troubles = sum(record.trouble is not None for record in own)
    aside = len(own) - len(counted) - troubles
    rebased = bool(made) and "other-base" in made[-1].marks  # its inputs name a base that the checkout does not
    current = None if rebased or current_inputs is None or inputs is None else inputs == current_inputs
    blank = CellStatus(
        cell=cell.name, card=NO_CARD, level="none", inputs=inputs, set_aside=aside, troubles=troubles, current=current,
        simulated=simulated,
    )  # fmt: skip
    built = _built(made, inputs)
    return tuple(
        _of_best_image(replace(blank, card=card), _of_card(of_inputs, card, cell), built, rendered=rendered)
        for card in cards_of(counted, cell)
    )


def _built(made: Sequence[Record], inputs: str | None) -> list[str | None]:
    """Return the ids of the images that were built of `inputs`, the newest first; None alone where none was."""
    found = dict.fromkeys(record.image for record in reversed(made) if record.inputs == inputs and held(record))
    return list(found) or [None]


def _of_best_image(
    blank: CellStatus, records: Sequence[Record], built: Sequence[str | None], *, rendered: bool
) -> CellStatus:
    """Return the status of the image that came farthest, of equal ones the newest.

    What failed counts for each of them: it failed on what they are made of.
    """
    found = [
        _cell_status(
            replace(blank, image=image, newest=image == built[0]),
            [record for record in records if record.image == image or not held(record)],
            rendered=rendered,
        )
        for image in built
    ]
    return max(found, key=lambda status: LEVELS.index(status.level))


def known_images(records: Iterable[Record], cell: Subject, *, simulated: bool = False) -> frozenset[Made]:
    """Return the images that a build made or a proof passed, each with its inputs, as far as these records count.

    Args:
        records: evidence, of any cells; those of others do not count.
        simulated: take the records of simulated machines, and those alone.
    """
    made = (r for r in records if r.kind in ("build", "prove") and held(r))
    return frozenset((r.inputs, r.image) for r in made if r.image and why_not(r, cell, simulated=simulated) is None)


def cards_of(records: Iterable[Record], cell: Subject) -> list[str]:
    """Return the cards that records of runs name, in order; NO_CARD alone where none does."""
    named = dict.fromkeys(card for record in records if (card := card_of(record, cell)) is not None)
    return list(named) or [NO_CARD]


def card_of(record: Record, cell: Subject) -> str | None:
    """Return the card that a run is about; None for a build or proof, and where no card of the cell's kind answered.

    A failure without a card is one of every card that the cell is known on; a pass without one shows none of these.
    """
    kind: Device = "rocm" if cell.architecture else "cpu"
    if record.kind not in ON_CARD or record.hardware.device != kind or record.card == NO_CARD:
        return None
    return record.card


def _of_card(records: Sequence[Record], card: str, cell: Subject) -> list[Record]:
    return [
        record
        for record in records
        if (of := card_of(record, cell)) == card
        or (of is None and not (record.kind in ON_CARD and held(record) and card != NO_CARD))
    ]


def _cell_status(blank: CellStatus, records: Sequence[Record], *, rendered: bool) -> CellStatus:
    newest = {kind: [r for r in records if r.kind == kind][-1:] for kind in DECIDED_BY_NEWEST}
    failures = unanswered([r for r in records if r.kind == "smoke"])
    failing = tuple(kind for kind, found in newest.items() if found and not held(found[0]))
    failing += ("smoke",) if failures else ()
    smokes = [r for r in records if r.kind == "smoke" and held(r) and r.whole]
    paired = [r for r in smokes if _two_cards(r)]
    newest_pair = [r for r in smokes if any(v.probe == TWO_CARDS and v.status == "pass" for v in r.verdicts)][-1:]
    shown: Mapping[Level, str | None] = {
        "rendered": "" if rendered else None,
        "built": _passed_at(newest["build"]),
        "proven": _passed_at(newest["prove"]),
        "smoked": smokes[-1].at if smokes and not failures else None,
        "two-gpu": paired[-1].at if paired and paired[-1:] == newest_pair and not failures else None,
        "trained": _passed_at(newest["train"]),
    }
    level = _climbed(shown)
    reached = LEVELS[: LEVELS.index(level)]
    took_part, left_out = _participants(paired if shown["two-gpu"] else [])
    return replace(
        blank,
        level=level,
        at=shown.get(level) or None,
        failing=failing,
        failures=failures,
        missing=tuple(rung for rung in reached if rung != "none" and shown[rung] is None),
        took_part=took_part,
        left_out=left_out,
    )


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
    return newest[0].at if newest and held(newest[0]) else None


def unanswered(runs: Sequence[Record]) -> tuple[str, ...]:
    """Return the probes of `runs` of one kind, oldest first, that failed and have not passed in a whole run since."""
    failed: dict[str, None] = {}
    for run in runs:
        for probe in _failed(run):
            failed[probe] = None
        if run.whole:
            for probe in _answered(run):
                failed.pop(probe, None)
    return tuple(failed)


def _failed(run: Record) -> Collection[str]:
    """Return what a run has failed: the probes, or where it names none, its own end."""
    named = [v.probe for v in run.verdicts if v.status not in (*PASSED, *NOT_APPLICABLE_STATUSES)]
    return named or ([] if held(run) else [SUITE])


def _answered(run: Record) -> Collection[str]:
    failed = set(_failed(run))
    passed = [v.probe for v in run.verdicts if v.status in PASSED and v.probe not in failed]
    return [*passed, *([SUITE] if not failed else [])]


def _two_cards(record: Record) -> bool:
    """Return whether two cards stepped together: the probe passed, and two cards took part.

    The host has to have two of one kind as well: a processor's own graphics is no second card.
    """
    found = next((v for v in record.verdicts if v.probe == TWO_CARDS and v.status == "pass"), None)
    if found is None:
        return False
    stepped = found.cards is None or len(set(found.cards)) > 1  # an older record does not say which
    return stepped and any(record.hardware.gfx.count(name) > 1 for name in record.hardware.seen)


def _participants(paired: Sequence[Record]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the cards that took part in any of these runs, and those of the newest that took part in none."""
    verdicts = [v for record in paired for v in record.verdicts if v.probe == TWO_CARDS and v.status == "pass"]
    took_part = tuple(dict.fromkeys(card for verdict in verdicts for card in verdict.cards or ()))
    present = verdicts[-1].present or () if verdicts else ()
    return took_part, tuple(card for card in present if card not in took_part)
