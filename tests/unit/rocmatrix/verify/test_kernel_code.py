"""Device code against the architecture: each way of being wrong fails with its own code. SYNTHETIC code throughout."""

import pytest

from rocmatrix.verify import image_scan, kernel_code
from tests.fixtures import cells
from tests.fixtures.device_code import aks2, code_object, host_library, kpack, plain_bundle, wheel_tree
from tests.fixtures.trees import entries

SITE = "/opt/venv/lib/python3.12/site-packages"
REQUIRED = ("torch", "rocBLAS", "hipBLASLt", "AOTriton")
HOST_ONLY = {"torch/lib/libtorch_hip.so": host_library(), "torch/lib/libtorch_cpu.so": host_library()}
NO_HIPBLASLT = wheel_tree("gfx1100", hipblaslt=())
LAZY = "torch/lib/rocblas/library/TensileLibrary_lazy_gfx1100.dat"


def check(files, *, architecture="gfx1100", required=REQUIRED, alone=True):
    found = image_scan.read(entries(files, below=SITE), cells.MATRIX.kernels)
    return kernel_code.check(
        found, architecture=architecture, known=cells.MATRIX.kernels, required=required, alone=alone
    )


def codes(*args, **kwargs):
    return {finding.code for finding in check(*args, **kwargs).findings}


def without(files, part):
    return {path: data for path, data in files.items() if part not in path}


def test_wheel_of_one_architecture_passes():
    found = check(wheel_tree("gfx1100"))
    assert (found.status, found.findings) == ("passed", ())
    assert {row["library"] for row in found.data["libraries"]} >= {*REQUIRED, "MIOpen", "librocblas.so"}
    assert {row["target"] for row in found.data["libraries"]} == {"gfx1100"}
    assert {
        "path": f"{SITE}/torch/lib/rocblas/library/TensileLibrary_Type_HH_gfx1100.co",
        "format": "bundle",
        "size": len(wheel_tree("gfx1100")["torch/lib/rocblas/library/TensileLibrary_Type_HH_gfx1100.co"]),
        "targets": ["gfx1100"],
    } in found.data["files"]


def test_pruned_wheel_passes_and_lists_what_its_host_libraries_still_hold():
    pruned = wheel_tree("gfx1100") | {
        path: data for path, data in wheel_tree("gfx1100", "gfx906").items() if path.endswith(".so")
    }
    found = check(pruned)
    assert found.status == "passed"
    assert any("2 host libraries hold" in note for note in found.notes)


def test_host_only_torch_fails():
    assert codes(wheel_tree("gfx1100") | HOST_ONLY) == {"RM211"}
    assert "RM211" in codes({"torch/lib/libtorch_cpu.so": host_library()})


def test_wrong_family_fails():
    assert codes(wheel_tree("gfx906"), alone=False) == {"RM212"}
    assert codes(wheel_tree("gfx906"), alone=True) == {"RM212", "RM213"}


def test_foreign_architectures_left_behind_fail_only_where_the_cell_is_for_one():
    both = wheel_tree("gfx1100", "gfx906")
    found = check(both)
    assert {finding.code for finding in found.findings} == {"RM213"}
    assert all("gfx906" in place for place in found.findings[0].places)
    assert "gfx906" in found.findings[0].what
    left = check(both, alone=False)
    assert left.status == "passed"
    assert any("not pruned" in note for note in left.notes)


@pytest.mark.parametrize("path", ["torch/.kpack/torch_gfx906.kpack", "_rocm_sdk_libraries/.kpack/fft_lib_gfx906.kpack"])
def test_archive_of_another_architecture_fails(path):
    files = {
        "torch/.kpack/torch_gfx1100.kpack": kpack({"torch": {"gfx1100": 9}}),
        path: kpack({"lib": {"gfx906": 9}}),
    }
    assert codes(files, required=["torch"]) == {"RM213"}
    assert codes(without(files, "gfx906"), required=["torch"]) == set()


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (NO_HIPBLASLT, "hipBLASLt holds no kernels in its 1 files"),
        (without(wheel_tree("gfx1100"), "hipblaslt"), "hipBLASLt holds no kernels and no file"),
        (without(wheel_tree("gfx1100"), "aotriton"), "AOTriton holds no kernels"),
    ],
)
def test_empty_library_fails(files, words):
    (finding,) = check(files).findings
    assert (finding.code, finding.what.startswith(words)) == ("RM214", True)


def test_kernels_without_their_index_fail():
    files = without(wheel_tree("gfx1100", "gfx906"), LAZY)
    assert codes(files, alone=False) == {"RM214"}
    assert codes(wheel_tree("gfx1100", "gfx906") | {LAZY: b""}, alone=False) == {"RM214"}


def test_damage_and_false_names_fail():
    false = {"torch/lib/rocblas/library/Kernels.so-000-gfx1100.hsaco": code_object("gfx906")}
    assert codes(wheel_tree("gfx1100") | false) == {"RM215"}
    torn = {"torch/lib/librccl.so": host_library(b"torn")}
    assert codes(wheel_tree("gfx1100") | torn) == {"RM215"}


def test_host_library_for_others_alone_is_left_and_a_familys_folder_is_no_foreign_one():
    arches = ["gfx1100", "gfx1151"]
    family = aks2(*map(code_object, arches), arches=arches)
    files = wheel_tree("gfx1100") | {
        "torch/lib/libhipsparselt.so": host_library(plain_bundle({"gfx942": code_object("gfx942")})),
        "torch/lib/aotriton.images/amd-gfx11xx/flash/a.aks2": family,
        "torch/lib/aotriton.images/amd-gfx11xx/flash/b.aks2": aks2(code_object("gfx1151")),
    }
    assert check(files).status == "passed"


def test_card_of_a_family_finds_its_code_in_the_familys_files():
    arches = ["gfx1100", "gfx1151"]
    files = {"torch/lib/aotriton.images/amd-gfx11xx/f/a.aks2": aks2(*map(code_object, arches), arches=arches)}
    assert codes(files, architecture="gfx1151", required=["AOTriton"]) == set()
    assert codes(files, architecture="gfx1102", required=["AOTriton"]) == {"RM212"}


def test_cpu_image_holds_no_device_code_and_has_a_torch():
    cpu = {"torch/lib/libtorch_cpu.so": host_library()}
    assert codes(cpu, architecture=None) == set()
    assert codes(cpu | wheel_tree("gfx1100"), architecture=None) == {"RM213"}
    assert codes({}, architecture=None) == {"RM221"}


def test_empty_image_fails():
    assert codes({}) == {"RM211", "RM214"}
