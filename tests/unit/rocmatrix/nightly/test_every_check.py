"""No level rises, and no tag moves, where a check has not looked: each one fails, or is left out, in turn.

No engine is needed: the STAND-IN trainer runs as a program of this machine, and what it sends is recorded as if its
container had. The machine is SIMULATED.
"""

import json
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from rocmatrix.evidence import from_events, recorder, store
from rocmatrix.evidence.level import cell_statuses
from rocmatrix.host.hardware import read_hardware
from rocmatrix.images import labels
from rocmatrix.jobs import job
from rocmatrix.jobs.job import JobRequest
from rocmatrix.jobs.programs import SMOKE
from rocmatrix.matrix.resolver.request import Request
from rocmatrix.nightly import stages
from rocmatrix.nightly.stages import OnEngine
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.verify import proof
from rocmatrix.verify.finding import Check, Finding
from tests.container.rehearsal import checkout
from tests.fixtures import cells, sysfs
from tests.left_out import one_of

CELL = cells.MATRIX.cell(checkout.GFX1100)
PROBES = [p["probe"] for p in json.loads((checkout.ROOT / "rocmatrix/runtime/trainer/probes.json").read_text())]
INPUTS, IMAGE, OTHER = "a" * 64, "sha256:" + "b" * 64, "sha256:" + "c" * 64
LABELS = {labels.INPUTS: INPUTS, labels.SIMULATED: "yes", labels.STAND_IN: "wheels", labels.BASE: "other:1"}
CHECKS = sorted(proof.EVERY_CHECK)


class Chain:
    """The seams from a job's end to a level: an evidence file, a machine, and the stand-in trainer."""

    def __init__(self, folder, path):
        self.folder, self.path = folder, path
        self.place = recorder.Place(
            cell=CELL, hardware=replace(read_hardware(sysfs.two_rx_7900_xt(folder / "machine")), simulated=True),
            where="container", image=IMAGE, labels=LABELS, requested_probes=tuple(PROBES),
        )  # fmt: skip
        shutil.copytree(checkout.HERE / "stand_in_trainer", folder / "inside/trainer")
        shutil.copy(checkout.ROOT / "rocmatrix/runtime/trainer/probes.json", folder / "inside/trainer")

    def build(self, **more):
        marks = from_events.marks_of(CELL, labels=LABELS)
        about = {"inputs": INPUTS, "image": IMAGE, "seconds": 1.0, "log": "", "marks": marks}
        store.add(self.path, [from_events.of_build(CELL, **about | more)])

    def prove(self, checks=None, image=IMAGE):
        found = checks or tuple(Check(name=name, summary="simulated") for name in CHECKS)
        made = proof.Proof(cell=CELL.name, architecture="gfx1100", subject="image", checks=found, of_image=True)
        marks = from_events.marks_of(CELL, labels=LABELS)
        store.add(self.path, [from_events.of_proof(CELL, made, inputs=INPUTS, image=image, marks=marks)])
        return made.proven

    def smoke(self, *, image=IMAGE, **scene):
        (self.folder / "scenario.json").write_text(json.dumps(checkout.SCENES[checkout.GFX1100] | scene))
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.folder / "inside"),
            "REHEARSAL_FOLDER": str(self.folder),
            "REHEARSAL_DEVICES": str(self.folder / "machine/dev"),
        }
        job_request = JobRequest(program=SMOKE, request=Request(cell=CELL.name), where="container", options={})
        with recorder.watched(job_request, replace(self.place, image=image)) as keep:
            argv = [sys.executable, "-P", "-m", "trainer", "smoke", "--expect=rocm"]
            return keep(job.run(argv, environment=environment, show=lambda _: None))

    @property
    def cell_status(self):
        records = store.read(self.path)
        (own,) = cell_statuses(CELL, records, rendered=True)
        assert own.level == "rendered"  # of the cell itself nothing was shown
        (found,) = cell_statuses(CELL, records, rendered=True, simulated=True)
        return found


@pytest.fixture
def chain(tmp_path, monkeypatch):
    path = tmp_path / "evidence.db"
    monkeypatch.setenv("ROCMATRIX_EVIDENCE", str(path))
    return Chain(tmp_path, path)


@pytest.fixture
def proven(chain):
    chain.build()
    assert chain.prove()
    return chain


def test_chain_in_which_every_check_ran_rises(proven):
    assert proven.smoke().passed
    assert (proven.cell_status.level, proven.cell_status.failing) == ("two-gpu", ())


@pytest.mark.parametrize("probe", one_of(PROBES, 6))
def test_probe_that_fails_or_is_left_out_takes_the_level_and_a_whole_pass_gives_it_back(proven, probe):
    proven.smoke()
    for scene in ({"probes": {probe: "fail"}}, {"omit": [probe]}, {"omit": [probe], "status": 0}):
        assert not proven.smoke(**scene).passed
        assert (proven.cell_status.level, proven.cell_status.failures) == ("proven", (probe,))
    assert proven.smoke().passed
    assert proven.cell_status.level == "two-gpu"


@pytest.mark.parametrize(
    "scene",
    [
        {"omit": PROBES},
        {"omit": PROBES, "status": 0},
        {"probes": dict.fromkeys(PROBES, "not-applicable"), "status": 0},
        {"probes": dict.fromkeys(PROBES, "crash")},
        {"probes": {"device": "passed, I think"}, "status": 0},
        {"status": 3},
        {"cut": "device"},
        {"cut": PROBES[-1]},
    ],
)
def test_suite_that_shows_nothing_raises_nothing(proven, scene):
    assert not proven.smoke(**scene).passed
    assert proven.cell_status.level == "proven"
    assert proven.cell_status.failing == ("smoke",)


@pytest.mark.parametrize("check", CHECKS)
def test_check_of_a_proof_that_fails_or_never_ran_proves_nothing(chain, check):
    chain.build()
    whole = {name: Check(name=name, summary="simulated") for name in CHECKS}
    failed = whole | {check: Check(name=check, summary="simulated", findings=(Finding(code="RM210", what="wrong"),))}
    left_out = {name: found for name, found in whole.items() if name != check}
    skipped = whole | {check: Check(name=check, summary="simulated", skipped=True)}
    variants = [failed, left_out, *([] if check in proof.MAY_BE_LEFT_OUT else [skipped])]
    for checks in variants:
        assert not chain.prove(tuple(checks.values()))
        chain.smoke()
        assert chain.cell_status.level == "built"
    assert chain.prove()
    assert chain.cell_status.level == "two-gpu"


def test_cell_without_a_build_on_record_has_no_rung(chain):
    chain.prove()
    chain.smoke()
    assert chain.cell_status.level == "rendered"
    chain.build(image=None)
    assert (chain.cell_status.level, chain.cell_status.failing) == ("rendered", ("build",))


def test_pass_in_an_image_that_no_build_or_proof_names_is_set_aside(proven):
    assert proven.smoke(image=OTHER).passed
    assert (proven.cell_status.level, proven.cell_status.set_aside) == ("proven", 1)
    assert not proven.smoke(image=OTHER, probes={"blas": "fail"}).passed
    assert proven.cell_status.failures == ("blas",)  # a failure counts wherever it was


class Night(OnEngine):
    """Stages whose inputs are known without a checkout."""

    def _inputs(self, cell):
        return INPUTS


def night(chain):
    return Night(
        matrix=cells.MATRIX, root=Path("/nowhere"), night="n", hardware=chain.place.hardware, needed=(),
        evidence=chain.path, budget=0, today="2026-11-22",
    )  # fmt: skip


@pytest.mark.parametrize(
    "steps",
    [
        [],
        ["build"],
        ["prove", "build"],
        ["build", "smoke"],
        ["build", "prove-fails", "smoke"],
        ["build", "prove", "smoke-fails"],
        ["build", "prove", "smoke", "smoke-fails"],
        ["build", "prove", "smoke", "prove-fails"],
        ["build", "prove", "smoke-of-another-image"],
        ["build", "prove", "smoke-with-card-errors"],
        ["build", "prove", "smoke", "smoke-with-card-errors"],
        ["build", "prove-of-another-image", "smoke"],
    ],
    ids="-".join,
)
def test_tag_moves_only_with_a_proof_and_a_smoke_of_the_same_image(chain, steps, monkeypatch):
    does = {
        "build": chain.build,
        "prove": chain.prove,
        "prove-fails": lambda: chain.prove(
            (Check(name="files", summary="", findings=(Finding(code="RM660", what=""),)),)
        ),
        "prove-of-another-image": lambda: chain.prove(image=OTHER),
        "smoke": chain.smoke,
        "smoke-fails": lambda: chain.smoke(probes={"blas": "fail"}),
        "smoke-of-another-image": lambda: chain.smoke(image=OTHER),
        "smoke-with-card-errors": lambda: chain.smoke(moved=["0000:03:00.0"]),
    }
    for step in steps:
        does[step]()
    monkeypatch.setattr(stages.engine, "connect", lambda **_: pytest.fail("asked the engine to move a tag"))
    with pytest.raises(RocmatrixError) as caught:
        night(chain).promote(CELL)
    assert caught.value.code == "RM652"
