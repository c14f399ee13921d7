"""What came of a build: reused, rebuilt, or failed, and what of the host ended it. The engine is a stand-in."""

import hashlib
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import docker.errors
import pytest

from rocmatrix.containers import engine
from rocmatrix.images import build
from rocmatrix.images import labels as image_labels
from rocmatrix.images.buildkit import BuildKitError
from rocmatrix.images.disk_space import LEAST_FREE, Room
from rocmatrix.images.labels import OtherBase
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures.cells import CPU, GFX1100, MATRIX

UNLOCKED = next(cell for cell in MATRIX.cells if cell.unlocked_because)
OTHER = OtherBase(name="mirror/u:1", id="sha256:1")
PLANNED = build.Built(tag="t", inputs="abc" * 8, argv=("docker", "x"))
ROOM = Room(folder=None)


def image(inputs="abc" * 8, *, sealed=True):
    return engine.Image(id="sha256:a", labels={build.INPUTS_LABEL: inputs}, size=1, sealed=sealed)


@dataclass
class Client:
    """A stand-in for the engine: `gone` is what it raises when asked whether it is there."""

    gone: Exception | None = None
    closed: list[bool] = field(default_factory=list)

    def ping(self):
        if self.gone:
            raise self.gone

    def close(self):
        self.closed.append(True)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "dry run: nothing was built"),
        ({"image": image()}, "t is up to date (inputs abcabcabcabc)"),
        ({"image": image(), "rebuilt": True, "seconds": 61.6}, "built t in 62 s (inputs abcabcabcabc)"),
        (
            {"image": image(), "rebuilt": True, "moved_to": "sha256:b"},
            "built sha256:a, while t was moved to another image, in 0 s (inputs abcabcabcabc)",
        ),
    ],
)
def test_outcome_is_one_line(changes, words):
    assert build.Built(tag="t", inputs="abc" * 8, argv=(), **changes).summary == words


def test_plan_is_not_rebuilt_and_took_no_time():
    assert (PLANNED.rebuilt, PLANNED.seconds, PLANNED.image, PLANNED.labels) == (False, 0.0, None, {})


@pytest.mark.parametrize(
    ("code", "stage"),
    [("RM202", "engine"), ("RM204", "registry"), ("RM104", "registry"), ("RM205", "disk"), ("RM206", "disk")],
)
def test_error_outside_buildkit_is_trouble_of_the_host_by_its_code(code, stage):
    error = RocmatrixError(code, what="one", where="two", why="three", next="four")
    found = build.failed(error, PLANNED, Client(), ROOM)
    assert isinstance(found, build.BuildFailedError)
    assert (found.code, found.what, found.where, found.why, found.next) == (code, "one", "two", "three", "four")
    assert (found.planned, found.trouble.stage, found.trouble.detail) == (PLANNED, stage, error.render())


@pytest.mark.parametrize("code", ["RM101", "RM102", "RM103", "RM203"])
def test_refusal_before_a_build_keeps_its_kind(code):
    error = RocmatrixError(code, what="one")
    assert build.failed(error, PLANNED, Client(), ROOM) is error


@pytest.mark.parametrize(
    ("status", "least", "gone", "stage"),
    [
        (1, None, None, None),
        (0, None, None, None),
        (255, LEAST_FREE, None, None),
        (1, LEAST_FREE - 1, None, "disk"),
        (-2, None, None, "signal"),
        (-9, LEAST_FREE - 1, docker.errors.APIError("gone"), "signal"),
        (1, None, docker.errors.APIError("gone"), "engine"),
        (1, None, ConnectionError("gone"), "engine"),
    ],
)
def test_end_of_buildkit_is_known_by_its_status_the_disk_and_the_engine(status, least, gone, stage):
    error = BuildKitError(status, what="a", where="b", why="no space left on device", next="d")
    room = Room(folder=None, least=least)
    found = build.failed(error, PLANNED, Client(gone), room)
    assert isinstance(found, build.BuildFailedError)
    assert (found.code, found.where, found.next, error.status) == ("RM202", "b", "d", status)
    assert (found.trouble and found.trouble.stage) == stage
    assert (found.trouble is None) is (stage is None)
    assert found.trouble is None or found.trouble.detail == error.render()


CLIENT = Client()


def of_client(answer):
    """Return a function of the engine's client and more that answers for CLIENT alone."""

    def checked(client, *more):
        assert client is CLIENT
        return answer(*more)

    return checked


def alone(client, tag, *, waiting):
    """Stand in for the engine's lock on a tag."""
    assert (client, tag) == (CLIENT, "t")
    assert waiting.startswith("another checkout on this engine builds t, ")
    return nullcontext()


@pytest.fixture
def called(monkeypatch):
    """A build in which each step only writes down that it was taken."""
    steps = []
    monkeypatch.setattr(engine, "require_buildx", lambda: steps.append("buildx"))
    monkeypatch.setattr(engine, "obtain", of_client(lambda name: steps.append(("obtain", name))))
    monkeypatch.setattr(engine, "sealed", of_client(lambda tag: steps.append(("sealed", tag)) or image()))
    monkeypatch.setattr(engine, "image", of_client({"t": image()}.get))
    monkeypatch.setattr(build.disk_space, "of_engine", of_client(lambda: ROOM))
    monkeypatch.setattr(build.engine_lock, "exclusive", alone)
    monkeypatch.setattr(build, "fetch", lambda cell, folder: steps.append(("fetch", cell.name, folder)))
    monkeypatch.setattr(build.buildkit, "run", lambda argv, **more: steps.append(("run", argv, more)))
    return steps


def made(cell, tmp_path, *, held=None, planned=PLANNED):
    return build._build(CLIENT, planned, cell, held=held, wheels=tmp_path / "a" / "w", log=tmp_path / "log")


def test_image_of_these_inputs_is_reused_and_nothing_is_downloaded(called, tmp_path):
    found = made(CPU, tmp_path, held=image())
    assert (found.image, found.rebuilt, found.inputs, called) == (image(), False, PLANNED.inputs, [])


@pytest.mark.parametrize("held", [None, image("other"), image(sealed=False)])
def test_image_of_other_inputs_is_built_again_from_its_base_and_its_wheels(called, tmp_path, held):
    found = made(CPU, tmp_path, held=held)
    assert called == [
        "buildx",
        ("obtain", CPU.base.reference),
        ("fetch", CPU.name, tmp_path / "a" / "w"),
        ("run", PLANNED.argv, {"log": tmp_path / "log", "watched": ROOM}),
        ("sealed", "t"),
    ]
    assert (found.image, found.rebuilt, found.tag, found.moved_to) == (image(), True, "t", None)
    assert 0 < found.seconds < 60


@pytest.mark.parametrize("named", [replace(image(), id="sha256:b"), None])
def test_build_whose_tag_was_moved_keeps_its_own_image_and_names_the_other(called, tmp_path, monkeypatch, named):
    monkeypatch.setattr(engine, "image", of_client({"t": named}.get))
    found = made(CPU, tmp_path)
    assert (found.image, found.moved_to) == (image(), named.id if named else "no image")


def test_failed_build_names_its_plan_the_disk_and_the_engine(called, tmp_path, monkeypatch):
    def end(*_, **__):
        raise BuildKitError(1, what="a", where="b", why="c", next="d")

    calls = []
    monkeypatch.setattr(build.buildkit, "run", end)
    monkeypatch.setattr(build, "failed", lambda *given: calls.append(given) or given[0])
    with pytest.raises(BuildKitError) as caught:
        made(CPU, tmp_path)
    assert calls == [(caught.value, PLANNED, CLIENT, ROOM)]


def test_another_base_is_not_fetched_a_second_time_and_an_unlocked_cell_fetches_no_wheel(called, tmp_path):
    labelled = build.Built(tag="t", inputs="abc" * 8, argv=(), labels={build.BASE_LABEL: "mirror/u:1"})
    for _ in range(2):  # the folder may be there
        made(UNLOCKED, tmp_path, planned=labelled)
    assert (tmp_path / "a" / "w").is_dir()
    assert [step for step in called if step[0] in ("obtain", "fetch")] == []


def test_build_that_brings_other_inputs_is_refused_with_its_log(called, tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "sealed", lambda *_: image("other"))
    with pytest.raises(RocmatrixError, match="RM202") as caught:
        made(CPU, tmp_path)
    assert caught.value.where == str(tmp_path / "log")
    assert not isinstance(caught.value, build.BuildFailedError)


@pytest.fixture
def few(monkeypatch, tmp_path):
    """A checkout with the files of one cell and a trainer of two files."""
    for cell in (CPU, GFX1100, UNLOCKED):
        for name in build.CELL_FILES:
            path = tmp_path / "images" / cell.name / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(name)
    for name in ("trainer/a.py", "trainer/b/c.py", "trainer/b/__pycache__/c.pyc"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    return tmp_path


def test_hash_of_inputs_is_over_the_base_forced_rules_and_each_file_by_name(few):
    files = [*(f"cell/{name}" for name in build.CELL_FILES), "trainer/a.py", "trainer/b/c.py"]
    content = [name.removeprefix("cell/") for name in files]
    lines = [
        f"{name}\0{hashlib.sha256(text.encode()).hexdigest()}\n" for name, text in zip(files, content, strict=True)
    ]
    for own, forced in ((CPU.base.reference, ()), ("sha256:1", ("r1", "r2"))):
        head = f"base\0{own}\n" + "".join(f"forced\0{rule}\n" for rule in forced)
        expected = hashlib.sha256("".join([head, *sorted(lines)]).encode()).hexdigest()
        assert build.input_hash(CPU, few, base=None if own == CPU.base.reference else own, forced=forced) == expected


def test_prune_stage_counts_by_names_of_its_own(few):
    assert [name for name, _ in build.pruner_files(GFX1100)] == [f"pruner/{name}" for name in build.PRUNER_FILES]
    assert all(path.is_file() for _, path in build.pruner_files(GFX1100))
    assert list(build.pruner_files(CPU)) == []


@pytest.fixture
def reached(monkeypatch):
    """What `build` hands to the engine's part."""
    seen = SimpleNamespace(client=Client(), held=image("held"), chosen_for=[], given={}, looked=[])
    monkeypatch.setattr(engine, "connect", lambda *, work: seen.client if work else None)
    monkeypatch.setattr(
        engine, "image", lambda client, tag: seen.held if (client, tag) == (seen.client, build.tag(CPU)) else None
    )
    monkeypatch.setattr(build, "chosen", lambda *client: seen.chosen_for.append(client) or OTHER)
    monkeypatch.setattr(build, "refuse_held", lambda *looked: seen.looked.append(looked))
    monkeypatch.setattr(
        build,
        "_build",
        lambda client, planned, cell, **more: seen.given.update(more, client=client, cell=cell) or planned,
    )
    return seen


def test_build_takes_the_base_that_was_chosen_and_the_cells_own_folders(few, reached):
    planned = build.build(CPU, root=few, base="asked", forced=["r"])
    assert reached.chosen_for == [(reached.client, "asked", reached.held)]
    assert reached.looked == [(CPU, reached.client, OTHER)]
    assert reached.client.closed == [True]
    folder = few / ".rocmatrix"
    assert reached.given == {
        "client": reached.client,
        "cell": CPU,
        "held": reached.held,
        "wheels": folder / "wheelhouse" / f"{CPU.lock_name}-py{CPU.python}",
        "log": folder / "logs" / f"build-{CPU.image_name}.log",
    }
    assert planned.inputs == build.input_hash(CPU, few, base="sha256:1", forced=["r"])
    assert planned.labels == image_labels.of_build(planned.inputs, other=OTHER, forced=["r"])
    expected = {"base": "mirror/u:1", "base_id": "sha256:1", "forced": ["r"], "inputs": planned.inputs}
    expected["described"] = image_labels.describing(CPU.base, few, OTHER)
    assert "org.opencontainers.image.base.name=mirror/u:1" in planned.argv
    assert list(planned.argv) == build.buildx_argv(CPU, root=few, wheelhouse=reached.given["wheels"], **expected)
    assert {"org.rocmatrix.base=mirror/u:1", "org.rocmatrix.base.id=sha256:1"} <= set(planned.argv)
    assert planned.tag == build.tag(CPU)


def test_base_of_the_cell_counts_where_no_other_is_given(few, reached, monkeypatch):
    monkeypatch.setattr(build, "chosen", lambda *_: None)
    planned = build.build(CPU, root=few, wheelhouse=few / "w")
    assert (planned.inputs, reached.given["wheels"]) == (build.input_hash(CPU, few), few / "w")
    assert planned.labels == {build.INPUTS_LABEL: planned.inputs}


@pytest.mark.parametrize("named", [None, "mirror/u:1"])
@pytest.mark.parametrize("held", [None, image("held")])
@pytest.mark.parametrize("other", [None, OTHER])
def test_base_is_looked_into_where_it_is_named_or_the_image_is_a_first_one(
    few, reached, monkeypatch, named, held, other
):
    monkeypatch.setattr(build, "chosen", lambda *_: other)
    reached.held = held
    build.build(CPU, root=few, base=named)
    looked = other is not None and (named is not None or held is None)
    assert reached.looked == ([(CPU, reached.client, OTHER)] if looked else [])


@pytest.mark.parametrize("code", ["RM204", "RM201"])
@pytest.mark.parametrize("calls", ["mirror/u:9", None, ""])
def test_base_missing_in_the_registry_is_a_failed_build_and_other_errors_are_not(
    few, reached, monkeypatch, code, calls
):
    def refuse(*_):
        raise RocmatrixError(code, what="mirror/u:9")

    monkeypatch.setattr(build, "chosen", refuse)
    with pytest.raises(RocmatrixError, match=code) as caught:
        build.build(CPU, root=few, base=calls)
    assert isinstance(caught.value, build.BuildFailedError) is (code == "RM204")
    if code == "RM204":
        assert (caught.value.trouble.stage, caught.value.what) == ("registry", "mirror/u:9")
        assert "mirror/u:9" in caught.value.trouble.detail
        assert caught.value.planned.labels.get(build.BASE_LABEL) == (calls or None)
        assert caught.value.planned.inputs == build.input_hash(CPU, few, base=calls)
        assert any("docker-image" in word for word in caught.value.planned.argv) is bool(calls)


def test_unlocked_cell_is_planned_where_that_is_allowed_alone(few, capsys):
    with pytest.raises(RocmatrixError, match="RM102") as caught:
        build.build(UNLOCKED, root=few, dry_run=True)
    assert caught.value.where == f"matrix/locks.yaml, {UNLOCKED.lock_name}, Python {UNLOCKED.python}"
    assert caught.value.why == UNLOCKED.unlocked_because
    assert build.build(UNLOCKED, root=few, dry_run=True, allow_unlocked=True).image is None


def test_dry_run_on_another_base_names_it_without_an_id(few, capsys):
    planned = build.build(CPU, root=few, base="mirror/u:9", dry_run=True)
    assert planned.labels == {build.INPUTS_LABEL: planned.inputs, build.BASE_LABEL: "mirror/u:9"}
    assert planned.inputs == build.input_hash(CPU, few, base="mirror/u:9")
    assert build.build(CPU, root=few, dry_run=True).labels.keys() == {build.INPUTS_LABEL}
    own = [build.build(CPU, root=few, base=base, dry_run=True) for base in (None, "")]
    assert own[0] == own[1]


@pytest.mark.parametrize(("dry_run", "base"), [(True, None), (True, "mirror/u:9"), (False, None)])
def test_unlocked_image_that_was_built_before_is_used_and_another_is_not(few, reached, monkeypatch, dry_run, base):
    def there(client, name):
        assert client is reached.client
        return {build.tag(UNLOCKED): reached.held, "mirror/u:9": image()}.get(name)

    monkeypatch.setattr(engine, "obstacle", lambda: None)
    monkeypatch.setattr(engine, "image", there)
    monkeypatch.setattr(build, "chosen", lambda *_: None)
    own = build.input_hash(UNLOCKED, few)
    reached.held = image(own)
    assert build.build(UNLOCKED, root=few, base=base, dry_run=dry_run).inputs == own
    assert reached.given["held"] is reached.held
    for other in (None, image("0" * 64), image(own, sealed=False)):
        reached.held = other
        with pytest.raises(RocmatrixError, match="RM102"):
            build.build(UNLOCKED, root=few, base=base, dry_run=dry_run)


def test_dry_run_of_an_unlocked_cell_pulls_no_base_and_starts_no_build(few, reached, monkeypatch):
    monkeypatch.setattr(engine, "obstacle", lambda: None)
    monkeypatch.setattr(engine, "image", lambda _, name: image() if name == build.tag(UNLOCKED) else None)
    monkeypatch.setattr(build, "chosen", lambda *_: pytest.fail("pulled"))
    monkeypatch.setattr(build, "_build", lambda *_, **__: pytest.fail("built"))
    with pytest.raises(RocmatrixError, match="RM102"):
        build.build(UNLOCKED, root=few, base="mirror/u:9", dry_run=True)
