"""A night from its first stage to its last; the stages are passed in: the engine's, or a simulation's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol

from rocmatrix.matrix.matrix import Cell
from rocmatrix.nightly.journal import Journal, StageResult, State
from rocmatrix.nightly.plan import STAGES, Stage, waves
from rocmatrix.runtime.console import known, say

DONE: tuple[State, ...] = ("passed", "failed", "left out")


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Outcome of a stage: passed, failed, or left out with the reason (no such card here, no room)."""

    state: State
    summary: str = ""


class Stages(Protocol):
    """Stages that a night runs on cells."""

    def build(self, cells: Sequence[Cell]) -> Mapping[str, Outcome]:
        """Build candidates side by side; return the outcome of each by name."""

    def prove(self, cell: Cell) -> Outcome:
        """Compare a candidate's files with its cell."""

    def smoke(self, cell: Cell) -> Outcome:
        """Run the probes in a candidate, or return why this machine cannot."""

    def promote(self, cell: Cell) -> Outcome:
        """Give a candidate the tag that people use."""

    def holds(self, cell: Cell) -> bool:
        """Return whether the engine still holds the candidate of these inputs."""

    def make_room(self) -> str | None:
        """Keep to the budget of disk; return why there is no room for another wave."""


@dataclass(kw_only=True)
class Running:
    """One night as it runs. `jobs` bounds how many cells are built, and how many proven, at a time."""

    name: str
    cells: Sequence[Cell]
    stages: Stages
    journal: Journal
    jobs: int
    results: dict[tuple[str, Stage], StageResult] = field(default_factory=dict)

    def run(self) -> None:
        """Do what is not done yet, wave by wave, and end the night."""
        self.results = self._kept()
        for wave in waves(self.cells, self.jobs):
            self._wave(wave)
        self.journal.end(self.name)

    def _kept(self) -> dict[tuple[str, Stage], StageResult]:
        """Return the stages that were done, less those of candidates that are gone."""
        results = {key: result for key, result in self.journal.results(self.name).items() if result.state in DONE}
        built = {
            cell.name
            for cell in self.cells
            if (result := results.get((cell.name, "build"))) and result.state == "passed"
        }
        promoted = {name for name, stage in results if stage == "promote"}
        gone = {c.name for c in self.cells if c.name in built - promoted and not self._holds(c)}
        return {key: result for key, result in results.items() if key[0] not in gone}

    def _holds(self, cell: Cell) -> bool:
        try:
            return self.stages.holds(cell)
        except Exception:  # what the engine cannot answer for is built again, which says what is wrong
            return False

    def _wave(self, wave: Sequence[Cell]) -> None:
        due = [cell for cell in wave if (cell.name, "build") not in self.results]
        if due and (full := self._no_room()):
            for cell in due:
                self._note(cell, "build", Outcome(state="left out", summary=full))
            due = []
        if due:
            self._start(due, "build")
            outcomes = self._built(due)
            for cell in due:
                missing = Outcome(state="failed", summary="the build gave no outcome")
                self._note(cell, "build", outcomes.get(cell.name, missing))
        with ThreadPoolExecutor(self.jobs) as pool:
            list(pool.map(lambda cell: self._stage(cell, "prove", self.stages.prove), wave))
        for cell in wave:  # one at a time: probes measure, and share the cards
            self._stage(cell, "smoke", self.stages.smoke)
            self._stage(cell, "promote", self.stages.promote)

    def _no_room(self) -> str | None:
        try:
            return self.stages.make_room()
        except Exception as error:  # nobody knows then whether there is room
            return known(error).brief

    def _built(self, due: Sequence[Cell]) -> Mapping[str, Outcome]:
        try:
            return self.stages.build(due)
        except Exception as error:
            return dict.fromkeys((cell.name for cell in due), Outcome(state="failed", summary=known(error).brief))

    def _stage(self, cell: Cell, stage: Stage, do: Callable[[Cell], Outcome]) -> None:
        before = self.results.get((cell.name, STAGES[STAGES.index(stage) - 1]))
        if (cell.name, stage) in self.results or before is None or before.state != "passed":
            return
        self._start([cell], stage)
        try:
            outcome = do(cell)
        except Exception as error:  # a time-out, a defect: it ends this stage of this cell, never the night
            outcome = Outcome(state="failed", summary=known(error).brief)
        self._note(cell, stage, outcome)

    def _start(self, cells: Iterable[Cell], stage: Stage) -> None:
        for cell in cells:
            self.journal.mark(self.name, cell.name, stage, "running")

    def _note(self, cell: Cell, stage: Stage, outcome: Outcome) -> None:
        self.journal.mark(self.name, cell.name, stage, outcome.state, outcome.summary)
        result = StageResult(cell=cell.name, stage=stage, state=outcome.state, summary=outcome.summary)
        self.results[cell.name, stage] = result
        say(f"{cell.name}: {stage} {outcome.state}{f' ({outcome.summary})' if outcome.summary else ''}")
