"""What each stage of a night hands on and concludes. The engine, the builder and the programs are STAND-INS."""

from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from rocmatrix.containers import engine_lock
from rocmatrix.diagnosis import explain_failure
from rocmatrix.evidence import baseline, recorder, store
from rocmatrix.evidence.record import Hardware, Trouble, Verdict
from rocmatrix.host import simulated
from rocmatrix.images import build, wheelhouse
from rocmatrix.images import labels as image_labels
from rocmatrix.jobs import job
from rocmatrix.jobs import log as job_log
from rocmatrix.nightly import bake, disk, stages
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.verify import proof
from tests.fixtures.cells import CPU, GFX1100, MATRIX
from tests.fixtures.evidence import IMAGE, INPUTS, OTHER_INPUTS, record
from tests.fixtures.night_stages import CELLS, HOST, OTHER, image, night, steps


def test_cells_that_are_due_are_baked_at_once_and_each_is_recorded(world):
    outcomes = night(world).build(CELLS)
    assert {name: outcome.state for name, outcome in outcomes.items()} == {cell.name: "passed" for cell in CELLS}
    assert {outcome.summary for outcome in outcomes.values()} == {""}
    file = world.folder / ".rocmatrix" / "nightly" / "n7.json"
    folders = {cell.name: wheelhouse.default_folder(world.folder, cell) for cell in CELLS}
    content = {"root": world.folder, "wheelhouses": folders, "night": "n7", "base": None, "base_id": None}
    content |= {"describes": frozenset()}
    assert steps(world, "write") == [(file, {"cells": [cell.name for cell in CELLS], **content}, {})]
    assert world.wheels == folders
    ((argv, log, watched),) = steps(world, "run")
    assert argv == [str(file), "None", *map(bake.target, CELLS)]
    assert (log, watched[0], watched[1].work, watched[1].closed) == (file.with_suffix(".log"), "room", True, True)
    assert [step[0] for step in steps(world, "obtain")] == [CPU.base.reference, GFX1100.base.reference]
    for (cell, built, named), expected in zip(steps(world, "recorded"), CELLS, strict=True):
        assert (cell, named, built.tag) == (expected, {"log": log}, bake.candidate(cell))
        assert (built.inputs, built.argv, built.rebuilt) == (INPUTS, (), True)
        assert built.labels == {build.INPUTS_LABEL: INPUTS}
        assert built.image.id == f"sha256:{cell.name}"
        assert 0 < built.seconds < 60
    assert {step[1:] for step in steps(world, "inputs")} == {(world.folder, None)}


def test_bases_of_cells_are_obtained_once_and_not_for_another_base_or_builder(world):
    night(world).build([CPU, CPU.model_copy(update={"name": "twin"})])
    assert [step[0] for step in steps(world, "obtain")] == [CPU.base.reference]
    for more in ({"base": "mirror/u:1"}, {"builder": "b"}):
        world.given.clear()
        world.images.clear()
        night(world, **more).build([CPU])
        assert steps(world, "obtain") == []
        assert steps(world, "run")[0][0][1] == more.get("builder", "None")


def test_base_that_was_named_is_looked_up_once_and_counts_by_its_id(world, monkeypatch):
    lookups, other = [], replace(OTHER, describes=frozenset(["a.label"]))
    monkeypatch.setattr(stages, "chosen", lambda *given: lookups.append(given) or other)
    night(world, base="mirror/u", wheels=Path("/w")).build([CPU])
    ((client, base, held),) = lookups
    assert (client.work, client.closed, base, held) == (False, True, "mirror/u", None)
    assert {step[2] for step in steps(world, "inputs")} == {"sha256:1"}
    ((_, content, _),) = steps(world, "write")
    assert (content["base"], content["base_id"], content["wheelhouses"], content["describes"]) == (
        "mirror/u", "sha256:1", {CPU.name: Path("/w")}, other.describes
    )  # fmt: skip
    assert world.wheels == {CPU.name: Path("/w")}
    ((_, built, _),) = steps(world, "recorded")
    assert built.labels == image_labels.of_build(INPUTS, other=OTHER)


def test_cell_whose_wheels_cannot_be_had_is_not_baked(world):
    world.refused[f"fetch {CPU.name}"] = RocmatrixError("RM104", what="torch.whl")
    outcomes = night(world).build(CELLS)
    assert (outcomes[CPU.name].state, outcomes[CPU.name].summary) == ("failed", "RM104 torch.whl")
    assert outcomes[GFX1100.name].state == "passed"
    assert steps(world, "run")[0][0][2:] == [bake.target(GFX1100)]
    world.refused[f"fetch {GFX1100.name}"] = RocmatrixError("RM104", what="torch.whl")
    world.given.clear()
    assert {outcome.state for outcome in night(world).build(CELLS).values()} == {"failed"}
    assert steps(world, "run") == steps(world, "write") == []


def test_cell_that_fails_ends_the_others_and_all_are_tried_alone(world):
    error = RocmatrixError("RM204", what="no registry", where="hub")
    world.refused[bake.target(CPU)] = error
    outcomes = night(world).build(CELLS)
    assert (outcomes[CPU.name].state, outcomes[CPU.name].summary) == ("failed", "RM204 no registry; hub")
    assert outcomes[GFX1100.name].state == "passed"
    own = [build.log_file(cell, world.folder) for cell in CELLS]
    runs = steps(world, "run")
    assert [step[1] for step in runs] == [world.folder / ".rocmatrix" / "nightly" / "n7.log", *own]
    assert [step[0][2:] for step in runs[1:]] == [[bake.target(cell)] for cell in CELLS]
    assert len({step[0][0] for step in runs}) == 1  # one bake file
    ((cell, failed, named),) = steps(world, "failed")
    assert (cell, named) == (CPU, {"root": world.folder})
    assert (failed.code, failed.trouble.stage, failed.planned.inputs) == ("RM204", "registry", INPUTS)
    assert failed.planned.labels == {build.INPUTS_LABEL: INPUTS}
    assert failed.planned.argv == tuple(runs[1][0])
    assert (failed.planned.tag, isinstance(failed.__cause__, RocmatrixError)) == ("", False)
    assert [(each[0].name, each[2]) for each in steps(world, "recorded")] == [(GFX1100.name, {"log": own[1]})]


def test_single_cell_that_fails_is_not_tried_a_second_time(world):
    world.refused[bake.target(CPU)] = RocmatrixError("RM204", what="no registry", where="hub")
    outcome = night(world).build([CPU])[CPU.name]
    assert (outcome.state, outcome.summary, len(steps(world, "run"))) == ("failed", "RM204 no registry; hub", 1)
    assert len(steps(world, "failed")) == 1


def test_failure_is_judged_by_the_engine_and_the_disk_of_its_bake(world, monkeypatch):
    judged = []
    monkeypatch.setattr(build, "failed", lambda *given: judged.append(given) or given[0])
    world.refused[bake.target(CPU)] = error = RocmatrixError("RM204", what="no registry", where="hub")
    night(world).build([CPU])
    ((failed, planned, client, watched),) = judged
    assert (failed, planned.tag, watched) == (error, "", ("room", client))
    assert (client.work, client.closed) == (True, True)


def test_failure_before_the_builder_runs_is_no_evidence(world):
    world.refused[bake.target(CPU)] = RocmatrixError("RM101", what="no recipe", where="images")
    outcome = night(world).build([CPU])[CPU.name]
    assert (outcome.summary, steps(world, "failed")) == ("RM101 no recipe; images", [])


@pytest.mark.parametrize("there", [None, image(inputs=OTHER_INPUTS), image(sealed=False)])
def test_candidate_of_other_inputs_after_a_bake_has_failed(world, monkeypatch, there):
    monkeypatch.setattr(
        bake, "run", lambda *_, **__: world.images.update({bake.candidate(CPU): there} if there else {})
    )
    outcome = night(world).build([CPU])[CPU.name]
    assert (outcome.state, outcome.summary) == ("failed", "the engine holds no candidate with these inputs")


def recorded_build(**more):
    return record("build", cell=CPU.name, **more)


@pytest.mark.parametrize("tag", [bake.candidate(CPU), build.tag(CPU)])
def test_image_that_a_build_on_record_made_is_taken_as_it_is(world, tag):
    store.add(world.folder / "e.db", [recorded_build(), record("build", cell=GFX1100.name, image="sha256:" + "d" * 64)])
    world.images[tag] = image()
    assert night(world).build([CPU])[CPU.name].state == "passed"
    assert (world.images[bake.candidate(CPU)].id, steps(world, "run")) == (IMAGE, [])
    ((cell, built, named),) = steps(world, "recorded")
    assert (cell, named) == (CPU, {})
    assert built == build.Built(tag=tag, inputs=INPUTS, argv=(), labels=image().labels, image=image())
    assert all(client.closed for client in world.clients)


@pytest.mark.parametrize("there", [image(inputs=OTHER_INPUTS), image("sha256:" + "e" * 64), image(sealed=False)])
def test_image_of_other_inputs_or_of_no_build_on_record_is_built_anew(world, there):
    store.add(world.folder / "e.db", [recorded_build()])
    world.images |= {bake.candidate(CPU): there}
    assert not night(world).holds(CPU)
    night(world).build([CPU])
    assert len(steps(world, "run")) == 1


def test_candidate_is_held_where_a_build_on_record_made_it(world):
    store.add(world.folder / "e.db", [recorded_build()])
    assert not night(world).holds(CPU)
    world.images[build.tag(CPU)] = image()
    assert not night(world).holds(CPU)
    world.images[bake.candidate(CPU)] = image()
    assert night(world).holds(CPU)
    assert not night(world).holds(GFX1100)
    world.images[bake.candidate(GFX1100)] = image()
    assert not night(world).holds(GFX1100)  # no build of this cell is on record
    assert all(client.closed for client in world.clients)


@pytest.mark.parametrize(("by_host", "by_root"), [(False, False), (True, False), (False, True)])
def test_night_on_a_simulated_machine_counts_what_such_machines_recorded(world, monkeypatch, by_host, by_root):
    own = {"hardware": Hardware(device="cpu"), "versions": {"torch": CPU.release.torch}}
    marks = ("simulated",) if by_host or by_root else ()
    made = [recorded_build(marks=marks), record("prove", 1, cell=CPU.name, marks=marks)]
    made += [record("smoke", 2, cell=CPU.name, marks=marks, **own)]
    monkeypatch.setattr(store, "read", lambda file, *, cell, logs: made * (logs is False))  # no night needs the logs
    monkeypatch.setattr(simulated, "root", lambda: world.folder if by_root else None)
    found = night(world, hardware=SimpleNamespace(simulated=by_host, architectures=()))
    assert (found._sound(CPU), found._tested(CPU)) == ({IMAGE}, IMAGE)


def test_candidate_that_is_gone_is_rm203(world):
    with pytest.raises(RocmatrixError, match="RM203") as caught:
        stages.candidate(CPU)
    assert caught.value.what == f"the engine holds no image {bake.candidate(CPU)}"


@pytest.mark.parametrize("proven", [True, False])
def test_candidate_is_proven_against_its_own_wheels_and_recorded(world, monkeypatch, proven):
    world.images[bake.candidate(CPU)] = image()
    given, kept = [], []

    @contextmanager
    def proving(cell, held):
        given.append((cell, held))
        yield kept.append

    found = SimpleNamespace(proven=proven, findings=[SimpleNamespace(summary=f"f{n}") for n in range(4)])
    monkeypatch.setattr(recorder, "proving", proving)
    monkeypatch.setattr(baseline, "recorded", lambda *name: ("size", *name))
    monkeypatch.setattr(proof, "of_image", lambda *name, **named: given.append((name, named)) or found)
    outcome = night(world, wheels=Path("/w")).prove(CPU)
    assert (outcome.state, outcome.summary, kept) == ("passed" if proven else "failed", "f0; f1; f2", [found])
    size = ("size", world.folder / "e.db", CPU, image())
    named = {"today": "2026-11-22", "root": world.folder, "wheels": Path("/w"), "recorded": size}
    assert given == [(CPU, image()), ((MATRIX, CPU, IMAGE), named)]


@pytest.fixture
def smoked(world, monkeypatch):
    """A smoke whose record is `world.record`, with what it was given."""
    world.record, world.job, world.explained = record("smoke"), [], []
    done = SimpleNamespace(status=3)

    @contextmanager
    def watched(request, place):
        world.job.append((request, place))
        yield lambda ended: world.record if ended is done else pytest.fail("another end")

    def container_job(request, **named):
        world.job.append((request, named))
        return SimpleNamespace(argv=["docker", "run"])

    def run(argv, *, show, log):
        assert show("an event") is None
        world.job.append((argv, log))
        return done

    monkeypatch.setattr(recorder, "watched", watched)
    monkeypatch.setattr(job, "container_job", container_job)
    monkeypatch.setattr(job, "requested_probes", lambda request, *, cell, hardware: (request, cell, hardware))
    monkeypatch.setattr(job_log, "place", lambda *named: ("log", *named))
    monkeypatch.setattr(job, "run", run)
    monkeypatch.setattr(explain_failure, "reported", lambda ended: ("reported", ended))
    monkeypatch.setattr(explain_failure, "explain", lambda *given, **named: world.explained.append((given, named)))
    world.done = done
    return world


def test_smoke_runs_the_candidate_by_its_id_and_is_recorded(smoked):
    smoked.images[bake.candidate(GFX1100)] = image()
    outcome = night(smoked).smoke(GFX1100)
    assert (outcome.state, outcome.summary, smoked.explained) == ("passed", "", [])
    (request, named), (again, place), (argv, log) = smoked.job
    assert request is again
    assert (request.program.name, request.request.cell, request.where) == ("smoke", GFX1100.name, "container")
    assert request.options == {"probe": None, "timeout": None}
    assert named == {"cell": GFX1100, "hardware": HOST, "image": IMAGE}
    assert (argv, log) == (["docker", "run"], ("log", stages.LOGS, "smoke", GFX1100.image_name))
    assert place == recorder.Place(
        cell=GFX1100, hardware=HOST, where="container", image=IMAGE, labels=image().labels,
        requested_probes=(request, GFX1100, HOST),
    )  # fmt: skip


def test_smoke_of_a_candidate_that_is_gone_asks_for_it_by_its_tag(smoked):
    night(smoked).smoke(CPU)
    (_, named), (_, place), _ = smoked.job
    assert (named["image"], place.image, place.labels) == (bake.candidate(CPU), None, None)


def test_smoke_of_a_cell_without_its_card_is_left_out(smoked):
    cell = GFX1100.model_copy(update={"architecture": "gfx906"})
    outcome = night(smoked).smoke(cell)
    assert (outcome.state, outcome.summary) == ("left out", "this machine has no gfx906 card")
    assert smoked.job == []


FAILED = (Verdict(probe="a", status="pass"), Verdict(probe="b", status="fail"), Verdict(probe="c", status="error"))


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (None, "ended with 3; its verdicts could not be read"),
        (record("smoke", passed=False, verdicts=FAILED), "b fail, c error"),
        (record("smoke", passed=False, verdicts=FAILED[:1]), "ended with 3, no failing verdict"),
        (
            record("smoke", passed=False, trouble=Trouble(stage="engine", words="gone")),
            "the host's trouble (engine): gone",
        ),
    ],
)
def test_smoke_that_does_not_pass_states_why_and_is_explained(smoked, found, words):
    smoked.record = found
    outcome = night(smoked).smoke(CPU)
    assert (outcome.state, outcome.summary) == ("failed", words)
    assert smoked.explained == [((("reported", smoked.done),), {"cell": CPU, "hardware": HOST})]


def test_probe_that_does_not_apply_is_no_failing_verdict(smoked):
    verdicts = (Verdict(probe="a", status="pass"), Verdict(probe="b", status=stages.NOT_APPLICABLE))
    smoked.record = record("smoke", verdicts=verdicts)
    outcome = night(smoked).smoke(CPU)
    assert (outcome.state, outcome.summary) == ("passed", "")


@pytest.fixture
def tested(world, monkeypatch):
    """A night whose candidate was proven and smoked, on record."""
    own = {"hardware": Hardware(device="cpu"), "versions": {"torch": CPU.release.torch}}
    records = [record("prove", 0, cell=CPU.name), record("smoke", 1, cell=CPU.name, **own)]
    store.add(world.folder / "e.db", records)
    world.images[bake.candidate(CPU)] = image()
    world.alone = []

    @contextmanager
    def alone(client, name, *, waiting):
        world.alone.append((client, name, waiting))
        yield

    monkeypatch.setattr(engine_lock, "exclusive", alone)
    return world


@pytest.mark.parametrize(
    ("before", "was"),
    [
        (None, ""),
        (image("sha256:" + "d" * 64), ""),
        (image("sha256:" + "d" * 64, OTHER_INPUTS), ", which was an image of other inputs: sha256:" + "d" * 12),
    ],
)
def test_tag_moves_to_the_image_that_was_tested_and_what_it_was_is_named(tested, before, was):
    name = build.tag(CPU)
    if before:
        tested.images[name] = before
    outcome = night(tested).promote(CPU)
    assert (outcome.state, outcome.summary, tested.images[name].id) == ("passed", f"{name}{was}", IMAGE)
    ((client, locked, waiting),) = tested.alone
    assert (client.work, client.closed, locked) == (True, True, name)
    assert waiting == f"another checkout on this engine builds {name}"


def test_tag_that_does_not_move_is_a_failure(tested):
    tested.stuck = True
    tested.images[build.tag(CPU)] = image("sha256:" + "d" * 64)
    assert night(tested).promote(CPU).state == "failed"


def test_image_that_is_not_on_record_as_tested_is_never_promoted(tested):
    with pytest.raises(RocmatrixError, match="RM652"):
        night(tested).promote(GFX1100)  # what is on record is of another cell
    store.add(tested.folder / "e.db", [record("smoke", 9, cell=CPU.name, passed=False)])
    with pytest.raises(RocmatrixError, match="RM652") as caught:
        night(tested).promote(CPU)
    assert caught.value.where == str(tested.folder / "e.db")
    assert caught.value.what == "no image of these inputs is on record as proven and smoked"
    assert (tested.alone, build.tag(CPU) in tested.images) == ([], False)


@pytest.mark.parametrize(
    ("used", "words"), [(999, None), (1000, None), (2_500_000_000, "RM632 2.5 GB in use of 0.0 GB")]
)
def test_room_is_made_among_the_images_of_nights_alone(world, monkeypatch, used, words):
    given = []
    monkeypatch.setattr(disk, "make_room", lambda **named: given.append(named) or used)
    own = record("build", 1, night="n1")
    others = [
        record("build", 2, image="sha256:" + "d" * 64), record("build", 3, night="n1", image=None),
        record("smoke", 4, night="n1", image="sha256:" + "e" * 64),
    ]  # fmt: skip
    store.add(world.folder / "e.db", [own, *others])
    assert night(world, builder="b").make_room() == words
    assert given == [{"budget": 1000, "needed": ("needed:1",), "recorded": {IMAGE}, "builder": "b"}]


def test_room_is_stated_in_gigabytes(world, monkeypatch):
    monkeypatch.setattr(disk, "make_room", lambda **_: 10**20)
    assert night(world, budget=10**19).make_room() == "RM632 100000000000.0 GB in use of 10000000000.0 GB"
