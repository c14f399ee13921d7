"""Every ROCm cell's own Dockerfile builds, on STAND-INS for what cannot be had without a registry and AMD's wheels.

The Dockerfile is the committed one, byte for byte. The base is Debian bookworm in place of Ubuntu, and each
wheel is an empty one of the locked name and version. This proves the recipe, not what ROCm does.
"""

from pathlib import Path

import pytest

from rocmatrix.containers import engine
from rocmatrix.images import build, render
from tests.fixtures import cells
from tests.left_out import long

pytestmark = pytest.mark.container

ROOT = Path(__file__).resolve().parents[2]
# An unlocked cell names no wheels to stand in for; what its Dockerfile says is tested without an engine.
ROCM_CELLS = [cell for cell in cells.MATRIX.cells if cell.release.rocm and cell.unlocked_because is None]
IMPORTS = """
import json, torch
print(json.dumps({"torch": torch.__version__, "stand-in": torch.STAND_IN}))
"""


def test_rocm_cells_exist():
    assert ROCM_CELLS


@pytest.fixture
def built(request, client, small_base, stand_in, lay_out):
    """Build the STAND-IN of a cell; only the lock differs from what is committed."""
    own = request.param
    cell, wheels = stand_in(own)
    root = lay_out(cell, own)
    (root / "images" / cell.name / "requirements.lock").write_text(render.requirements_lock(cell))
    dockerfile = (root / "images" / cell.name / "Dockerfile").read_bytes()
    assert dockerfile == (ROOT / "images" / own.name / "Dockerfile").read_bytes()
    _remove(client, build.tag(cell))  # a run that was broken off left its image, and nothing would be built
    yield own, build.build(cell, root=root, base=small_base, wheelhouse=wheels)
    _remove(client, build.tag(cell))


def _remove(client, tag):
    if engine.image(client, tag):
        client.images.remove(tag, force=True)


def cases():
    """Return every cell; as long those of a release after its first: their Dockerfiles differ in names and values."""
    firsts = {cell.release.name: cell for cell in reversed(ROCM_CELLS)}.values()
    for cell in ROCM_CELLS:
        yield pytest.param(cell, marks=[] if cell in firsts else long, id=f"STAND-IN-{cell.name}")


@pytest.mark.parametrize("built", list(cases()), indirect=True)
def test_committed_dockerfile_builds_on_stand_ins(built, client, run):
    cell, image = built
    assert image.rebuilt
    assert image.image.labels["org.rocmatrix.cell"] == cell.name
    assert image.image.labels["org.rocmatrix.architecture"] == cell.architecture
    config = client.images.get(image.tag).attrs["Config"]
    assert config["User"] == "10001:10001"
    assert {f"{v.name}={v.value}" for v in cell.environment} <= set(config["Env"])
    ended = run(image.tag, "-c", IMPORTS, entrypoint="python")
    torch = next(wheel.version for _, wheel in cell.wheels if wheel.name == "torch")
    assert ended.lines == [{"torch": torch, "stand-in": True}], ended.stderr
    assert run(image.tag, "errors").status == 0  # the trainer's own command needs no torch


@pytest.fixture
def bare(client, trixie, stand_in, lay_out):
    """Build one STAND-IN on a base that lacks Python, so that the Dockerfile has to install it."""
    own = ROCM_CELLS[0]
    cell, wheels = stand_in(own)
    cell = cell.model_copy(update={"name": f"{cell.name}-bare"})
    root = lay_out(cell, own)
    (root / "images" / cell.name / "requirements.lock").write_text(render.requirements_lock(cell))
    yield build.build(cell, root=root, base=trixie, wheelhouse=wheels)
    client.images.remove(build.tag(cell), force=True)


def test_packages_that_the_base_lacks_are_installed_without_traces(bare, run):
    """On a STAND-IN base. Debian's package mirror has to be reachable from a container."""
    ended = run(bare.tag, "-c", "import torch, sys; print(sys.version_info[0])", entrypoint="python")
    assert ended.stdout == "3\n", ended.stderr
    kept = run(bare.tag, "/var/lib/apt/lists", "/var/cache/apt", "/var/log", "-type", "f", entrypoint="find")
    assert kept.stdout == ""
