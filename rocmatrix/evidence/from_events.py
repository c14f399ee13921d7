"""Record of a finished job, from its JSON lines and its status alone."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_args

from rocmatrix.evidence.level import PASSED
from rocmatrix.evidence.record import Device, Hardware, Kind, Mark, Number, Record, Trouble, Verdict, present
from rocmatrix.host import simulated
from rocmatrix.host.inventory import pci_id
from rocmatrix.images import labels as image_labels
from rocmatrix.jobs.programs import BENCH, PROGRAMS, SMOKE, TRAIN
from rocmatrix.runtime.paths import ROOT

if TYPE_CHECKING:
    from rocmatrix.host import hardware as machine
    from rocmatrix.jobs.runner import Event, Finished
    from rocmatrix.matrix.matrix import Cell
    from rocmatrix.runtime.trouble import Trouble as HostTrouble
    from rocmatrix.verify.proof import Proof

STAND_IN = image_labels.STAND_IN_VARIABLE  # set, it marks records as well as the images that are built
DEVICES: tuple[Device, ...] = ("cpu", "rocm", "cuda")
NOT_APPLICABLE = "not-applicable"  # a probe that this machine gives nothing to: it neither passed nor failed
NO_VERDICT = "no verdict"  # a probe that was asked for and stated nothing: it failed
SIZE, FILES = "size", "files"  # the number of a proof: the bytes of the image's files
TEXT_LIMIT = 4000


def now() -> str:
    """Return this moment, as records have it: to the millisecond, for the newest decides."""
    return present()


def marks_of(
    cell: Cell,
    *,
    labels: Mapping[str, str] | None = None,
    base: str | None = None,
    forced: bool = False,
    host: machine.Hardware | None = None,
) -> tuple[Mark, ...]:
    """Return what sets a run of `cell` aside: another base, no lock, a rule overridden, a stand-in, a simulation.

    `labels` are those of the image that it ran in. Where it has none (a native run, a build that failed), `base` is
    what was to be built on.

    Args:
        labels: labels of the image that it ran in; None for a native run or a build that failed.
        base: reference of the base that was to be built on, where there are no labels.
        forced: a rule that forbids the cell was overridden.
        host: the machine that it ran on.
    """
    image_marks = labels if labels is not None else {image_labels.BASE: base or ""}
    found = image_labels.marks(image_marks, own_digest=cell.base.digest)
    found["stand-in"] |= bool(os.environ.get(STAND_IN))
    found["simulated"] |= simulated.root() is not None or (host is not None and host.simulated)
    found["unlocked"] |= cell.unlocked_because is not None
    found["forced"] |= forced
    return tuple(mark for mark in get_args(Mark) if found.get(mark))


def image_numbers(size: int) -> tuple[Number, ...]:
    """Return an image's size as the engine counts it, in bytes."""
    return (Number(probe="image", name="size", value=float(size), unit="B"),)


def of_build(
    cell: Cell, *, inputs: str, image: str | None, seconds: float, log: str, marks: Sequence[Mark], **more: Any
) -> Record:
    """Make the record of a build; `image` is None where it failed.

    Args:
        inputs: input hash of the image.
        image: id of the image; None where the build failed.
        seconds: duration of the build.
        log: BuildKit's output, or the error.
        marks: what sets the build aside.
        more: further fields of `Record`.
    """
    return Record.bounded(
        kind="build", at=now(), cell=cell.name, where="host", passed=image is not None, seconds=round(seconds, 3),
        image=image, inputs=inputs, marks=tuple(marks), hardware=Hardware(device="none"),
        versions=_versions_of(cell), log=log, **more,
    )  # fmt: skip


def of_proof(
    cell: Cell, proof: Proof, *, inputs: str | None, image: str | None, marks: Sequence[Mark], **more: Any
) -> Record:
    """Make the record of a proof of an image's files.

    Args:
        inputs: input hash of the image; None where its labels have none.
        image: id of the image; None where it is not known.
        marks: what sets the proof aside.
        more: further fields of `Record`.
    """
    verdicts = tuple(
        Verdict(probe=check.name, status=check.status, summary=check.summary[:TEXT_LIMIT]) for check in proof.checks
    )
    sizes = [check.data["bytes"] for check in proof.checks if check.name == SIZE and "bytes" in check.data]
    numbers = tuple(Number(probe=SIZE, name=FILES, value=float(size), unit="B") for size in sizes)
    return Record.bounded(
        kind="prove", at=now(), cell=cell.name, where="host", passed=proof.proven, image=image, inputs=inputs,
        marks=tuple(marks), hardware=Hardware(device="none"), versions=_versions_of(cell), verdicts=verdicts,
        numbers=numbers, log="\n".join(finding.summary for finding in proof.findings), **more,
    )  # fmt: skip


def of_lost_proof(
    cell: Cell, error: BaseException, *, inputs: str | None, image: str | None, marks: Sequence[Mark],
    trouble: Trouble | None, **more: Any,
) -> Record:  # fmt: skip
    """Make the record of a proof that ended before its verdict; without `trouble` of the host it counts as failed.

    Args:
        error: what ended the proof.
        inputs: input hash of the image; None where its labels have none.
        image: id of the image; None where it is not known.
        marks: what sets the proof aside.
        more: further fields of `Record`.
    """
    words = f"{type(error).__name__}: {error}"
    verdicts = () if trouble else (Verdict(probe="proof", status=NO_VERDICT, summary=words[:TEXT_LIMIT]),)
    return Record.bounded(
        kind="prove", at=now(), cell=cell.name, where="host", passed=False, image=image, inputs=inputs,
        marks=tuple(marks), hardware=Hardware(device="none"), versions=_versions_of(cell), verdicts=verdicts,
        trouble=trouble, log=words, **more,
    )  # fmt: skip


def of_smoke(cell: Cell, done: Finished, host: machine.Hardware, **place: Any) -> Record:
    """Make the record of a smoke suite. `place` are the record's where, image, inputs, marks, whole, commit.

    Args:
        done: end of the suite: status and events.
        host: hardware of the machine that it ran on.
        place: where, image, inputs, marks, whole and commit of the record.
    """
    return _of_verdicts("smoke", cell, done, host, **place)


def of_bench(cell: Cell, done: Finished, host: machine.Hardware, **place: Any) -> Record:
    """Make the record of a bench: its verdicts, and the figures with their spreads. `place` as for a smoke suite.

    Args:
        done: end of the bench: status and events.
        host: hardware of the machine that it ran on.
        place: fields of the record, as for a smoke suite.
    """
    return _of_verdicts("bench", cell, done, host, **place)


def _of_verdicts(
    kind: Kind, cell: Cell, done: Finished, host: machine.Hardware, *, requested: Sequence[str] = (), **place: Any
) -> Record:
    reported = [event for event in done.events if event.get("event") == "probe"]
    stated = [_verdict(event) for event in reported]
    verdicts = (*stated, *_unstated(requested, stated, done))
    versions = _stated_versions(reported)
    statuses = {verdict.status for verdict in verdicts}
    passed = done.status == 0 and "pass" in statuses and statuses <= {"pass", NOT_APPLICABLE}
    return _of_job(
        kind, cell, done, _hardware([event.get("device") for event in reported], host), passed=passed,
        verdicts=verdicts, numbers=tuple(numbers_of(reported)),
        versions=versions or ({} if passed else _versions_of(cell)),
        **place,
    )  # fmt: skip


def _stated_versions(reported: Sequence[Event]) -> dict[str, str]:
    """Return the versions that probes state; where they differ, all of one name: no release is made of two."""
    found: dict[str, dict[str, None]] = {}
    for event in reported:
        for name, value in _mapping(event.get("versions")).items():
            if value:
                found.setdefault(str(name), {})[str(value)] = None
    return {name: " and ".join(values) for name, values in found.items()}


def _unstated(requested: Sequence[str], stated: Sequence[Verdict], done: Finished) -> Iterable[Verdict]:
    """Yield a failure for each probe that was asked for and gave no verdict; none where the host ended the suite."""
    known = {verdict.probe for verdict in stated}
    for probe in requested if done.trouble is None else ():
        if probe not in known:
            yield Verdict(probe=probe, status=NO_VERDICT, summary=f"The suite ended with status {done.status} before.")


def of_train(
    cell: Cell, done: Finished, host: machine.Hardware, *, requested: Sequence[str] = (), **place: Any
) -> Record:
    """Make the record of a training run: its device, its data, its last figures.

    Args:
        done: end of the run: status and events.
        host: hardware of the machine that it ran on.
        requested: names of the probes that must give a verdict; one without counts as failed.
        place: fields of the record, as for a smoke suite.
    """
    start, end = done.last("start") or {}, done.last("done")
    if str(_mapping(start.get("data")).get("source")).casefold().startswith("synthetic"):
        place["marks"] = (*place.get("marks", ()), "synthetic")
    whole = end is not None and done.status == 0
    untrained = _untrained(done) if whole else ""
    passed = whole and not untrained
    verdict = Verdict(probe="train", status="pass" if passed else f"ended with {done.status}", summary=untrained)
    return _of_job(
        "train", cell, done, _hardware([start.get("device")], host), passed=passed,
        verdicts=(verdict,) if done.host_trouble is None else (), numbers=tuple(_figures(done)),
        versions=_versions_of(cell), **place,
    )  # fmt: skip


def _untrained(done: Finished) -> str:
    """Return why a run that reached its end has shown no training: nothing measured, or its last loss is no number."""
    measured = done.last("epoch")
    if measured is None:
        return "it took no step that was measured"
    void = [name for name in LOSSES if name in measured and _finite(measured[name]) is None]
    return f"its last {void[0]} is no number" if void else ""


LOSSES = ("train_loss", "validation_loss")
EPOCHS = "epochs"  # how long a training was: losses of unlike ones are not drawn as one line
BEST_LOSS = "best_validation_loss"
# How the run of each recorded program becomes a record, by the program's name.
OF_PROGRAM: Mapping[str, Callable[..., Record]] = {
    SMOKE.name: of_smoke,
    BENCH.name: of_bench,
    TRAIN.name: of_train,
}


def _of_job(kind: Any, cell: Cell, done: Finished, hardware: Hardware, **fields: Any) -> Record:
    # Where the kernel lists an AMD card, a run that failed is not believed that it had met another maker's.
    nvidia = hardware.device == "cuda" and (fields["passed"] or not hardware.gfx)
    ailing = any(event.get("event") == "health" and event.get("moved") for event in done.events)
    more = (*(("nvidia",) if nvidia else ()), *(("card-errors",) if ailing else ()))
    marks = tuple(dict.fromkeys((*fields.pop("marks", ()), *more)))
    reported = [json.dumps(event, ensure_ascii=False) for event in done.events]
    trouble = _excuse(done.host_trouble if PROGRAMS[kind].refuses_input else done.trouble, fields)
    words = [f"host: {trouble.stage}: {trouble.detail}"] if trouble else []
    log = "\n".join([*reported, done.stderr_tail.decode(errors="replace"), *words, *_whole_log(done)])
    log = log.encode(errors="replace").decode()  # a lone surrogate of a broken line
    return Record.bounded(
        kind=kind, at=now(), cell=cell.name, hardware=hardware, marks=marks, log=log, **fields
    )  # fmt: skip


def _excuse(trouble: HostTrouble | None, fields: dict[str, Any]) -> HostTrouble | None:
    """Set the host's trouble aside from the cell's: a probe that had failed before it counts, with what came alone."""
    if trouble is None:
        return None
    failed = [v for v in fields["verdicts"] if v.status not in (*PASSED, NOT_APPLICABLE)]
    fields |= {"passed": False, "whole": False}
    if not failed:
        fields["trouble"] = Trouble(stage=trouble.stage, words=trouble.detail[:TEXT_LIMIT])
    return trouble


def _whole_log(done: Finished) -> Iterable[str]:
    """Name the file with the whole log, below the checkout where it is there: a record may be sent to others."""
    if done.log is not None:
        inside = done.log.is_relative_to(ROOT)
        yield f"whole log: {done.log.relative_to(ROOT) if inside else done.log.name}"


def _versions_of(cell: Cell) -> dict[str, str]:
    return {"torch": cell.release.torch, "python": cell.python, **({"rocm": r} if (r := cell.release.rocm) else {})}


def _verdict(event: Event) -> Verdict:
    return Verdict(
        probe=_text(event.get("probe")),
        status=_text(event.get("status")),
        summary=_text(event.get("summary") or ""),
        seconds=_finite(event.get("seconds")) or 0.0,
        cards=_names(event.get("cards")),
        present=_names(event.get("present")),
    )


def _names(reported: Any) -> tuple[str, ...] | None:
    return tuple(map(_text, reported)) if isinstance(reported, list) else None


def _text(reported: Any) -> str:
    return str(reported).encode(errors="replace").decode()[:TEXT_LIMIT]


def _mapping(reported: Any) -> Mapping[str, Any]:
    return reported if isinstance(reported, dict) else {}


def numbers_of(events: Iterable[Event]) -> Iterable[Number]:
    """Yield the numbers of verdicts; what is none (a NaN is null in JSON) is left out."""
    for event in events:
        listed = event.get("numbers")
        for reported in map(_mapping, listed if isinstance(listed, list) else ()):
            if (value := _finite(reported.get("value"))) is not None:
                yield Number(
                    probe=_text(event.get("probe")), name=_text(reported.get("name")), value=value,
                    unit=_text(reported.get("unit") or ""),
                )  # fmt: skip


def _figures(done: Finished) -> Iterable[Number]:
    epochs = [event for event in done.events if event.get("event") == "epoch"]
    if epochs:
        yield Number(probe="train", name=EPOCHS, value=float(len(epochs)), unit="epochs")
    rates = [rate for event in epochs if (rate := _finite(event.get("rows_per_second"))) is not None]
    if rates:
        yield Number(probe="train", name="rows_per_second", value=sorted(rates)[len(rates) // 2], unit="1/s")
    end = done.last("done") or {}
    if (loss := _finite(_mapping(end.get("best")).get("validation_loss"))) is not None:
        yield Number(probe="train", name=BEST_LOSS, value=loss, unit="1")


def _finite(value: Any) -> float | None:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    try:
        return float(value) if number and math.isfinite(value) else None
    except OverflowError:  # a whole number beyond every float
        return None


def _hardware(reported: Sequence[Any], host: machine.Hardware) -> Hardware:
    devices = [device for device in map(_mapping, reported) if device]
    kinds = {str(device.get("kind")) for device in devices}
    kind: Device = next((known for known in DEVICES if kinds == {known}), "none")
    names = {_text(device.get("name")) for device in devices} if kind != "cpu" else set()
    driver = f"{host.driver.version} ({host.driver.origin})" if host.driver else None
    seen = tuple(sorted({_text(device.get("arch")).split(":")[0] for device in devices})) if kind != "cpu" else ()
    return Hardware(
        device=kind,
        cards=tuple(sorted(names)),
        gfx=tuple(card.gfx for card in host.cards if card.gfx),
        seen=seen,
        driver=driver,
        kernel=host.kernel,
        ids=tuple(sorted({number for card in host.cards if card.gfx in seen and (number := pci_id(card))})),
    )
