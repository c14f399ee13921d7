"""Building up to the engine's door: the command, the hash of the inputs, and how BuildKit's end is read."""

import contextlib
import os
import shlex
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import docker.errors
import pytest

from rocmatrix.containers import engine
from rocmatrix.images import base, build, lock, render
from rocmatrix.images import labels as image_labels
from rocmatrix.images.labels import OtherBase
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures.cells import CPU, GFX1100, MATRIX

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture
def checkout(tmp_path):
    """Return a copy of what the CPU cell's image is made of."""
    shutil.copytree(ROOT / "trainer", tmp_path / "trainer", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "images" / CPU.name, tmp_path / "images" / CPU.name)
    return tmp_path


def change(path):
    path.write_text(path.read_text() + "\n")


INPUTS = [f"images/{CPU.name}/{name}" for name in build.CELL_FILES] + [
    "trainer/engine/loop.py",
    "trainer/data/SOURCE.md",
]


@pytest.mark.parametrize("path", INPUTS)
def test_inputs_each_change_the_hash(checkout, path):
    before = build.input_hash(CPU, checkout)
    change(checkout / path)
    assert build.input_hash(CPU, checkout) != before


def test_new_or_renamed_file_of_the_trainer_changes_the_hash(checkout):
    hashes = {build.input_hash(CPU, checkout)}
    (checkout / "trainer" / "a.py").write_text("")
    hashes.add(build.input_hash(CPU, checkout))
    (checkout / "trainer" / "a.py").rename(checkout / "trainer" / "b.py")
    hashes.add(build.input_hash(CPU, checkout))
    assert len(hashes) == 3


def test_another_base_changes_the_hash():
    assert build.input_hash(CPU, ROOT, base="mirror/debian:12") != build.input_hash(CPU, ROOT)


def test_times_and_byte_code_do_not_change_the_hash(checkout):
    before = build.input_hash(CPU, checkout)
    (checkout / "trainer" / "__pycache__").mkdir()
    (checkout / "trainer" / "__pycache__" / "loop.pyc").write_bytes(b"code")
    os.utime(checkout / "trainer" / "engine" / "loop.py", (0, 0))
    assert build.input_hash(CPU, checkout) == before


def test_hash_does_not_depend_on_the_place(checkout):
    assert build.input_hash(CPU, checkout) == build.input_hash(CPU, ROOT)


def test_cell_that_was_not_rendered_is_rm101(checkout):
    (checkout / "images" / CPU.name / "requirements.lock").unlink()
    with pytest.raises(RocmatrixError, match=r"RM101[\s\S]*requirements.lock"):
        build.input_hash(CPU, checkout)


def test_prune_program_counts_for_pruned_cells_alone(monkeypatch, tmp_path):
    shutil.copytree(ROOT / "rocmatrix", tmp_path / "rocmatrix", ignore=shutil.ignore_patterns("__pycache__"))
    before = [build.input_hash(cell, ROOT) for cell in (CPU, GFX1100)]
    monkeypatch.setattr(build, "PRUNER", tmp_path / "rocmatrix")
    assert [build.input_hash(cell, ROOT) for cell in (CPU, GFX1100)] == before
    with (tmp_path / "rocmatrix" / "verify" / "pruning" / "prune.py").open("a") as file:
        file.write("# changed")
    after = [build.input_hash(cell, ROOT) for cell in (CPU, GFX1100)]
    assert (after[0] == before[0], after[1] == before[1]) == (True, False)


def test_command_is_the_whole_recipe():
    argv = build.buildx_argv(GFX1100, root=Path("/c"), wheelhouse=Path("/w"), inputs="abc", base="mirror/u:1")
    assert argv == [
        *("docker", "buildx", "build", "--output", "type=docker,compression=zstd,oci-mediatypes=true"),
        *("--provenance=false", "--progress=plain"),
        *("--tag", "rocmatrix:rocm6.3-torch2.7.1-gfx1100", "--build-arg", "SOURCE_DATE_EPOCH=1767225600"),
        *("--label", "org.rocmatrix.inputs=abc"),
        *("--label", "org.rocmatrix.base=mirror/u:1"),
        *("--build-context", "wheelhouse=/w", "--build-context", "trainer=/c/trainer"),
        *("--build-context", f"pruner={ROOT / 'rocmatrix'}"),  # the cell is pruned
        *("--build-context", "base=docker-image://mirror/u:1", "/c/images/rocm6.3-torch2.7.1-gfx1100"),
    ]


def test_command_writes_the_labels_on_its_origin_which_are_no_input():
    about = {"root": Path("/c"), "wheelhouse": Path("/w"), "inputs": "abc"}
    plain = build.buildx_argv(GFX1100, **about)
    described = build.buildx_argv(GFX1100, **about, described={"org.opencontainers.image.revision": "1-dirty"})
    at = described.index("org.opencontainers.image.revision=1-dirty")
    assert described[: at - 1] + described[at + 1 :] == plain
    assert described[at - 1] == "--label"


def test_dry_run_names_the_commit_and_the_same_inputs_at_another_one(capsys, monkeypatch):
    runs = {}
    for commit in ("a" * 40, "b" * 40):
        monkeypatch.setattr(image_labels, "revision", lambda root, commit=commit: commit)
        runs[commit] = build.build(GFX1100, root=ROOT, dry_run=True)
        assert f"--label org.opencontainers.image.revision={commit}" in capsys.readouterr().out
    assert len({made.inputs for made in runs.values()}) == 1


REMEMBERED = {"org.rocmatrix.base": "mirror/u:1", "org.rocmatrix.base.id": "sha256:old"}


@pytest.mark.parametrize(
    ("tag", "labels", "there", "chosen"),
    [
        (None, {}, {}, (None, None)),  # the cell's own
        ("mirror/u:2", REMEMBERED, {"mirror/u:2": "sha256:two"}, ("mirror/u:2", "sha256:two")),
        (None, REMEMBERED, {"mirror/u:1": "sha256:moved"}, ("mirror/u:1", "sha256:moved")),  # the tag moved
        (None, REMEMBERED, {}, ("mirror/u:1", "sha256:old")),  # the engine has lost it since
    ],
)
def test_base_is_remembered_and_counts_by_what_it_is_now(monkeypatch, tag, labels, there, chosen):
    def look(_client, name):
        return engine.Image(id=there[name], labels={}, size=1) if name in there else None

    monkeypatch.setattr(engine, "image", look)
    monkeypatch.setattr(engine, "obtain", lambda *_: pytest.fail("asked a registry"))
    found = base.chosen(None, tag, engine.Image(id="sha256:held", labels=labels, size=1))
    assert (found.name, found.id) == chosen if found else chosen == (None, None)


def test_base_that_is_nowhere_is_fetched(monkeypatch):
    monkeypatch.setattr(engine, "image", lambda *_: None)
    monkeypatch.setattr(engine, "obtain", lambda _, name: engine.Image(id=f"sha256:{name}", labels={}, size=1))
    assert base.chosen(None, "u:3", None) == OtherBase(name="u:3", id="sha256:u:3")


def test_dockerfile_without_another_base_has_its_own():
    argv = build.buildx_argv(GFX1100, root=Path("/c"), wheelhouse=Path("/w"), inputs="abc")
    assert not any("docker-image" in word for word in argv)


def test_contexts_of_the_command_are_stages_of_the_dockerfile():
    argv = build.buildx_argv(GFX1100, root=ROOT, wheelhouse=Path("/w"), inputs="abc", base="mirror/u:1")
    names = {word.partition("=")[0] for flag, word in pairwise(argv) if flag == "--build-context"}
    dockerfile = (ROOT / "images" / GFX1100.name / "Dockerfile").read_text().splitlines()
    stages = {line.split(" AS ")[1] for line in dockerfile if line.startswith("FROM ") and " AS " in line}
    assert names == stages - {"runtime"}


def test_dry_run_prints_the_command_and_touches_nothing(checkout, monkeypatch, capsys):
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere.sock")
    before = sorted(checkout.rglob("*"))
    built = build.build(CPU, root=checkout, base="mirror/debian:12", dry_run=True)
    assert capsys.readouterr().out == shlex.join(built.argv) + "\n"
    assert f"{build.INPUTS_LABEL}={built.inputs}" in built.argv
    assert sorted(checkout.rglob("*")) == before
    assert built.summary == "dry run: nothing was built"


def held(inputs, *, sealed=True):
    labels = {build.INPUTS_LABEL: inputs} if inputs else {}
    return engine.Image(id="sha256:a", labels=labels, size=1, sealed=sealed)


@pytest.mark.parametrize(
    ("image", "same"),
    [(held("abc"), True), (held("abd"), False), (held(None), False), (held("abc", sealed=False), False), (None, False)],
    ids=["these", "others", "none", "derived", "no image"],
)
def test_sealed_image_of_these_inputs_is_the_only_one_that_counts_as_built(image, same, tmp_path):
    planned = build.Built(tag="t", inputs="abc", argv=())
    assert build.is_of(image, "abc") is same
    if same:
        assert build._arrived(image, planned, tmp_path) is image
        return
    with pytest.raises(RocmatrixError, match=r"RM202[\s\S]*with these inputs"):
        build._arrived(image, planned, tmp_path)


@pytest.fixture
def builder(monkeypatch):
    """A build in which BuildKit does nothing and the engine has an image of its inputs."""
    monkeypatch.setattr(engine, "require_buildx", lambda: None)
    monkeypatch.setattr(build.engine_lock, "exclusive", lambda *_, **__: contextlib.nullcontext())
    monkeypatch.setattr(engine, "obtain", lambda *_: held(None))
    monkeypatch.setattr(engine, "image", lambda *_: held("abc"))
    monkeypatch.setattr(engine.label_integrity, "put", lambda *_, **_more: None)
    monkeypatch.setattr(build.disk_space, "of_engine", lambda _: build.disk_space.Room(folder=None))
    monkeypatch.setattr(build, "fetch", lambda *_: None)
    monkeypatch.setattr(build.buildkit, "run", lambda *_, **__: None)
    return build.Built(tag="t", inputs="abc", argv=("x",))


@pytest.mark.parametrize("sealed", [True, False])
def test_image_that_was_changed_since_is_not_up_to_date(checkout, builder, sealed):
    there = held("abc", sealed=sealed)
    built = build._build(None, builder, CPU, held=there, wheels=checkout, log=checkout / "log")
    assert built.rebuilt is not sealed


def test_engine_that_does_not_seal_what_was_built_is_trouble_of_the_host(checkout, builder, monkeypatch):
    def refuse(*_, **_more):
        raise docker.errors.APIError("the daemon is shutting down")

    monkeypatch.setattr(engine.label_integrity, "put", refuse)
    with pytest.raises(build.BuildFailedError, match="RM202") as failed:
        build._build(None, builder, CPU, held=None, wheels=checkout, log=checkout / "log")
    assert failed.value.trouble is not None
    assert failed.value.trouble.stage == "engine"


def test_forced_rule_is_a_label_and_an_input():
    argv = build.buildx_argv(GFX1100, root=ROOT, wheelhouse=Path("/w"), inputs="abc", forced=["rule-a", "rule-b"])
    assert f"{build.FORCED_LABEL}=rule-a,rule-b" in argv
    assert not any(build.FORCED_LABEL in word for word in build.build(GFX1100, root=ROOT, dry_run=True).argv)
    assert build.input_hash(GFX1100, ROOT, forced=["rule-a"]) != build.input_hash(GFX1100, ROOT)


def test_derived_cell_is_built_from_a_recipe_of_its_own_with_a_compose_file(tmp_path):
    release = MATRIX.release_by_name["rocm7.2-torch2.12.1"]
    cell = MATRIX.derived("gfx906", release)
    shutil.copytree(ROOT / "trainer", tmp_path / "trainer")
    folder = build.made_recipe(cell, tmp_path)
    with pytest.raises(RocmatrixError, match=r"RM101[\s\S]*recipes/"):
        build.build(cell, root=tmp_path, dry_run=True)
    render.make_ready(cell, tmp_path)
    assert sorted(path.name for path in folder.iterdir()) == sorted([*build.CELL_FILES, "compose.yaml"])
    built = build.build(cell, root=tmp_path, dry_run=True, forced=["gfx906-rocblas-from-6.4"])
    assert built.argv[-1] == str(folder)
    assert folder.is_relative_to(tmp_path / ".rocmatrix")
    assert f"image: rocmatrix:{cell.name}" in (folder / "compose.yaml").read_text()
    assert build.recipe(GFX1100, ROOT) == ROOT / "images" / GFX1100.name


def test_cell_without_hashes_names_the_one_command_and_how_its_files_come_here(tmp_path):
    cell = MATRIX.derived("gfx1100", MATRIX.release_by_name["rocm7.0-torch2.10.0"])
    with pytest.raises(RocmatrixError) as caught:
        build.build(cell, root=tmp_path, dry_run=True)
    assert caught.value.code == "RM102"
    assert "./invokew lock --cell rocm7.0-torch2.10.0-gfx1100\n" in caught.value.next
    assert "download.pytorch.org/whl/rocm7.0" in caught.value.next
    assert "git diff matrix/ > lock.patch" in caught.value.next
    assert [target.summary for target in lock.cell_targets(MATRIX, cell.name)] == ["rocm7.0-torch2.10.0, Python 3.12"]


def test_stopped_engine_is_rm201_before_anything_is_fetched(checkout, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{checkout}/none.sock")
    with pytest.raises(RocmatrixError, match="RM201"):
        build.build(CPU, root=checkout)
    assert not (checkout / ".rocmatrix").exists()


def program(code):
    return [sys.executable, "-c", code]


def test_up_to_date_build_imports_the_engine_client_only_when_needed():
    imports = "from rocmatrix.images import build; from rocmatrix.containers import engine"
    code = f"{imports}; import rocmatrix.matrix.loading.load; import sys; assert 'docker' not in sys.modules"
    subprocess.run(program(code), check=True, cwd=ROOT)


def test_base_whose_tag_has_moved_makes_another_image(checkout, monkeypatch, tmp_path):
    """The tag is the same, the id behind it is not: what is up to date is decided by the id."""

    class Client:
        def __init__(self, *, work):
            assert work

        def close(self):
            pass

    made = []
    monkeypatch.setattr(engine, "connect", Client)
    monkeypatch.setattr(engine, "image", lambda client, reference: None)
    monkeypatch.setattr(build, "refuse_held", lambda *_: None)
    monkeypatch.setattr(build, "_build", lambda client, planned, cell, **_: made.append(planned) or planned)
    for base_id in ("sha256:" + "1" * 64, "sha256:" + "2" * 64):
        other = OtherBase(name="site/base:stable", id=base_id)
        monkeypatch.setattr(build, "chosen", lambda client, name, held, found=other: found)
        build.build(CPU, root=checkout, base="site/base:stable", wheelhouse=tmp_path)
    first, second = made
    assert first.inputs != second.inputs
    assert first.inputs == build.input_hash(CPU, checkout, base="sha256:" + "1" * 64)


@pytest.mark.parametrize(
    "name",
    ["rocm/dev-ubuntu-22.04:6.3", "docker.io/rocm/dev-ubuntu-22.04:7.1-complete", "ubuntu:22.04", "debian:12-slim"],
)
def test_public_base_of_another_python_is_refused_in_a_dry_run(name):
    cell = GFX1100
    assert (cell.python, base.bound(cell)) == ("3.12", True)
    with pytest.raises(RocmatrixError, match=r"RM113[\s\S]*Python 3\.1[01][\s\S]*locked for 3\.12"):
        build.build(cell, root=ROOT, base=name, dry_run=True)
