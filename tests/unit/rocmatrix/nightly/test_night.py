"""A night does every stage once, also when it is killed in between; a stage that failed ends its cell alone."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from rocmatrix.nightly.journal import Journal
from rocmatrix.nightly.night import Outcome
from rocmatrix.nightly.plan import STAGES
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures.night import CELLS, Simulated, night

ROOT = Path(__file__).resolve().parents[4]
EVERY = {(cell.name, stage) for cell in CELLS for stage in STAGES}


def lines(done):
    return [tuple(line.split()) for line in done.read_text().splitlines()]


def test_night_does_every_stage_once_and_ends(path, done):
    running, goes_on = night(path, Simulated(done))
    assert not goes_on
    assert Counter(lines(done)) == Counter(EVERY)
    assert {key: result.state for key, result in running.results.items()} == dict.fromkeys(EVERY, "passed")
    (kept,) = Journal(path).nights()
    assert kept.ended
    assert night(path, Simulated(done))[0].name != kept.name  # the next begins anew


@pytest.mark.parametrize("after", [1, 4, 9, 14])
def test_killed_night_resumes_where_it_was(path, done, after):
    argv = [sys.executable, "-m", "tests.fixtures.night", str(path), str(done)]
    process = subprocess.Popen(argv, cwd=ROOT, start_new_session=True)
    while not done.exists() or len(done.read_text().splitlines()) < after:
        assert process.poll() is None
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    before = len(lines(done))
    marked = {
        key for key, result in Journal(path).results(Journal(path).nights()[0].name).items() if result.state == "passed"
    }
    running, goes_on = night(path, Simulated(done))
    assert goes_on
    again = lines(done)[before:]
    assert set(again).isdisjoint(marked)  # what had ended is not done again
    assert set(lines(done)) == EVERY
    assert all(count <= 2 for count in Counter(lines(done)).values())
    assert {result.state for result in running.results.values()} == {"passed"}
    assert len(Journal(path).nights()) == 1


@pytest.mark.parametrize("stage", STAGES)
def test_failed_stage_ends_its_cell_alone(path, done, stage):
    running, _ = night(
        path, Simulated(done, ends={(CELLS[0].name, stage): Outcome(state="failed", summary="simulated")})
    )
    own = {s: result.state for (name, s), result in running.results.items() if name == CELLS[0].name}
    reached = STAGES[: STAGES.index(stage) + 1]
    assert own == {s: "failed" if s == stage else "passed" for s in reached}
    assert ("promote" in own) == (stage == "promote")
    assert all(running.results[cell.name, "promote"].state == "passed" for cell in CELLS[1:])


def test_cell_that_was_not_smoked_is_not_promoted(path, done):
    ends = {(cell.name, "smoke"): Outcome(state="left out", summary="this machine has no card") for cell in CELLS}
    running, _ = night(path, Simulated(done, ends=ends))
    assert not {stage for _, stage in running.results} & {"promote"}


def test_error_of_a_stage_is_its_failure(path, done):
    class Broken(Simulated):
        def prove(self, cell):
            raise RocmatrixError("RM203", what="simulated")

    running, _ = night(path, Broken(done))
    assert running.results[CELLS[0].name, "prove"].summary == "RM203 simulated"


def test_candidate_that_is_gone_is_built_again_and_a_promoted_one_is_not_missed(path, done):
    class Stopped(Simulated):
        def smoke(self, cell):
            if cell.name == CELLS[1].name:
                raise KeyboardInterrupt
            return super().smoke(cell)

    with pytest.raises(KeyboardInterrupt):
        night(path, Stopped(done), jobs=5)
    done.write_text("")
    night(path, Simulated(done, gone=(CELLS[0].name, CELLS[1].name)), jobs=5)
    assert [stage for name, stage in lines(done) if name == CELLS[0].name] == []
    assert [stage for name, stage in lines(done) if name == CELLS[1].name] == list(STAGES)
    assert [stage for name, stage in lines(done) if name == CELLS[2].name] == ["smoke", "promote"]


def test_night_without_disk_leaves_cells_out_and_builds_nothing(path, done):
    running, _ = night(path, Simulated(done, full="RM632 no room"))
    assert not done.exists()
    assert {result.state for result in running.results.values()} == {"left out"}


@pytest.mark.parametrize(
    "error", [TimeoutError("read timed out"), ValueError("a defect"), OSError(28, "No space left")]
)
@pytest.mark.parametrize("stage", [*STAGES, "make_room", "holds"])
def test_unforeseen_error_ends_its_stage_and_not_the_night(path, done, stage, error, monkeypatch):
    monkeypatch.setattr("rocmatrix.runtime.console.LOGS", path.parent / "logs")

    class Broken(Simulated):
        def __getattribute__(self, name):
            if name == stage:
                return self.broken
            return super().__getattribute__(name)

        def broken(self, what=None):
            if isinstance(what, list) or what is None or what.name == CELLS[0].name:
                raise error
            return Simulated.__getattribute__(self, "_do")(what, stage)

    running, _ = night(path, Broken(done), jobs=1)
    states = {result.state for (_, s), result in running.results.items() if stage in ("make_room", s)}
    assert states & {"failed", "left out"} or stage == "holds"
    assert Journal(path).nights()[0].ended
    words = [result.summary for result in running.results.values() if result.state in ("failed", "left out")]
    assert all(line.startswith("RM") for line in words), words
    if stage in ("prove", "smoke", "promote"):
        assert {result.state for (name, _), result in running.results.items() if name != CELLS[0].name} == {"passed"}


def test_candidate_that_the_engine_cannot_answer_for_is_built_again(path, done):
    class Stopped(Simulated):
        def smoke(self, cell):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        night(path, Stopped(done))

    class Silent(Simulated):
        def holds(self, cell):
            raise TimeoutError("the engine")

    done.write_text("")
    running, goes_on = night(path, Silent(done))
    assert goes_on
    assert set(lines(done)) == EVERY
    assert {result.state for result in running.results.values()} == {"passed"}
