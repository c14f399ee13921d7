"""Images with packages added by name and by a requirements file: real wheels, real engine, on the CPU cell."""

import json
import subprocess

import pytest

from rocmatrix.images import build, companion_lock, render
from rocmatrix.images.added import requirements_file
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures import cells

pytestmark = pytest.mark.container

LOOK = """
import json, torch
from importlib.metadata import version
print(json.dumps([torch.__version__, version({!r})]))
"""


@pytest.fixture(scope="module")
def built_with(cpu_image, cpu_cell, cpu_root, cpu_wheels, debian):
    """Return a function that locks and builds the tests' CPU cell with packages; its images go with the module."""
    made = []

    def built_with(*packages):
        named = companion_lock.added(cells.MATRIX, cpu_cell, packages)
        try:
            cell = companion_lock.locked(cells.MATRIX, named, cpu_root)
            render.make_ready(cell, cpu_root)
            built = build.build(cell, root=cpu_root, base=debian, wheelhouse=cpu_wheels)
        except RocmatrixError as error:
            if error.code not in ("RM104", "RM105") or "from versions: none" not in error.render():
                raise
            pytest.skip(f"the packages cannot be fetched here: {error.what}")
        made.append(built.tag)
        return cell, built

    yield built_with
    for tag in made:  # by the command line, which waits for a busy engine longer than the SDK's 20 seconds
        subprocess.run(["docker", "image", "rm", "--force", tag], capture_output=True, check=True)


def holds_its_lock(cell, built, run):
    ended = run(built.tag, "-m", "pip", "list", "--format=json", "--disable-pip-version-check", entrypoint="python")
    found = {package["name"].lower().replace("_", "-"): package["version"] for package in json.loads(ended.stdout)}
    locked = {wheel.name.lower().replace("_", "-"): wheel.version for _, wheel in cell.wheels}
    assert found.pop("pip")
    assert found == locked
    checked = run(built.tag, "-m", "pip", "check", entrypoint="python")
    assert checked.status == 0, checked.stdout


def test_image_with_a_companion_and_a_requirements_file_holds_both_next_to_the_cells_torch(
    built_with, run, tmp_path, cpu_root
):
    path = tmp_path / "requirements.txt"
    path.write_text("torch>=2\nnumpy\neinops>=0.8\nrich==13.*; python_version >= '3.10'\n")
    word = requirements_file.take(path, cpu_root)
    cell, built = built_with("tensorboard", word)
    assert "tensorboard" in {wheel.name for file, wheel in cell.wheels if file in cell.added}
    assert built.tag.endswith(f"-with-{'-'.join(cell.companions)}")
    assert set(built.image.labels["org.rocmatrix.companions"].split(",")) == {"tensorboard", word}
    holds_its_lock(cell, built, run)
    torch = next(wheel.version for _, wheel in cells.CPU.wheels if wheel.name == "torch")
    for name, version in (("tensorboard", ""), ("rich", "13."), ("einops", "0.")):
        (found,) = run(built.tag, "-c", LOOK.format(name), entrypoint="python").lines
        assert found[0] == torch
        assert found[1].startswith(version)
