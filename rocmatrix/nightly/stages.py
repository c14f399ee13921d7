"""The stages of a night on a real engine. Each records what came of it, as the tasks of the same names do."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from rocmatrix.containers import engine
from rocmatrix.diagnosis import after
from rocmatrix.evidence import recorder as keeping
from rocmatrix.evidence import store
from rocmatrix.evidence.collect import NOT_APPLICABLE
from rocmatrix.host.hardware import Hardware
from rocmatrix.images import build, wheelhouse
from rocmatrix.jobs import job
from rocmatrix.jobs import log as job_log
from rocmatrix.jobs import runner as launch
from rocmatrix.jobs.job import Wanted
from rocmatrix.matrix.matrix import Cell, Matrix
from rocmatrix.matrix.resolver.request import Request
from rocmatrix.nightly import bake, disk
from rocmatrix.nightly.night import Outcome
from rocmatrix.runtime.console import LOGS
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.verify import proof

PASSES = ("pass", NOT_APPLICABLE)


@dataclass(frozen=True, kw_only=True)
class OnEngine:
    """Where and how a night works. `wheels` replaces the folder of wheels, `budget` is in bytes."""

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
        due = [cell for cell in due if not self._up_to_date(cell)]
        failures = self._baked(due) if due else {}
        return {cell.name: outcomes[cell.name] or self._arrived(cell, failures.get(cell.name)) for cell in cells}

    def _fetched(self, cell: Cell) -> Outcome | None:
        """Fetch the cell's wheels; return an outcome only where that fails."""
        try:
            wheelhouse.fetch(cell, self._folder(cell))
        except RocmatrixError as error:
            return Outcome(state="failed", words=f"{error.code} {error.what}")
        return None

    def _folder(self, cell: Cell) -> Path:
        return self.wheels or wheelhouse.default_folder(self.root, cell)

    def _up_to_date(self, cell: Cell) -> bool:
        """Whether these inputs are built already, be it under the tag that people use."""
        if self.holds(cell):
            return True
        with closing(engine.connect()) as client:
            image = engine.image(client, build.tag(cell))
            if not build.is_of(image, self._inputs(cell)):
                return False
            return bool(client.images.get(build.tag(cell)).tag(*bake.candidate(cell).split(":")))

    def _inputs(self, cell: Cell) -> str:
        return build.input_hash(cell, self.root, base=self.base)

    def _baked(self, cells: Sequence[Cell]) -> dict[str, str]:
        """Bake the cells; return why each failed that did. One failure ends the others, so these are tried alone."""
        file = self.root / ".rocmatrix" / "nightly" / f"{self.night}.json"
        folders = {cell.name: self._folder(cell) for cell in cells}
        content = bake.bake_file(cells, root=self.root, wheelhouses=folders, night=self.night, base=self.base)
        bake.write(file, content)
        failures: dict[str, str] = {}
        try:
            self._bake(file, cells, file.with_suffix(".log"))
        except RocmatrixError as error:
            if len(cells) == 1:
                return {cells[0].name: _last_line(error)}
            for cell in cells:
                try:
                    self._bake(file, [cell], build.log_file(cell, self.root))
                except RocmatrixError as own:
                    failures[cell.name] = _last_line(own)
        return failures

    def _bake(self, file: Path, cells: Sequence[Cell], log: Path) -> None:
        began = time.monotonic()
        bake.run(bake.argv(file, [bake.target(cell) for cell in cells], builder=self.builder), log=log)
        for cell in cells:
            with closing(engine.connect()) as client:
                image = engine.sealed(client, bake.candidate(cell))
            inputs, seconds = self._inputs(cell), time.monotonic() - began
            built = build.Built(
                tag=bake.candidate(cell), inputs=inputs, argv=(), image=image, rebuilt=True, seconds=seconds
            )
            keeping.keep_build(cell, built, base=self.base, forced=False, log=log)

    def _arrived(self, cell: Cell, failure: str | None) -> Outcome:
        """Look after the builder: the candidate is there and was made of these inputs."""
        if failure is None and self.holds(cell):
            return Outcome(state="passed")
        if failure is not None:
            keeping.keep_failed_build(cell, base=self.base, forced=(), root=self.root)
        return Outcome(state="failed", words=failure or "the engine holds no candidate with these inputs")

    def prove(self, cell: Cell) -> Outcome:
        """Compare the candidate's files with the cell, and record it."""
        proven = proof.of_image(
            self.matrix, cell, bake.candidate(cell), today=self.today, root=self.root, wheels=self.wheels
        )
        keeping.keep_proof(cell, proven, bake.candidate(cell), base=self.base)
        findings = "; ".join(finding.words for finding in proven.findings[:3])
        return Outcome(state="passed" if proven.proven else "failed", words=findings)

    def smoke(self, cell: Cell) -> Outcome:
        """Run the probes in the candidate on this machine's card, and record it."""
        if cell.architecture and cell.architecture not in self.hardware.architectures:
            return Outcome(state="left out", words=f"this machine has no {cell.architecture} card")
        options = {"probe": None, "timeout": None}
        wanted = Wanted(
            program="smoke", request=Request(cell=cell.name), where="container", options=options, base=self.base
        )
        prepared = job.in_container(wanted, cell=cell, hardware=self.hardware, image=bake.candidate(cell))
        done = launch.run(prepared.argv, show=lambda _: None, log=job_log.place(LOGS, "smoke", cell.image_name))
        place = keeping.Place(cell=cell, hardware=self.hardware, image=bake.candidate(cell), inputs=self._inputs(cell))
        record = keeping.keep_job(wanted, place, done)
        if record is None or not record.passed:
            after.explain(after.told(done), cell=cell, hardware=self.hardware)
        if record is None:
            return Outcome(state="failed", words=f"ended with {done.status}; its verdicts could not be read")
        failed = [f"{verdict.probe} {verdict.status}" for verdict in record.verdicts if verdict.status not in PASSES]
        words = ", ".join(failed) or ("" if record.passed else f"ended with {done.status}, no failing verdict")
        return Outcome(state="passed" if record.passed else "failed", words=words)

    def promote(self, cell: Cell) -> Outcome:
        """Move the tag that people use to the candidate, and look whether it did."""
        with closing(engine.connect(work=True)) as client:
            image = client.images.get(bake.candidate(cell))
            image.tag(*build.tag(cell).split(":"))
            moved = client.images.get(build.tag(cell)).id == image.id
        return Outcome(state="passed" if moved else "failed", words=build.tag(cell))

    def holds(self, cell: Cell) -> bool:
        """Whether the engine holds the candidate of these inputs."""
        with closing(engine.connect()) as client:
            image = engine.image(client, bake.candidate(cell))
        return build.is_of(image, self._inputs(cell))

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


def _last_line(error: RocmatrixError) -> str:
    return f"{error.code} {error.what}; {error.where}"
