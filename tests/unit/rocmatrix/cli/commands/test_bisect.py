"""Bisecting over the versions of the matrix, with SIMULATED smokes in the place of a card."""

import pytest

from rocmatrix.cli.commands import bisect as command
from rocmatrix.cli.commands import common
from rocmatrix.cli.commands.bisect import Bisect
from rocmatrix.evidence import store
from rocmatrix.jobs.runner import Finished
from rocmatrix.nightly.bisection import history
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures import cells, evidence
from tests.fixtures.evidence import CARD, rocm

VERSIONS = history.versions(cells.MATRIX, "gfx1100")
NAMES = [cell.name for cell, _ in VERSIONS]
OLD, NEW = NAMES[0], NAMES[-1]
TORCH = {cell.name: cell.release.torch for cell, _ in VERSIONS}


def smoke(hours, *, cell, **fields):
    """A smoke that ran the torch of its cell; another one is no evidence of it."""
    return evidence.smoke(hours, cell=cell, **{"versions": {"torch": TORCH[cell]}} | fields)


@pytest.fixture
def path(tmp_path, monkeypatch):
    path = tmp_path / "evidence.db"
    monkeypatch.setenv("ROCMATRIX_EVIDENCE", str(path))
    monkeypatch.setattr(common, "known_matrix", lambda: cells.MATRIX)
    return path


@pytest.fixture
def simulated(monkeypatch):
    """Return a function that lets every version from `first_bad` on fail; it returns the list of those asked."""

    def simulated(first_bad, *, unbuildable=()):
        runs = []

        def run(job_request):
            name = next(
                c.name for c, _ in VERSIONS if _axes(c) == (job_request.request.rocm, job_request.request.torch)
            )
            runs.append(name)
            if name in unbuildable:
                raise RocmatrixError("RM202", what="simulated")
            status = "fail" if NAMES.index(name) >= NAMES.index(first_bad) else "pass"
            return Finished(status=0, events=({"event": "probe", "probe": "blas", "status": status},))

        monkeypatch.setattr(command.jobs, "run_job", run)
        return runs

    return simulated


def _axes(cell):
    return cell.release.rocm, cell.release.torch


def bisect(**given):
    command.bisect(Bisect(**{"gpu": "gfx1100", "probe": "blas"} | given))


@pytest.mark.parametrize("first_bad", NAMES[1:])
def test_first_bad_version_is_found(path, simulated, capsys, first_bad):
    simulated(first_bad)
    bisect(good=OLD, bad=NEW)
    before = NAMES[NAMES.index(first_bad) - 1]
    assert capsys.readouterr().out.splitlines()[-2:] == [f"good {before}", f"bad {first_bad}"]


def test_version_that_cannot_be_built_is_skipped_and_reported(path, simulated, capsys):
    simulated(NEW, unbuildable=NAMES[1:-1])
    bisect(good=OLD, bad=NEW)
    lines = capsys.readouterr().out.splitlines()
    assert lines[-len(NAMES) :] == [f"good {OLD}", *(f"skip {name}" for name in NAMES[1:-1]), f"bad {NEW}"]


def test_pair_comes_from_the_records_that_count(path, simulated, capsys):
    runs = simulated(NEW)
    nvidia = {"marks": ("nvidia",)}
    store.add(
        path, [smoke(1, cell=OLD), smoke(2, cell=NEW, status="fail"), smoke(3, cell=OLD, status="fail", **nvidia)]
    )
    bisect(dry_run=True)
    assert runs == []
    assert "last good" in capsys.readouterr().out
    bisect(card=CARD)
    assert capsys.readouterr().out.splitlines()[-1] == f"bad {NEW}"


def test_bisect_without_a_pair_ends_at_once(path, capsys):
    store.add(path, [smoke(1, cell=OLD, hardware=rocm("gfx1030"))])
    with pytest.raises(SystemExit):
        bisect()
    assert "RM633" in capsys.readouterr().err


def test_history_that_alternates_is_reported(path, simulated, capsys):
    simulated(NEW)
    statuses = {NAMES[0]: "fail", NAMES[1]: "pass", NEW: "fail"}
    store.add(path, [smoke(i, cell=name, status=status) for i, (name, status) in enumerate(statuses.items())])
    with pytest.raises(SystemExit):
        bisect()
    assert "RM634" in capsys.readouterr().err


@pytest.mark.parametrize("given", [{"good": "another"}, {"probe": ""}])
def test_wrong_usage_is_named(path, given, capsys):
    with pytest.raises(SystemExit):
        bisect(**given)
    assert "RM" in capsys.readouterr().err
