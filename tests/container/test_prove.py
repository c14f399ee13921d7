"""Images looked into through a real engine: a pruned cell's STAND-IN, and Debian's GENUINE rocBLAS.

The STAND-IN holds SYNTHETIC kernels in empty wheels on Debian; its recipe is the cell's own, byte for byte. Debian's
libraries are what its packages hold: code that AMD's compiler made for every architecture. Nothing is run on a card.
"""

import subprocess

import pytest

from rocmatrix.images import build, render
from rocmatrix.matrix.kernel_library import Baseline
from rocmatrix.verify import kernel_code, proof
from tests.fixtures import cells
from tests.fixtures.device_code import code_object
from tests.fixtures.stand_ins import stand_in_cell
from tests.fixtures.trees import tar
from tests.left_out import long

pytestmark = pytest.mark.container

GFX1100 = cells.MATRIX.cell("rocm7.2-torch2.12.1-gfx1100")
TODAY = "2026-11-21"
SPOILED = "rocmatrix-test/spoiled-cpu"
GENUINE = "rocmatrix-test/debian-rocblas"
# Part of Debian's package, so that the test stays short: the main kernels of two architectures, the others' of all.
WHOLE = """
FROM base
RUN --mount=type=cache,target=/var/cache/apt,sharing=locked --mount=type=cache,target=/var/lib/apt/lists \\
    cd /tmp && apt-get update && apt-get download librocblas0 \\
    && dpkg-deb --fsys-tarfile librocblas0_*.deb | tar --extract --wildcards --directory / \\
        '*/library/Kernels.so-*' '*/library/TensileLibrary.dat' '*/library/TensileLibrary_gfx803.co' \\
        '*/library/TensileLibrary_gfx1102.co' \\
    && rm librocblas0_*.deb
"""
# This base has a Python for the prune stage; Debian's library comes and is pruned in one layer, as a wheel is.
PRUNED = """
FROM scratch AS whole
FROM scratch AS pruner
FROM base
RUN --mount=type=bind,from=whole,target=/run/whole --mount=type=bind,from=pruner,target=/run/pruner/rocmatrix \\
    mkdir --parents /opt/lib && cp --recursive /run/whole/usr/lib/x86_64-linux-gnu/rocblas /opt/lib/ \\
    && PYTHONPATH=/run/pruner PYTHONDONTWRITEBYTECODE=1 \\
        python3 -m rocmatrix.verify.pruning.prune --architecture gfx1102 /opt/lib
"""


@pytest.fixture(scope="module")
def pruned(client, small_base, tmp_path_factory, lay_out):
    """Build the STAND-IN of a pruned cell with its own Dockerfile; return it with its checkout and wheels."""
    cell = stand_in_cell(GFX1100, wheels := tmp_path_factory.mktemp("wheels"), name="stand-in-pruned")
    root = lay_out(cell, GFX1100)
    (root / "images" / cell.name / "requirements.lock").write_text(render.requirements_lock(cell))
    built = build.build(cell, root=root, base=small_base, wheelhouse=wheels)
    yield cell, built, (root, wheels)
    client.images.remove(built.tag, force=True)


def prove(cell, reference, places, *, sizes=None):
    matrix = cells.MATRIX.model_copy(update={"baselines": sizes or []})
    root, wheels = places
    return proof.of_image(matrix, cell, reference, today=TODAY, root=root, wheels=wheels)


def codes(proven, check):
    return {f.code for c in proven.checks if c.name == check for f in c.findings}


@pytest.fixture(scope="module")
def first_proof(pruned):
    cell, built, places = pruned
    return prove(cell, built.tag, places)


def test_prune_stage_leaves_one_architecture_in_the_layer(first_proof):
    """On a STAND-IN, whose labels name the cell that it stands for."""
    proven = first_proof
    assert codes(proven, "device code") == set()
    assert codes(proven, "packages") == set()
    assert codes(proven, "files") == set(), [f.summary for f in proven.findings]
    assert codes(proven, "hygiene") == set(), [f.summary for f in proven.findings]
    size = next(check for check in proven.checks if check.name == "size")
    assert (size.status, size.findings) == ("not checked", ())  # nothing was recorded for it: it is the first
    assert "first size on record" in size.summary
    rows = next(check for check in proven.checks if check.name == "device code").data["libraries"]
    targets = {name: {row["target"] for row in rows if row["library"] == name} for name in ("rocBLAS", "AOTriton")}
    # AOTriton keeps a family in one file, which goes or stays whole.
    assert targets == {"rocBLAS": {"gfx1100"}, "AOTriton": {"gfx1100", "gfx1101", "gfx1102"}}
    assert {row["target"] for row in rows if row["library"] in ("hipBLASLt", "MIOpen")} == {"gfx1100"}


def test_image_of_another_cell_fails_and_one_larger_than_on_record(pruned, first_proof):
    """In one proof, as each exports the image; that the size on record lets it pass is seen in test_tampered."""
    _, built, places = pruned
    other = cells.MATRIX.cell("rocm7.2-torch2.12.1-gfx1201")
    size = next(c for c in first_proof.checks if c.name == "size").data["bytes"]
    row = {"bytes": size // 2, "date": TODAY, "of": "a STAND-IN"}
    proven = prove(other, built.tag, places, sizes=[Baseline.model_validate({"cell": other.name, "sizes": [row]})])
    assert not proven.proven
    assert codes(proven, "size") == {"RM218"}
    assert codes(proven, "labels") == {"RM219"}
    assert codes(proven, "device code") >= {"RM212", "RM213"}


@pytest.fixture(scope="module")
def genuine(client, trixie, debian, tmp_path_factory):
    """Return Debian trixie's rocBLAS 5.5 in an image as packaged, and in one that prunes it in the same layer."""
    tags = {name: f"{GENUINE}:{name}" for name in ("whole", "pruned")}
    contexts = {"base": f"docker-image://{trixie}"}
    build_uncompressed(tags["whole"], WHOLE, contexts, tmp_path_factory.mktemp("whole"))
    contexts = {"base": f"docker-image://{debian}", "whole": f"docker-image://{tags['whole']}"}
    build_uncompressed(tags["pruned"], PRUNED, contexts | {"pruner": build.PRUNER}, tmp_path_factory.mktemp("pruned"))
    yield tags
    for tag in tags.values():
        client.images.remove(tag, force=True)


def build_uncompressed(tag, dockerfile, contexts, folder):
    """Build an image whose layers need no packing and unpacking, which takes longer than all else."""
    (folder / "Dockerfile").write_text(dockerfile)
    argv = ["docker", "buildx", "build", "--provenance=false", "--progress=plain", str(folder)]
    argv += [f"--output=type=image,name={tag},compression=uncompressed,unpack=true"]
    argv += [f"--build-context={name}={place}" for name, place in contexts.items()]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


def device_code(client, image, *, architecture="gfx1102"):
    found = proof.exported(client, image, cells.MATRIX)
    check = kernel_code.check(
        found, architecture=architecture, known=cells.MATRIX.kernels, required=["rocBLAS"], alone=True
    )
    return found, check, {row["target"] for row in check.data["libraries"] if row["library"] == "rocBLAS"}


@long
def test_genuine_rocblas_is_read_whole_and_pruned_in_an_image(client, genuine):
    whole, check, targets = device_code(client, genuine["whole"])
    assert {finding.code for finding in check.findings} == {"RM213"}
    assert targets >= {"gfx803", "gfx900", "gfx906", "gfx908", "gfx90a:xnack+", "gfx1030", "gfx1100", "gfx1102"}
    pruned, check, targets = device_code(client, genuine["pruned"])
    assert (check.findings, targets) == ((), {"gfx1102"})
    assert any(path.endswith("/TensileLibrary.dat") for path in pruned.library("rocBLAS").paths)
    assert stored(pruned) < 0.6 * stored(whole)
    _, check, _ = device_code(client, genuine["pruned"], architecture="gfx906")
    assert {finding.code for finding in check.findings} == {"RM212", "RM213"}


def stored(found):
    return sum(file.size for file in found.library("rocBLAS").files)


def test_real_cpu_image_is_proven(cpu_image, cpu_root, cpu_wheels):
    """Its own Dockerfile, lock and wheels; Debian's base made by debootstrap, which the recorded size is of."""
    proven = proof.of_image(cells.MATRIX, cells.CPU, cpu_image.tag, today=TODAY, root=cpu_root, wheels=cpu_wheels)
    assert proven.proven, [finding.summary for finding in proven.findings]
    assert [check.status for check in proven.checks] == ["passed"] * 10


@pytest.fixture
def spoiled(client, cpu_image):
    """Add to the CPU image, as a later layer would, a package that no lock names, a cache and device code."""
    about = "opt/venv/lib/python3.11/site-packages/leftpad-1.0.dist-info/METADATA"
    library = "opt/venv/lib/python3.11/site-packages/torch/lib/rocblas/library/Kernels.so-000-gfx906.hsaco"
    files = {about: b"Name: leftpad\nVersion: 1.0\n", library: code_object("gfx906"), "root/.cache/left": b"x"}
    container = client.containers.create(cpu_image.tag)
    try:
        container.put_archive("/", tar(files))
        container.commit(SPOILED)
    finally:
        container.remove(force=True)
    yield SPOILED
    client.images.remove(SPOILED, force=True)


@long
def test_added_file_is_found(spoiled, cpu_root, cpu_wheels):
    proven = proof.of_image(cells.MATRIX, cells.CPU, spoiled, today=TODAY, root=cpu_root, wheels=cpu_wheels)
    expected = {"RM213", "RM216", "RM217", "RM660", "RM662", "RM663"}
    assert {finding.code for finding in proven.findings} == expected
    places = {place for finding in proven.findings for place in finding.places}
    assert {"leftpad 1.0", "/root/.cache"} <= places
