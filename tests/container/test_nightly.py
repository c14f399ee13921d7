"""A night on a real engine: `docker buildx bake` over STAND-INS of ROCm cells, and over the CPU cell for real.

The base is Debian bookworm from debootstrap; ROCm cells have wheels of no content, so their proof fails, as it must.
"""

import os
import shutil
import signal
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import docker.errors
import pytest

from rocmatrix.containers import engine
from rocmatrix.evidence import store
from rocmatrix.evidence.level import cell_statuses
from rocmatrix.host.hardware import read_hardware
from rocmatrix.images import build, render
from rocmatrix.nightly import bake, disk
from rocmatrix.nightly.journal import Journal
from rocmatrix.nightly.night import Running
from rocmatrix.nightly.plan import Plan
from rocmatrix.nightly.stages import OnEngine
from tests.fixtures import cells, sysfs
from tests.left_out import long

pytestmark = pytest.mark.container

ROOT = Path(__file__).resolve().parents[2]
# The verdicts of the CPU cell: the only whole suite that runs in an image here.
PASS = [
    "device", "blas", "convert", "transfer", "attention", "conv", "amp", "allocator", "rng", "thermal", "gradients",
    "compile", "memory", "checkpoint", "collectives", "two_gpu_step", "two_gpu_step_fsdp2", "two_gpu_step_pipeline",
]  # fmt: skip
ABSENT = ["p2p", "two_gpu_step_data_parallel"]  # no cards
OWN = [cells.GFX1100, cells.GFX906]  # of one release: they share their wheels


@pytest.fixture
def evidence(tmp_path, monkeypatch):
    monkeypatch.setenv("ROCMATRIX_EVIDENCE", str(tmp_path / "evidence.db"))
    monkeypatch.setenv("ROCMATRIX_STAND_IN", "a base by debootstrap, wheels of no content")
    return tmp_path / "evidence.db"


def stages(root, evidence, tmp_path, chosen, **more):
    given = {
        "matrix": cells.MATRIX,
        "root": root,
        "night": "test-night",
        "hardware": read_hardware(sysfs.no_driver(tmp_path / "machine")),
        "needed": tuple(bake.candidate(cell) for cell in chosen),
        "evidence": evidence,
        "budget": 10**12,
        "today": "2026-11-21",
    }
    return OnEngine(**given | more)


@contextmanager
def none_of(client, chosen):
    """Begin and end without images of these cells: one that a broken-off run left would not be built again."""

    def remove():
        for tag in (tag for cell in chosen for tag in (bake.candidate(cell), build.tag(cell))):
            with suppress(docker.errors.ImageNotFound):
                client.images.remove(tag, force=True)

    remove()
    try:
        yield
    finally:
        remove()


@pytest.fixture
def night_cell(client):
    """Return the CPU cell under a name of its own: the labels of `cpu_image` are the cell's, and these are not."""
    cell = cells.CPU.model_copy(update={"name": f"test-night-{cells.CPU.name}"})
    with none_of(client, [cell]):
        yield cell


@pytest.fixture
def stood_in(client, small_base, stand_in, lay_out, evidence, tmp_path):
    """Two STAND-IN cells in one checkout, and the stages of a night over them."""
    chosen, wheels = zip(*(stand_in(cell) for cell in OWN), strict=True)
    root = lay_out(chosen[0], OWN[0])
    shutil.copytree(ROOT / "images" / OWN[1].name, root / "images" / chosen[1].name)
    for cell in chosen:
        (root / "images" / cell.name / "requirements.lock").write_text(render.requirements_lock(cell))
    with none_of(client, chosen):
        yield chosen, stages(root, evidence, tmp_path, chosen, base=small_base, wheels=wheels[0])


def test_cells_are_baked_together_and_share_their_layers(stood_in, client, evidence):
    chosen, night = stood_in
    outcomes = night.build(chosen)
    assert {name: outcome.state for name, outcome in outcomes.items()} == {cell.name: "passed" for cell in chosen}
    layers = [client.images.get(bake.candidate(cell)).attrs["RootFS"]["Layers"] for cell in chosen]
    assert layers[0][:1] == layers[1][:1]
    records = store.read(evidence)
    assert [(r.kind, r.passed, r.marks) for r in records] == [("build", True, ("stand-in", "other-base"))] * 2
    held = [engine.image(client, bake.candidate(cell)) for cell in chosen]
    assert {r.image for r in records} == {image.id for image in held}
    assert all(image.sealed for image in held)
    log = records[0].log
    assert log.count("FROM docker.io") or log.count("[base") or "runtime" in log
    assert all(engine.image(client, build.tag(cell)) is None for cell in chosen)  # nothing is promoted
    began = time.monotonic()
    assert night.build(chosen) == outcomes  # nothing is built twice
    assert len(store.read(evidence)) == 2
    assert time.monotonic() - began < 60


@long
def test_broken_cell_does_not_stop_the_others(stood_in, client, evidence):
    chosen, night = stood_in
    lock = night.root / "images" / chosen[1].name / "requirements.lock"
    digest = chosen[1].wheels[0][1].sha256
    lock.write_text(lock.read_text().replace(digest, "0" * 64))
    outcomes = night.build(chosen)
    assert [outcomes[cell.name].state for cell in chosen] == ["passed", "failed"]
    assert "RM202" in outcomes[chosen[1].name].summary
    failed = next(r for r in store.read(evidence) if not r.passed)
    assert failed.cell == chosen[1].name
    assert failed.image is None


def others(client, chosen):
    """Return the tags that nights of other tests gave on the same engine."""
    tags = {tag for image in disk.held(client) for tag in image.tags if tag.startswith(disk.OWN_TAGS)}
    return tags - {bake.candidate(cell) for cell in chosen}


def test_night_promotes_only_what_was_smoked_and_removes_only_its_own(stood_in, client, small, evidence):
    chosen, night = stood_in
    strange = client.images.get(small)
    strange.tag("somebody", "else")
    journal = Journal(evidence)
    plan = Plan(cells=tuple(c.name for c in chosen), inputs=("a" * 64, "b" * 64))
    running = Running(name=journal.begin(plan)[0].name, cells=chosen, stages=night, journal=journal, jobs=2)
    try:
        running.run()
        results = {(name, stage): result.state for (name, stage), result in running.results.items()}
        assert {results[cell.name, "build"] for cell in chosen} == {"passed"}
        assert not any(stage == "promote" for _, stage in results)  # no card here, and stand-ins prove nothing
        assert all(engine.image(client, build.tag(cell)) is None for cell in chosen)
        disk.make_room(budget=0, needed=others(client, chosen), recorded={strange.id}, builder=None)
        assert all(engine.image(client, bake.candidate(cell)) is None for cell in chosen)
        assert engine.image(client, "somebody:else") and engine.image(client, small)
    finally:
        client.images.remove("somebody:else")


@long
def test_cpu_cell_is_built_proven_smoked_and_promoted_by_a_night_that_was_killed(
    client, debian, cpu_wheels, night_cell, lay_out, evidence, tmp_path, monkeypatch
):
    """For real but for the base: the wheels, the proof and the probes are the CPU cell's own."""
    monkeypatch.delenv("ROCMATRIX_STAND_IN")
    root = lay_out(night_cell, cells.CPU)
    render.write_recipe(night_cell, root / "images" / night_cell.name)  # its labels bear the name of the tests' own
    baselines = [cells.MATRIX.baseline(cells.CPU.name).model_copy(update={"cell": night_cell.name})]
    matrix = cells.MATRIX.model_copy(update={"baselines": baselines})
    more = {"base": debian, "wheels": cpu_wheels, "matrix": matrix}
    night = stages(root, evidence, tmp_path, [night_cell], **more)
    journal = Journal(evidence)
    plan = Plan(cells=(night_cell.name,), inputs=("a" * 64,))
    name = journal.begin(plan)[0].name
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            Running(name=name, cells=[night_cell], stages=night, journal=journal, jobs=1).run()
        os._exit(0)
    while (night_cell.name, "smoke") not in (results := journal.results(name)):
        assert os.waitpid(child, os.WNOHANG) == (0, 0), results
        time.sleep(0.1)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    before = {key: result for key, result in journal.results(name).items() if result.state == "passed"}
    assert {stage for _, stage in before} == {"build", "prove"}
    running = Running(name=journal.begin(plan)[0].name, cells=[night_cell], stages=night, journal=journal, jobs=1)
    assert running.name == name
    running.run()
    assert {stage: result.state for (_, stage), result in running.results.items()} == {
        "build": "passed", "prove": "passed", "smoke": "passed", "promote": "passed",
    }  # fmt: skip
    assert client.images.get(build.tag(night_cell)).id == client.images.get(bake.candidate(night_cell)).id
    records = store.read(evidence)
    assert [r.kind for r in records if r.passed] == ["build", "prove", "smoke"]
    assert {r.kind for r in records if not r.passed} <= {"smoke"}  # that of the night that was killed
    every = dict.fromkeys(PASS, "pass") | dict.fromkeys(ABSENT, "not-applicable")
    assert {verdict.probe: verdict.status for verdict in records[-1].verdicts} == every
    assert {r.marks for r in records} == {("other-base",)}
    # The image that was promoted knows its base: the next build needs no flag and no registry.
    monkeypatch.setattr(engine, "obtain", lambda *_: pytest.fail("asked a registry"))
    again = build.build(night_cell, root=root, wheelhouse=cpu_wheels)
    assert (again.rebuilt, again.image.labels[build.BASE_LABEL]) == (False, debian)
    assert {r.image for r in records} == {again.image.id}  # what was proven and smoked is what was sealed
    assert again.image.sealed
    (cell_status,) = cell_statuses(night_cell, records, rendered=True)
    assert cell_status.level == "rendered"  # the base was another one: all of it is set aside
    assert cell_status.set_aside == len(records)
