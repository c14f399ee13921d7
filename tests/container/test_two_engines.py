"""Two engines with empty caches build one image, from two folders at two times: one digest. Wheels are STAND-INS."""

import os
import shutil
import tempfile
import time
from pathlib import Path

import pytest

from rocmatrix.containers import engine
from rocmatrix.images import build, render
from tests.fixtures import cells, second_engine

pytestmark = pytest.mark.container


@pytest.fixture
def short():
    """Return a folder whose path is short enough for sockets below it."""
    with tempfile.TemporaryDirectory(prefix="rm-", dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture
def places(lay_out, stand_in, tmp_path):
    """Return a STAND-IN of the CPU cell, its wheels, and the folder of its inputs twice, with other times and modes."""
    own, wheels = stand_in(cells.CPU)
    cell = own.model_copy(update={"name": f"stand-in-engines-{os.getpid()}"})
    root = lay_out(cell, cells.CPU)
    (root / "images" / cell.name / "requirements.lock").write_text(render.requirements_lock(cell))
    other = tmp_path / "another" / "place"
    shutil.copytree(root, other, copy_function=shutil.copy)
    for path in other.rglob("*"):
        path.chmod(0o700)
    return cell, wheels, (root, other)


def built(address, folder, *, cell, root, base, wheels, monkeypatch):
    """Build on an engine that holds the base and nothing else; return the image's id and its layers."""
    with second_engine.engine(folder), monkeypatch.context() as here:
        second_engine.load(base, address)
        here.setenv("DOCKER_HOST", address)
        client = engine.connect(work=True)
        assert [tag for image in client.images.list() for tag in image.tags] == [base]
        made = build.build(cell, root=root, base=base, wheelhouse=wheels)
        layers = client.images.get(made.tag).attrs["RootFS"]["Layers"]
        client.close()
    return made.image.id, layers


def test_two_engines_with_empty_caches_make_one_image_from_two_folders_at_two_times(
    client, small_base, places, short, monkeypatch
):
    if lacking := second_engine.lacking():
        pytest.skip(lacking)
    cell, wheels, roots = places
    found = []
    for name, root in zip("ab", roots, strict=True):
        folder = short / name
        address = f"unix://{folder}/d.sock"
        begun = time.time()
        found.append(
            built(address, folder, cell=cell, root=root, base=small_base, wheels=wheels, monkeypatch=monkeypatch)
        )
        time.sleep(max(0.0, 2 - (time.time() - begun)))  # file systems and tar count in seconds
    (one, layers), (two, others) = found
    assert layers == others
    assert one == two
