"""The CPU cell's image, built for real: real wheels, its own Dockerfile. Only the base is debootstrap's Debian."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rocmatrix.containers import engine
from rocmatrix.images import build, render
from tests.fixtures import cells

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.container

AGAIN = """
import json, sys
from pathlib import Path
from rocmatrix.images import build
from rocmatrix.matrix.loading import load as matrix_file
root, name, base, wheels = sys.argv[1:]
cell = matrix_file.load(Path.cwd()).cell("cpu-torch2.13.0").model_copy(update={"name": name})
built = build.build(cell, root=Path(root), base=base, wheelhouse=Path(wheels))
print(json.dumps({"rebuilt": built.rebuilt, "image": built.image.id, "words": built.summary}))
"""


def test_dockerfile_and_lock_are_the_committed_ones(cpu_root, cpu_cell):
    for name in build.CELL_FILES:
        built_from = cpu_root / "images" / cpu_cell.name / name
        assert built_from.read_bytes() == (ROOT / "images" / cells.CPU.name / name).read_bytes()


def test_image_holds_the_locked_torch(cpu_image, run):
    code = "import json, torch, numpy; print(json.dumps([torch.__version__, numpy.__version__]))"
    ended = run(cpu_image.tag, "-c", code, entrypoint="python")
    assert ended.status == 0, ended.stderr
    versions = {wheel.name: wheel.version for _, wheel in cells.CPU.wheels}
    assert ended.lines == [[versions["torch"], versions["numpy"]]]


def test_image_has_every_locked_package_and_no_other(cpu_image, run):
    ended = run(cpu_image.tag, "-m", "pip", "list", "--format=json", "--disable-pip-version-check", entrypoint="python")
    found = {package["name"].lower().replace("_", "-"): package["version"] for package in json.loads(ended.stdout)}
    locked = {wheel.name.lower().replace("_", "-"): wheel.version for _, wheel in cells.CPU.wheels}
    assert found.pop("pip")
    assert found == locked


def test_packages_are_complete(cpu_image, run):
    ended = run(cpu_image.tag, "-m", "pip", "check", entrypoint="python")
    assert ended.status == 0, ended.stdout


def test_labels_name_the_cell_and_its_inputs(client, cpu_image, cpu_root, cpu_cell, debian):
    labels = cpu_image.image.labels
    base = engine.image(client, debian).id
    assert labels["org.rocmatrix.inputs"] == build.input_hash(cpu_cell, cpu_root, base=base)
    assert (labels["org.rocmatrix.base"], labels["org.rocmatrix.base.id"]) == (debian, base)
    assert labels["org.rocmatrix.cell"] == cells.CPU.name
    assert labels["org.rocmatrix.torch"] == cells.CPU.release.torch
    assert labels["org.opencontainers.image.title"] == f"rocmatrix {cells.CPU.name}"


def test_base_is_remembered_when_no_other_is_named(cpu_image, cpu_root, cpu_cell, cpu_wheels, debian, capsys):
    again = build.build(cpu_cell, root=cpu_root, wheelhouse=cpu_wheels)
    assert (again.rebuilt, again.image.id) == (False, cpu_image.image.id)
    assert f"base: {debian}, which this image was made from" in capsys.readouterr().err


def test_unchanged_inputs_are_not_rebuilt(cpu_image, cpu_root, cpu_cell, debian, cpu_wheels):
    argv = [sys.executable, "-c", AGAIN, str(cpu_root), cpu_cell.name, debian, str(cpu_wheels)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)
    assert outcome["rebuilt"] is False
    assert outcome["image"] == cpu_image.image.id
    assert "up to date" in outcome["words"]


def test_changed_trainer_is_rebuilt_and_changes_nothing_but_its_layer(client, small_base, stand_in, lay_out, run):
    """On the STAND-IN of a ROCm cell, whose layers are made as the CPU cell's are, of small wheels."""
    cell, wheels = stand_in(cells.GFX1100)
    other = cell.model_copy(update={"name": f"{cell.name}-changed"})
    root = lay_out(other, cells.GFX1100)
    (root / "images" / other.name / "requirements.lock").write_text(render.requirements_lock(other))
    try:
        first = build.build(other, root=root, base=small_base, wheelhouse=wheels)
        before = client.images.get(first.tag).attrs["RootFS"]["Layers"]
        (root / "trainer" / "changed.py").write_text("print('changed')\n")
        built = build.build(other, root=root, base=small_base, wheelhouse=wheels)
        assert built.rebuilt
        assert built.inputs != first.inputs
        assert run(built.tag, "-m", "trainer.changed", entrypoint="python").stdout == "changed\n"
        after = client.images.get(built.tag).attrs["RootFS"]["Layers"]
        changed = [index for index, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
        assert changed
        assert min(changed) >= len(before) - 2  # the trainer, and the working folder after it
    finally:
        remove(client, build.tag(other))


def test_tag_that_holds_other_inputs_is_built_anew(client, cpu_image, cpu_root, cpu_cell, debian, cpu_wheels):
    other = cpu_cell.model_copy(update={"name": f"{cpu_cell.name}-retagged"})
    shutil.copytree(cpu_root / "images" / cpu_cell.name, cpu_root / "images" / other.name)
    client.images.get(debian).tag(*build.tag(other).split(":"))
    try:
        assert build.build(other, root=cpu_root, base=debian, wheelhouse=cpu_wheels).rebuilt
        assert engine.image(client, build.tag(other)).labels["org.rocmatrix.cell"] == cells.CPU.name
    finally:
        remove(client, build.tag(other))


def remove(client, tag):
    if engine.image(client, tag):
        client.images.remove(tag, force=True)
