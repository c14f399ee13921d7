"""Two builds of one image from two folders at two times: the same layers, settings and digest. Wheels are STAND-INS."""

import os
import shutil
from pathlib import Path

import pytest

from rocmatrix.containers import label_integrity
from rocmatrix.images import build, buildkit, render
from rocmatrix.verify import rebuild
from tests.fixtures import cells

pytestmark = pytest.mark.container


@pytest.fixture(scope="module")
def made(client, debian, lay_out, stand_in, tmp_path_factory):
    """Build a stand-in of the CPU cell; return the cell, its image, its wheels, and a copy of the folder elsewhere."""
    own, wheels = stand_in(cells.CPU)
    cell = own.model_copy(update={"name": f"stand-in-reproducible-{os.getpid()}"})
    root = lay_out(cell, cells.CPU)
    (root / "images" / cell.name / "requirements.lock").write_text(render.requirements_lock(cell))
    built = build.build(cell, root=root, base=debian, wheelhouse=wheels)
    other = tmp_path_factory.mktemp("another") / "place"
    shutil.copytree(root, other, copy_function=shutil.copy)  # other times
    for path in other.rglob("*"):
        path.chmod(0o700)  # as of a user with umask 077, on a file system where every file may be executed
    yield cell, built, wheels, other
    client.images.remove(build.tag(cell), force=True)


def test_image_built_anew_elsewhere_has_the_same_layers_and_settings(made):
    cell, built, wheels, other = made
    check = rebuild.check(cell, built.image.id, root=other, wheels=wheels)
    assert (check.status, check.findings) == ("passed", ())


def test_sealed_image_built_anew_elsewhere_has_the_same_digest(client, made, monkeypatch):
    cell, built, _wheels, other = made
    root, tag = str(Path(built.argv[-1]).parents[1]), f"{build.tag(cell)}-again"
    argv = [tag if word == build.tag(cell) else word.replace(root, str(other)) for word in built.argv]
    try:
        buildkit.run([*argv[:3], "--no-cache", *argv[3:]], log=other / "log")
        monkeypatch.setenv("BUILDX_BUILDER", "rocmatrix-test-of-a-user")  # no such builder: a seal has to name its own
        assert label_integrity.put(client, tag) == built.image.id
    finally:
        client.images.remove(tag, force=True)
