"""From a job that has ended to its record: only what the job itself stated, in its JSON lines and by its status."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rocmatrix.evidence.record import Device, Hardware, Kind, Mark, Number, Record, Verdict
from rocmatrix.runtime.paths import ROOT

if TYPE_CHECKING:
    from rocmatrix.host import hardware as machine
    from rocmatrix.jobs.runner import Event, Finished
    from rocmatrix.matrix.matrix import Cell
    from rocmatrix.verify.proof import Proof

STAND_IN = "ROCMATRIX_STAND_IN"  # says in words what stands in for something real; the record is marked
DEVICES: tuple[Device, ...] = ("cpu", "rocm", "cuda")
NOT_APPLICABLE = "not-applicable"  # a probe that this machine gives nothing to: it neither passed nor failed
_WORDS = 4000


def now() -> str:
    """Return this moment, as records have it: to the millisecond, for the newest decides."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z"


def marks_of(cell: Cell, *, base: str | None = None, forced: bool = False) -> tuple[Mark, ...]:
    """Return what sets a run in the image of `cell` aside: another base, no lock, a rule overridden, a stand-in."""
    other = base is not None and not (cell.base.digest and base.endswith(f"@{cell.base.digest}"))
    found: dict[Mark, bool] = {
        "stand-in": bool(os.environ.get(STAND_IN)),
        "other-base": other,
        "unlocked": cell.unlocked_because is not None,
        "forced": forced,
    }
    return tuple(mark for mark, holds in found.items() if holds)


def image_numbers(size: int) -> tuple[Number, ...]:
    """Return an image's size as the engine counts it, in bytes."""
    return (Number(probe="image", name="size", value=float(size), unit="B"),)


def of_build(
    cell: Cell, *, inputs: str, image: str | None, seconds: float, log: str, marks: Sequence[Mark], **more: Any
) -> Record:
    """Make the record of a build; `image` is None where it failed."""
    return Record.bounded(
        kind="build", at=now(), cell=cell.name, where="host", passed=image is not None, seconds=round(seconds, 3),
        image=image, inputs=inputs, marks=tuple(marks), hardware=Hardware(device="none"),
        versions=_versions_of(cell), log=log, **more,
    )  # fmt: skip


def of_proof(
    cell: Cell, proof: Proof, *, inputs: str | None, image: str | None, marks: Sequence[Mark], **more: Any
) -> Record:
    """Make the record of a proof of an image's files."""
    verdicts = tuple(
        Verdict(probe=check.name, status=check.status, summary=check.summary[:_WORDS]) for check in proof.checks
    )
    return Record.bounded(
        kind="prove", at=now(), cell=cell.name, where="host", passed=proof.proven, image=image, inputs=inputs,
        marks=tuple(marks), hardware=Hardware(device="none"), versions=_versions_of(cell), verdicts=verdicts,
        log="\n".join(finding.words for finding in proof.findings), **more,
    )  # fmt: skip


def of_smoke(cell: Cell, done: Finished, host: machine.Hardware, **place: Any) -> Record:
    """Make the record of a smoke suite. `place` are the record's where, image, inputs, marks, whole, commit."""
    return _of_verdicts("smoke", cell, done, host, **place)


def of_bench(cell: Cell, done: Finished, host: machine.Hardware, **place: Any) -> Record:
    """Make the record of a bench: its verdicts, and the figures with their spreads. `place` as for a smoke suite."""
    return _of_verdicts("bench", cell, done, host, **place)


def _of_verdicts(kind: Kind, cell: Cell, done: Finished, host: machine.Hardware, **place: Any) -> Record:
    told = [event for event in done.events if event.get("event") == "probe"]
    verdicts = tuple(_verdict(event) for event in told)
    versions: dict[str, str] = {}
    for event in told:
        versions |= {name: str(value) for name, value in (event.get("versions") or {}).items() if value is not None}
    told_of = {verdict.status for verdict in verdicts}
    passed = done.status == 0 and "pass" in told_of and told_of <= {"pass", NOT_APPLICABLE}
    return _of_job(
        kind, cell, done, _hardware([event.get("device") for event in told], host), passed=passed,
        verdicts=verdicts, numbers=tuple(numbers_of(told)), versions=versions or _versions_of(cell), **place,
    )  # fmt: skip


def of_train(cell: Cell, done: Finished, host: machine.Hardware, **place: Any) -> Record:
    """Make the record of a training run: its device, its data, its last figures."""
    start, end = done.last("start") or {}, done.last("done")
    if str((start.get("data") or {}).get("source") or "").casefold().startswith("synthetic"):
        place["marks"] = (*place.get("marks", ()), "synthetic")
    verdict = Verdict(probe="train", status="pass" if end and done.status == 0 else f"ended with {done.status}")
    return _of_job(
        "train", cell, done, _hardware([start.get("device")], host), passed=done.status == 0 and end is not None,
        verdicts=(verdict,), numbers=tuple(_figures(done)), versions=_versions_of(cell), **place,
    )  # fmt: skip


def _of_job(kind: Any, cell: Cell, done: Finished, hardware: Hardware, **fields: Any) -> Record:
    marks = tuple(dict.fromkeys((*fields.pop("marks", ()), *(("nvidia",) if hardware.device == "cuda" else ()))))
    told = [json.dumps(event, ensure_ascii=False) for event in done.events]
    log = "\n".join([*told, done.last_words.decode(errors="replace"), *_whole_log(done)])
    return Record.bounded(
        kind=kind, at=now(), cell=cell.name, hardware=hardware, marks=marks, log=log, **fields
    )  # fmt: skip


def _whole_log(done: Finished) -> Iterable[str]:
    """Name the file with the whole log, below the checkout where it is there: a record may be sent to others."""
    if done.log is not None:
        inside = done.log.is_relative_to(ROOT)
        yield f"whole log: {done.log.relative_to(ROOT) if inside else done.log.name}"


def _versions_of(cell: Cell) -> dict[str, str]:
    return {"torch": cell.release.torch, "python": cell.python, **({"rocm": r} if (r := cell.release.rocm) else {})}


def _verdict(event: Event) -> Verdict:
    return Verdict(
        probe=str(event.get("probe"))[:_WORDS],
        status=str(event.get("status"))[:_WORDS],
        summary=str(event.get("summary") or "")[:_WORDS],
        seconds=_finite(event.get("seconds")) or 0.0,
    )


def numbers_of(events: Iterable[Event]) -> Iterable[Number]:
    """Yield the numbers of verdicts; what is none (a NaN is null in JSON) is left out."""
    for event in events:
        for told in event.get("numbers") or ():
            if (value := _finite(told.get("value"))) is not None:
                yield Number(
                    probe=str(event.get("probe")), name=str(told.get("name")), value=value,
                    unit=str(told.get("unit") or ""),
                )  # fmt: skip


def _figures(done: Finished) -> Iterable[Number]:
    epochs = [event for event in done.events if event.get("event") == "epoch"]
    rates = [rate for event in epochs if (rate := _finite(event.get("rows_per_second"))) is not None]
    if rates:
        yield Number(probe="train", name="rows_per_second", value=sorted(rates)[len(rates) // 2], unit="1/s")
    end = done.last("done") or {}
    if (loss := _finite((end.get("best") or {}).get("validation_loss"))) is not None:
        yield Number(probe="train", name="best_validation_loss", value=loss, unit="1")


def _finite(value: Any) -> float | None:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if number and math.isfinite(value) else None


def _hardware(told: Sequence[Mapping[str, Any] | None], host: machine.Hardware) -> Hardware:
    devices = [device for device in told if device]
    kinds = {str(device.get("kind")) for device in devices}
    kind: Device = next((known for known in DEVICES if kinds == {known}), "none")
    names = {str(device.get("name"))[:_WORDS] for device in devices} if kind != "cpu" else set()
    driver = f"{host.driver.version} ({host.driver.origin})" if host.driver else None
    return Hardware(
        device=kind,
        cards=tuple(sorted(names)),
        gfx=tuple(card.gfx for card in host.cards if card.gfx),
        seen=tuple(sorted({str(device.get("arch")).split(":")[0] for device in devices})) if kind != "cpu" else (),
        driver=driver,
        kernel=host.kernel,
    )
