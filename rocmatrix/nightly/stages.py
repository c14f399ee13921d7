"""The stages of a night on a real engine; each records its outcome, as the tasks of the same names do."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from rocmatrix.containers import engine, engine_lock
from rocmatrix.diagnosis import explain_failure
from rocmatrix.evidence import baseline, recorder, store
from rocmatrix.evidence.from_events import NOT_APPLICABLE
from rocmatrix.evidence.record import Record
from rocmatrix.host import simulated
from rocmatrix.host.hardware import Hardware
from rocmatrix.images import build, disk_space, wheelhouse
from rocmatrix.images import labels as image_labels
from rocmatrix.images.base import chosen
from rocmatrix.images.labels import OtherBase
from rocmatrix.jobs import job
from rocmatrix.jobs import log as job_log
from rocmatrix.jobs.job import JobRequest
from rocmatrix.jobs.programs import SMOKE
from rocmatrix.matrix.matrix import Cell, Matrix
from rocmatrix.matrix.resolver.request import Request
from rocmatrix.nightly import bake, disk, trust
from rocmatrix.nightly.night import Outcome
from rocmatrix.runtime.console import LOGS
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.verify import proof

if TYPE_CHECKING:
    import docker


PASSES = ("pass", NOT_APPLICABLE)


@dataclass(frozen=True, kw_only=True)
class OnEngine:
    """Stages of a night on this machine's engine. `wheels` replaces the folder of wheels, `budget` is in bytes."""

    matrix: Matrix
    root: Path
    night: str
    hardware: Hardware
    needed: tuple[str, ...]
    evidence: Path
    budget: int
    today: str
    base: str | None = None
    wheels: Path | None = None
    builder: str | None = None

    def build(self, cells: Sequence[Cell]) -> Mapping[str, Outcome]:
        """Build what the engine does not hold yet: all at once, and where that fails one by one."""
        outcomes = {cell.name: self._fetched(cell) for cell in cells}
        due = [cell for cell in cells if outcomes[cell.name] is None]
        due = [cell for cell in due if not self._taken_as_it_is(cell)]
        failures = self._baked(due) if due else {}
        return {cell.name: outcomes[cell.name] or self._arrived(cell, failures.get(cell.name)) for cell in cells}

    def _fetched(self, cell: Cell) -> Outcome | None:
        """Fetch the cell's wheels; return an outcome only where that fails."""
        try:
            wheelhouse.fetch(cell, self._folder(cell))
        except RocmatrixError as error:
            return Outcome(state="failed", summary=f"{error.code} {error.what}")
        return None

    def _folder(self, cell: Cell) -> Path:
        return self.wheels or wheelhouse.default_folder(self.root, cell)

    def _taken_as_it_is(self, cell: Cell) -> bool:
        """Return whether these inputs are built already, under either tag; what is taken is on record.

        Only what a build on record made is taken, and not where its proof has failed: labels can be anybody's, and the
        next night is to go on by itself.
        """
        sound = self._sound(cell)
        with closing(engine.connect()) as client:
            for name in (bake.candidate(cell), build.tag(cell)):
                image = engine.image(client, name)
                if image is not None and build.is_of(image, self._inputs(cell)) and image.id in sound:
                    client.images.get(image.id).tag(*bake.candidate(cell).split(":"))
                    built = build.Built(tag=name, inputs=self._inputs(cell), argv=(), labels=image.labels, image=image)
                    recorder.record_build(cell, built)
                    return True
        return False

    def _sound(self, cell: Cell) -> set[str | None]:
        """Return the images of these inputs that a build on record made, without those whose newest proof failed."""
        return trust.sound(self._records(cell), self._inputs(cell), simulated=self._simulated)

    def _records(self, cell: Cell) -> list[Record]:
        return store.read(self.evidence, cell=cell.name, logs=False)

    @property
    def _simulated(self) -> bool:
        """Whether what is recorded here bears the mark."""
        return simulated.root() is not None or self.hardware.simulated

    @cached_property
    def _other(self) -> OtherBase | None:
        """The base that was named, with its id as the night found it."""
        if not self.base:
            return None
        with closing(engine.connect()) as client:
            return chosen(client, self.base, None)

    def _inputs(self, cell: Cell) -> str:
        return build.input_hash(cell, self.root, base=self._other.counted if self._other else None)

    def _baked(self, cells: Sequence[Cell]) -> dict[str, str]:
        """Bake the cells; return why each failed that did. One failure ends the others, so these are tried alone."""
        file = self.root / ".rocmatrix" / "nightly" / f"{self.night}.json"
        folders = {cell.name: self._folder(cell) for cell in cells}
        content = bake.bake_file(
            cells, root=self.root, wheelhouses=folders, night=self.night, base=self.base,
            base_id=self._other.id if self._other else None,
            describes=self._other.describes if self._other else frozenset(),
        )  # fmt: skip
        bake.write(file, content)
        failures: dict[str, str] = {}
        try:
            self._bake(file, cells, file.with_suffix(".log"))
        except RocmatrixError as error:
            if len(cells) == 1:
                return {cells[0].name: self._failed(cells[0], error)}
            for cell in cells:
                try:
                    self._bake(file, [cell], build.log_file(cell, self.root))
                except RocmatrixError as own:
                    failures[cell.name] = self._failed(cell, own)
        return failures

    def _failed(self, cell: Cell, error: RocmatrixError) -> str:
        """Record that a candidate could not be built; return why."""
        if isinstance(error, build.BuildFailedError):
            own = replace(error.planned, inputs=self._inputs(cell), labels=self._labels(cell))
            failure = build.BuildFailedError(error, planned=own, trouble=error.trouble)
            recorder.record_failed_build(cell, failure, root=self.root)
        return f"{error.code} {error.what}; {error.where}"

    def _labels(self, cell: Cell) -> dict[str, str]:
        return image_labels.of_build(self._inputs(cell), other=self._other)

    def _bake(self, file: Path, cells: Sequence[Cell], log: Path) -> None:
        began = time.monotonic()
        argv = bake.argv(file, [bake.target(cell) for cell in cells], builder=self.builder)
        with closing(engine.connect(work=True)) as client:
            watched = disk_space.of_engine(client)
            try:
                self._obtain_bases(client, cells)
                bake.run(argv, log=log, watched=watched)
                images = {cell.name: engine.sealed(client, bake.candidate(cell)) for cell in cells}
            except RocmatrixError as error:
                planned = build.Built(tag="", inputs="", argv=tuple(argv))
                raise build.failed(error, planned, client, watched) from error
        seconds = time.monotonic() - began
        for cell in cells:
            inputs, labels = self._inputs(cell), self._labels(cell)
            built = build.Built(
                tag=bake.candidate(cell), inputs=inputs, argv=(), labels=labels, image=images[cell.name], rebuilt=True,
                seconds=seconds,
            )  # fmt: skip
            recorder.record_build(cell, built, log=log)

    def _obtain_bases(self, client: docker.DockerClient, cells: Sequence[Cell]) -> None:
        """Get the cells' own bases, so that what a registry does not give is no failure of a cell."""
        if self.base is None and self.builder is None:  # another builder does not see what this engine holds
            for reference in dict.fromkeys(cell.base.reference for cell in cells):
                engine.obtain(client, reference)

    def _arrived(self, cell: Cell, failure: str | None) -> Outcome:
        """Look after the builder: the candidate is there and was made of these inputs."""
        if failure is None and build.is_of(_held(cell), self._inputs(cell)):
            return Outcome(state="passed")
        return Outcome(state="failed", summary=failure or "the engine holds no candidate with these inputs")

    def prove(self, cell: Cell) -> Outcome:
        """Compare the candidate's files with the cell, and record it."""
        image = candidate(cell)
        with recorder.proving(cell, image) as keep:
            proven = proof.of_image(
                self.matrix, cell, image.id, today=self.today, root=self.root, wheels=self.wheels,
                recorded=baseline.recorded(self.evidence, cell, image),
            )  # fmt: skip
            keep(proven)
        findings = "; ".join(finding.summary for finding in proven.findings[:3])
        return Outcome(state="passed" if proven.proven else "failed", summary=findings)

    def smoke(self, cell: Cell) -> Outcome:
        """Run the probes in the candidate on this machine's card, and record it."""
        if cell.architecture and cell.architecture not in self.hardware.architectures:
            return Outcome(state="left out", summary=f"this machine has no {cell.architecture} card")
        options = {"probe": None, "timeout": None}
        image = _held(cell)
        job_request = JobRequest(program=SMOKE, request=Request(cell=cell.name), where="container", options=options)
        named = image.id if image else bake.candidate(cell)  # making the job ready says what is wrong with it
        prepared = job.container_job(job_request, cell=cell, hardware=self.hardware, image=named)
        place = recorder.Place(
            cell=cell,
            hardware=self.hardware,
            where="container",
            image=image.id if image else None,
            labels=image.labels if image else None,
            requested_probes=job.requested_probes(job_request, cell=cell, hardware=self.hardware),
        )
        with recorder.watched(job_request, place) as keep:
            done = job.run(prepared.argv, show=lambda _: None, log=job_log.place(LOGS, SMOKE.name, cell.image_name))
            record = keep(done)
        if record is None or not record.passed:
            explain_failure.explain(explain_failure.reported(done), cell=cell, hardware=self.hardware)
        if record is None:
            return Outcome(state="failed", summary=f"ended with {done.status}; its verdicts could not be read")
        if record.trouble:
            return Outcome(
                state="failed", summary=f"the host's trouble ({record.trouble.stage}): {record.trouble.words}"
            )
        failed = [f"{verdict.probe} {verdict.status}" for verdict in record.verdicts if verdict.status not in PASSES]
        words = ", ".join(failed) or ("" if record.passed else f"ended with {done.status}, no failing verdict")
        return Outcome(state="passed" if record.passed else "failed", summary=words)

    def promote(self, cell: Cell) -> Outcome:
        """Move the tag that people use to the image that was proven and smoked, and look whether it did."""
        tested = self._tested(cell)
        if tested is None:
            what = "no image of these inputs is on record as proven and smoked"
            raise RocmatrixError("RM652", what=what, where=str(self.evidence))
        name = build.tag(cell)
        with (
            closing(engine.connect(work=True)) as client,
            engine_lock.exclusive(client, name, waiting=f"another checkout on this engine builds {name}"),
        ):
            before = engine.image(client, name)
            client.images.get(tested).tag(*name.split(":"))
            moved = client.images.get(name).id == tested
        other = before is not None and not build.is_of(before, self._inputs(cell))
        was = f", which was an image of other inputs: {before.id[:19]}" if before and other else ""
        return Outcome(state="passed" if moved else "failed", summary=f"{name}{was}")

    def _tested(self, cell: Cell) -> str | None:
        """Return the image that the newest smoke of these inputs passed in, where the newest proof holds for it."""
        return trust.tested(self._records(cell), self._inputs(cell), cell=cell, simulated=self._simulated)

    def holds(self, cell: Cell) -> bool:
        """Return whether the engine holds the candidate of these inputs, and a build on record made it."""
        with closing(engine.connect()) as client:
            image = engine.image(client, bake.candidate(cell))
        return image is not None and build.is_of(image, self._inputs(cell)) and image.id in self._sound(cell)

    def make_room(self) -> str | None:
        """Keep to the budget; return RM632 as text where what may be removed does not suffice."""
        built = (r for r in store.read(self.evidence, logs=False) if r.kind == "build" and r.night and r.image)
        used = disk.make_room(
            budget=self.budget,
            needed=self.needed,
            recorded={str(record.image) for record in built},
            builder=self.builder,
        )
        return f"RM632 {used / 1e9:.1f} GB in use of {self.budget / 1e9:.1f} GB" if used > self.budget else None


def candidate(cell: Cell) -> engine.Image:
    """Return the image that a night has built. Raises RM201, RM203 where it is gone."""
    with closing(engine.connect()) as client:
        found = engine.image(client, bake.candidate(cell))
    if found is None:
        raise RocmatrixError("RM203", what=f"the engine holds no image {bake.candidate(cell)}")
    return found


def _held(cell: Cell) -> engine.Image | None:
    with suppress(RocmatrixError):
        return candidate(cell)
    return None
