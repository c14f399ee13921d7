"""One record of evidence: what ran, on what, what came of it. Its name is the hash of its content.

Which of two is the newer one follows from the sequence in which a file took them, not from a clock that may be set.
Within one evidence file (a series) the number decides. Records of different files are compared by time, where a
record counts as no earlier than any before it in its own file, so that a clock set back moves nothing behind, and as
no later than now: a clock that ran ahead puts nothing in front of what came since. A file that was copied and then
written on two machines has two records of one number: from there on its numbers state nothing, and times decide.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, FiniteFloat, StringConstraints

from rocmatrix.runtime.trouble import Stage

LOG_BYTES = 256 * 1024  # of a log's end; what stood before is counted and left out
Kind = Literal["build", "prove", "smoke", "train", "bench"]
Device = Literal["cpu", "rocm", "cuda", "none"]
Mark = Literal["stand-in", "synthetic", "simulated", "nvidia", "other-base", "unlocked", "forced", "card-errors"]
# Fields that came after the first records. At their defaults they are left out, so that older records keep their names.
LATER: dict[str, Any] = {"trouble": None, "cards": None, "present": None}
LATER_OF_HARDWARE: dict[str, Any] = {"ids": []}

# A model has a number or a code name: Radeon VII, Strix Halo. "AMD Radeon Graphics" has neither.
_OWN_NAME = re.compile(r"\b(?!amd\b|ati\b|radeon\b|instinct\b|ryzen\b|graphics\b|tm\b|r\b)\w+", re.IGNORECASE)
NAME = r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,199}$"
Name = Annotated[str, StringConstraints(pattern=NAME)]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Digest = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]


def _date(text: str) -> str:
    """Return the text. Raises ValueError for a day or an hour that no calendar has: a level's age is counted from it.

    Args:
        text: a time in the form of records.
    """
    try:
        datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError("it is no date") from error
    return text


Instant = Annotated[str, StringConstraints(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$"), AfterValidator(_date)]
Text = Annotated[str, StringConstraints(max_length=4000)]


class Strict(BaseModel):
    """Frozen; an unknown field or a number written as text is a mistake."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Number(Strict):
    """One figure worth keeping over time, in `unit`; `probe` is what measured it."""

    probe: Text
    name: Text
    value: FiniteFloat
    unit: Text


class Verdict(Strict):
    """What one probe, or one check of a proof, stated.

    `cards` are the cards that took part and `present` all that the probe saw, where it takes more than one; both are
    None in records of versions that did not say so.
    """

    probe: Text
    status: Text
    summary: Text = ""
    seconds: FiniteFloat = 0.0
    cards: tuple[Text, ...] | None = None
    present: tuple[Text, ...] | None = None


class Trouble(Strict):
    """Why a run is no evidence on the cell: the host failed at `stage`; `words` is what is known of it."""

    stage: Stage
    words: Text = ""


class Hardware(Strict):
    """What it ran on. `cards` are names as the program saw them, `gfx` what the kernel lists, one entry a card.

    `seen` are the instruction sets that the probes met: on ROCm gfx names without their features. `ids` are PCI ids
    with revision, of the host's cards of these sets.
    """

    device: Device
    cards: tuple[Text, ...] = ()
    gfx: tuple[Text, ...] = ()
    seen: tuple[Text, ...] = ()
    driver: Text | None = None
    kernel: Text | None = None
    ids: tuple[Text, ...] = ()


class Record(Strict):
    """One run. `inputs` is the hash of what the image was made of, None for a native run.

    `whole` is False for a smoke of chosen probes: it can fail a cell and never raise it. `night` names the nightly.
    `marks` say why it is no evidence of the cell itself: stand-ins, synthetic data, a card of another maker, a card
    whose error counters moved while it ran.
    `trouble` is set where the host, not the cell, ended the run: it then neither raises nor lowers a level.
    `log` is at most LOG_BYTES long; `log_omitted` counts the characters of its beginning that were left out.
    `series` and `number` are the record's place in the evidence file that it was first written to. They are no part
    of its content: its name, its JSON and its equality leave them out.
    """

    kind: Kind
    at: Instant
    cell: Name
    where: Literal["container", "native", "host"]
    passed: bool
    whole: bool = True
    seconds: FiniteFloat = 0.0
    image: Digest | None = None
    inputs: Sha256 | None = None
    night: Name | None = None
    marks: tuple[Mark, ...] = ()
    hardware: Hardware
    versions: dict[str, str] = Field(default_factory=dict)
    verdicts: tuple[Verdict, ...] = ()
    numbers: tuple[Number, ...] = ()
    commit: Text | None = None
    trouble: Trouble | None = None
    log: str = ""
    log_omitted: int = 0
    series: Text = Field(default="", exclude=True, repr=False)
    number: int = Field(default=0, ge=0, le=2**53, exclude=True, repr=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and self.model_dump() == other.model_dump()

    __hash__ = None  # type: ignore[assignment]  # its versions are a dictionary

    @property
    def id(self) -> str:
        """The sha256 of the record's canonical JSON."""
        return named(self.content())

    def content(self) -> dict[str, Any]:
        """Return it as plain data, without later fields that say nothing."""
        data = self.model_dump(mode="json")
        data["verdicts"] = [_recorded(verdict) for verdict in data["verdicts"]]
        data["hardware"] = _recorded(data["hardware"], LATER_OF_HARDWARE)
        return _recorded(data)

    @property
    def card(self) -> str:
        """The card that it is about: its name, or what stands in the place of one.

        The driver calls many an APU "AMD Radeon Graphics", any card where it finds no table of names, and two cards
        "MI60 / MI50": such a name is given with its instruction set and PCI id, unless cards of other names ran with
        it, whose sets and ids are listed with its own.
        """
        alone = len(set(self.hardware.cards)) == 1
        seen = ", ".join((*self.hardware.seen, *self.hardware.ids)) if alone else ""
        names = sorted({f"{n} ({seen})" if seen and not _is_of_one(n) else n for n in self.hardware.cards})
        return " + ".join(names) or {"cpu": "CPU"}.get(self.hardware.device, "-")

    def described(self) -> dict[str, Any]:
        """Return it as plain data, its name first."""
        return {"id": self.id, **self.content()}

    @classmethod
    def bounded(cls, *, log: str, **fields: Any) -> Self:
        """Make a record that keeps the end of `log`."""
        kept = log.encode()[-LOG_BYTES:].decode(errors="ignore")
        return cls(log=kept, log_omitted=len(log) - len(kept), **fields)


def once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON; for `object_pairs_hook`.

    Args:
        pairs: its keys and values in order.

    Raises:
        ValueError: A key stands twice: whoever reads the first value has read another record.
    """
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def is_name(text: str) -> bool:
    """Return whether a record can bear `text` as the name of its cell or night."""
    return re.fullmatch(NAME, text) is not None


def named(content: Mapping[str, Any]) -> str:
    """Return the name of a record by its content: the sha256 of its canonical JSON.

    Args:
        content: the record as plain data, with its log.
    """
    canonical = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def _is_of_one(name: str) -> bool:
    return _OWN_NAME.search(name) is not None and " / " not in name


def _recorded(data: dict[str, Any], later: Mapping[str, Any] = LATER) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name not in later or value != later[name]}


def present() -> str:
    """Return this moment, as records have it: to the millisecond, for the newest decides."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z"


def ordered(records: Iterable[Record], *, now: str | None = None) -> list[Record]:
    """Return records, oldest first, in whatever order they come. Those of no file yet stand by their times.

    Args:
        records: records of any files.
        now: time that none can be later than, as records have it; None for this moment.
    """
    found = list(records)
    forks = _forks(found)
    times = _times(found, forks, now or present())

    def place(record: Record) -> tuple[str, int, str]:
        stands = record.series and not _is_forked(record, forks)  # two of a copied file may have one number
        return times[id(record)], record.number, record.series if stands else record.id

    return sorted(found, key=place)


def _times(records: Iterable[Record], forks: Mapping[str, int], now: str) -> dict[int, str]:
    """Return the time by which each record stands, by its identity: no later than `now`, none before its own file's.

    Args:
        forks: first number of each file that states nothing.
        now: time that none can be later than.
    """
    placed = sorted(records, key=lambda r: (r.number, r.at))
    times = _until(placed, now)
    latest: dict[str, str] = {}
    for record in placed:
        if record.series:
            times[id(record)] = at = max(times[id(record)], latest.get(record.series, ""))
            if not _is_forked(record, forks):
                latest[record.series] = at
    return times


def _until(placed: Sequence[Record], now: str) -> dict[int, str]:
    """Return each record's time; for one that is yet to come that of the next record of its file, or `now`."""
    times: dict[int, str] = {}
    following: dict[str, str] = {}
    for record in reversed(placed):
        times[id(record)] = record.at if record.at <= now else following.get(record.series, now)
        if record.series:
            following[record.series] = times[id(record)]
    return times


def _forks(records: Iterable[Record]) -> dict[str, int]:
    """Return the first number that two records share, of each file that was copied and then written on both sides."""
    held: dict[tuple[str, int], Record] = {}
    forks: dict[str, int] = {}
    for record in records:
        first = held.setdefault((record.series, record.number), record)
        if record.series and first is not record and first != record:
            forks[record.series] = min(record.number, forks.get(record.series, record.number))
    return forks


def _is_forked(record: Record, forks: Mapping[str, int]) -> bool:
    return record.series in forks and record.number >= forks[record.series]
