"""An image next to its second build: every layer and setting counts, labels of one build do not."""

import contextlib
import copy
from types import SimpleNamespace

import pytest

from rocmatrix.containers import label_integrity
from rocmatrix.evidence import host_failure
from rocmatrix.images import buildkit, disk_space
from rocmatrix.images import labels as image_labels
from rocmatrix.images.wheelhouse import default_folder
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.verify import rebuild
from tests.fixtures import cells

CPU = cells.CPU
LABELS = {"org.rocmatrix.cell": CPU.name, "org.rocmatrix.inputs": "abc", "org.rocmatrix.seal": "s"}
IMAGE = {
    "Created": "2026-01-01T00:00:00Z",
    "RootFS": {"Layers": ["sha256:a", "sha256:b", "sha256:c"]},
    "Config": {"User": "10001:10001", "Env": ["A=1"], "Cmd": ["--help"], "Labels": LABELS},
}


def changed(change):
    made = copy.deepcopy(IMAGE)
    change(made)
    return made


def places(made):
    return [place for finding in rebuild.compared(IMAGE, made).findings for place in finding.places]


def test_image_with_equal_layers_and_settings_passes():
    check = rebuild.compared(IMAGE, copy.deepcopy(IMAGE))
    assert (check.name, check.status, check.findings) == ("rebuild", "passed", ())
    assert check.summary == "3 layers and the settings, built anew without a cache"


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda image: image["RootFS"]["Layers"].__setitem__(1, "sha256:x"), ["layer 2 (sha256:b)"]),
        (lambda image: image["RootFS"]["Layers"].append("sha256:d"), ["3 layers, and 4 built anew"]),
        (lambda image: image["RootFS"]["Layers"].pop(), ["3 layers, and 2 built anew"]),
        (lambda image: image["Config"].update(User="0"), ["User is '10001:10001', built anew '0'"]),
        (lambda image: image["Config"].update(Volumes={"/x": {}}), ["Volumes is None, built anew {'/x': {}}"]),
        (lambda image: image.update(Created="now"), ["Created is '2026-01-01T00:00:00Z', built anew 'now'"]),
    ],
)
def test_difference_is_named(change, found):
    assert places(changed(change)) == found


def test_label_of_another_value_counts_and_one_of_a_single_build_does_not():
    assert places(changed(lambda image: image["Config"]["Labels"].update({"org.rocmatrix.torch": "1"})))
    for label in (label_integrity.LABEL, image_labels.NIGHT):
        assert not places(changed(lambda image, label=label: image["Config"]["Labels"].update({label: "other"})))


@pytest.fixture
def engine(monkeypatch, tmp_path):
    """An engine with the image and, by name, bases; `argv` keeps what BuildKit was given, `removed` what went."""
    held = SimpleNamespace(attrs=IMAGE, made=copy.deepcopy(IMAGE), bases={}, argv=[], more={}, removed=[])
    held.obtained, held.fetched, held.locked, held.least, held.packages = [], [], [], None, {}

    def base_of(name):
        return held.bases.get(name)

    def of_client(answer):
        def checked(given, *words):
            assert given is client and None not in words
            return answer(*words)

        return checked

    def run(argv, **more):
        held.argv.extend(argv)
        held.more.update(more)

    def input_hash(cell, root, *, base, forced):
        assert (cell.name, root) == (CPU.name, tmp_path)
        return f"abc{base or ''}{''.join(forced)}"

    def get(name):
        return SimpleNamespace(attrs=held.made if name.endswith("-rebuilt") else held.attrs)

    images = SimpleNamespace(get=get, remove=lambda tag, force: held.removed.append(tag if force else "not removed"))
    client = SimpleNamespace(images=images, close=lambda: None, ping=lambda: True)
    monkeypatch.setattr(rebuild.engine, "connect", lambda *, work: client if work else None)
    monkeypatch.setattr(rebuild.engine, "image", of_client(base_of))
    monkeypatch.setattr(rebuild.engine, "obtain", of_client(held.obtained.append))
    room = of_client(lambda: disk_space.Room(folder=None, least=held.least))
    monkeypatch.setattr(rebuild.disk_space, "of_engine", room)
    monkeypatch.setattr(rebuild, "fetch", lambda cell, wheels: held.fetched.append((cell, wheels)))
    monkeypatch.setattr(rebuild.distribution_packages, "read", of_client(lambda image: held.packages.get(image, {})))
    monkeypatch.setattr(rebuild.build, "input_hash", input_hash)
    monkeypatch.setattr(rebuild.buildkit, "run", run)

    @contextlib.contextmanager
    def alone(given, name, *, waiting):
        assert given is client
        held.locked.append((name, bool(waiting), list(held.removed)))
        yield
        held.locked.append((name, bool(waiting), list(held.removed)))

    monkeypatch.setattr(rebuild.engine_lock, "exclusive", alone)
    return held


def test_second_build_has_no_cache_and_a_tag_of_its_own_that_goes(engine, tmp_path):
    assert rebuild.check(CPU, "sha256:1", root=tmp_path).status == "passed"
    assert engine.argv[:4] == ["docker", "buildx", "build", "--no-cache"]
    assert f"rocmatrix:{CPU.name}-rebuilt" in engine.argv
    assert f"rocmatrix:{CPU.name}" not in engine.argv
    assert engine.removed == [f"rocmatrix:{CPU.name}-rebuilt"]


@pytest.mark.parametrize("wheels", [None, "w"])
def test_second_build_is_that_of_the_image_from_the_folders_of_the_checkout(engine, tmp_path, wheels):
    more = {
        "org.rocmatrix.base": "m/u:1", "org.rocmatrix.base.id": "sha256:old",
        "org.rocmatrix.inputs": "abcsha256:oldrs", "org.rocmatrix.forced": "r,s",
    }  # fmt: skip
    described = {image_labels.DESCRIBING[0]: "SYNTHETIC"}
    engine.attrs = changed(lambda image: image["Config"].update(Labels=LABELS | more | described))
    engine.made = copy.deepcopy(engine.attrs)
    engine.bases = {"m/u:1": SimpleNamespace(id="sha256:old")}
    folder = tmp_path / wheels if wheels else default_folder(tmp_path, CPU)
    rebuild.check(CPU, "sha256:1", root=tmp_path, wheels=folder if wheels else None)
    expected = rebuild.build.buildx_argv(
        CPU, root=tmp_path, wheelhouse=folder, inputs="abcsha256:oldrs", base="m/u:1", base_id="sha256:old",
        forced=["r", "s"], described=described,
    )  # fmt: skip
    expected[expected.index(f"rocmatrix:{CPU.name}")] += "-rebuilt"
    assert engine.argv == [*expected[:3], "--no-cache", *expected[3:]]
    assert (engine.fetched, engine.obtained) == ([(CPU, folder)], [])
    log = tmp_path / ".rocmatrix" / "logs" / f"rebuild-{CPU.image_name}.log"
    assert engine.more == {"log": log, "watched": disk_space.Room(folder=None)}


def test_base_of_the_cell_is_requested_where_the_image_names_no_other(engine, tmp_path):
    rebuild.check(CPU, "sha256:1", root=tmp_path)
    assert engine.obtained == [CPU.base.reference]


def test_two_second_builds_of_one_image_wait_for_each_other(engine, tmp_path):
    rebuild.check(CPU, "sha256:1", root=tmp_path)
    tag = f"rocmatrix:{CPU.name}-rebuilt"
    assert engine.locked == [(tag, True, []), (tag, True, [tag])]


def test_image_of_unlocked_wheels_is_not_built_again(engine, tmp_path):
    unlocked = next(cell for cell in cells.MATRIX.cells if cell.unlocked_because)
    (finding,) = rebuild.check(unlocked, "sha256:1", root=tmp_path).findings
    assert finding.what.endswith(f"a second build may install others: {unlocked.unlocked_because}")
    assert engine.argv == []


def test_base_that_no_registry_gives_is_requested_before_the_second_build(engine, tmp_path, monkeypatch):
    def refuse(_, reference):
        raise RocmatrixError("RM204", what=reference)

    monkeypatch.setattr(rebuild.engine, "obtain", refuse)
    with pytest.raises(RocmatrixError, match="RM204"):
        rebuild.check(CPU, "sha256:1", root=tmp_path)
    assert engine.argv == []


@pytest.mark.parametrize(("least", "stage"), [(0, "disk"), (10**12, None)])
def test_second_build_that_a_full_disk_ends_is_trouble_of_the_host(engine, tmp_path, monkeypatch, least, stage):
    def end(argv, **_):
        raise buildkit.BuildKitError(1, what="w", where="x", why="y", next="z")

    engine.least = least
    monkeypatch.setattr(rebuild.buildkit, "run", end)
    with pytest.raises(RocmatrixError, match="RM202") as caught:
        rebuild.check(CPU, "sha256:1", root=tmp_path)
    trouble = host_failure.of(caught.value)
    assert (trouble and trouble.stage) == stage
    planned = caught.value.planned
    assert (planned.tag, planned.inputs) == (f"rocmatrix:{CPU.name}-rebuilt", "abc")
    assert (planned.argv[3], planned.argv[-1]) == ("--no-cache", str(rebuild.build.recipe(CPU, tmp_path)))
    assert engine.removed == [f"rocmatrix:{CPU.name}-rebuilt"]


def test_second_build_that_differs_fails_with_rm680(engine, tmp_path):
    engine.made["RootFS"]["Layers"][2] = "sha256:x"
    (finding,) = rebuild.check(CPU, "sha256:1", root=tmp_path).findings
    assert (finding.code, finding.places) == ("RM680", ("layer 3 (sha256:c)",))


def test_image_of_other_inputs_is_not_built_again(engine, tmp_path, monkeypatch):
    monkeypatch.setattr(rebuild.build, "input_hash", lambda *_, **__: "0123456789abcdef")
    check = rebuild.check(CPU, "sha256:1", root=tmp_path)
    (finding,) = check.findings
    assert (check.name, check.summary, finding.code) == ("rebuild", "nothing was built", "RM680")
    assert finding.what == "it was made of other inputs than this checkout's (0123456789ab)"
    assert engine.argv == []


@pytest.mark.parametrize(("there", "passes"), [("sha256:old", True), ("sha256:new", False), (None, False)])
def test_base_has_to_be_the_one_that_the_image_was_made_on(engine, tmp_path, there, passes):
    more = {
        "org.rocmatrix.base": "m/u:1",
        "org.rocmatrix.base.id": "sha256:old",
        "org.rocmatrix.inputs": "abcsha256:oldr",
    }
    labels = {**LABELS, **more, "org.rocmatrix.forced": "r"}
    engine.attrs = changed(lambda image: image["Config"].update(Labels=labels))
    engine.made = copy.deepcopy(engine.attrs)
    engine.bases = {"m/u:1": SimpleNamespace(id=there)} if there else {}
    found = rebuild.check(CPU, "sha256:1", root=tmp_path)
    assert (found.status == "passed", bool(engine.argv)) == (passes, passes)
    if not passes:
        assert found.findings[0].what == "its base m/u:1 is not on this engine as it was"


def test_packages_of_an_archive_that_moved_on_are_named_before_the_layers(engine, tmp_path):
    engine.made["RootFS"]["Layers"][1] = "sha256:x"
    tag = f"rocmatrix:{CPU.name}-rebuilt"
    engine.packages = {"sha256:1": {"gcc": "12.2.0-14", "dash": "1"}, tag: {"gcc": "12.2.0-14+deb12u1", "dash": "1"}}
    (finding,) = rebuild.check(CPU, "sha256:1", root=tmp_path).findings
    moved = "the base's archive has moved on: gcc 12.2.0-14, built anew 12.2.0-14+deb12u1"
    assert finding.places == (moved, "layer 2 (sha256:b)")


def test_equal_packages_say_nothing_of_a_layer_that_differs(engine, tmp_path):
    engine.made["RootFS"]["Layers"][1] = "sha256:x"
    engine.packages = {name: {"gcc": "12.2.0-14"} for name in ("sha256:1", f"rocmatrix:{CPU.name}-rebuilt")}
    (finding,) = rebuild.check(CPU, "sha256:1", root=tmp_path).findings
    assert finding.places == ("layer 2 (sha256:b)",)
