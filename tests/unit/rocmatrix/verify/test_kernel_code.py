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


def only(*args, **kwargs):
    (finding,) = check(*args, **kwargs).findings
    return finding


def test_summary_names_the_libraries_that_hold_the_architecture():
    found = check(wheel_tree("gfx1100"))
    held = list(dict.fromkeys(row["library"] for row in found.data["libraries"]))
    assert (found.name, found.summary) == ("device code", f"gfx1100 in {', '.join(held)}")
    assert kernel_code.described_rows(found) == found.data["libraries"]
    none = check({"torch/lib/libtorch_cpu.so": host_library()})
    assert none.summary == "gfx1100 in no library"
    assert kernel_code.described_rows(check({}, architecture=None)) == []


def test_files_of_other_architectures_are_counted_with_their_bytes_and_named():
    both = wheel_tree("gfx1100", "gfx906")
    finding = only(both)
    foreign = {f"{SITE}/{path}": data for path, data in both.items() if "gfx906" in path or "amd-gfx906" in path}
    assert set(finding.places) == set(foreign)
    size = sum(map(len, foreign.values()))
    assert finding.what == f"{len(foreign)} files of {size} bytes for gfx906, not for gfx1100"
    pruned, mixed = check(both, alone=False).notes
    assert pruned == f"{len(foreign)} files of {size} bytes are for other architectures; the cell is not pruned"
    code = len(code_object("gfx906"))
    assert mixed == f"2 host libraries hold {2 * code} bytes of code for others too, unfolded: left as they are"
    assert check(wheel_tree("gfx1100")).notes == check(wheel_tree("gfx1100"), alone=False).notes == ()
    assert check(both).notes == (mixed,)
    (three,) = check(wheel_tree("gfx1100", "gfx906", "gfx908")).notes
    assert three.startswith(f"2 host libraries hold {4 * code} bytes")


def test_split_library_for_others_is_named_though_it_is_one_file_and_a_host_library_is_not():
    other = host_library(plain_bundle({"gfx906": code_object("gfx906")}))
    files = wheel_tree("gfx1100") | {"torch/lib/rocblas/library/Kernels.so": other, "torch/lib/libother.so": other}
    found = check(files)
    places = [place for finding in found.findings if finding.code == "RM213" for place in finding.places]
    assert places == [f"{SITE}/torch/lib/rocblas/library/Kernels.so"]


def test_library_without_the_architecture_names_what_it_holds():
    files = wheel_tree("gfx1100", "gfx906", hipblaslt=("gfx906",))
    (finding,) = [each for each in check(files, alone=False).findings if each.code == "RM212"]
    assert finding.what == "hipBLASLt holds code for gfx906 and none for gfx1100"
    lt = [f"{SITE}/torch/lib/hipblaslt/library/{name}_gfx906.co" for name in ("TensileLibrary", "extop")]
    assert list(finding.places) == lt


def test_empty_libraries_name_their_files():
    torch = [each for each in check(wheel_tree("gfx1100") | HOST_ONLY).findings if each.code == "RM211"]
    assert [each.places for each in torch] == [(f"{SITE}/torch/lib/libtorch_hip.so",)]
    finding = only(NO_HIPBLASLT)
    assert finding.places == (f"{SITE}/torch/lib/hipblaslt/library/TensileLiteLibrary_lazy_Mapping.dat",)


def test_missing_index_names_those_of_others():
    files = without(wheel_tree("gfx1100", "gfx906"), LAZY)
    finding = only(files, alone=False)
    assert finding.what == "rocBLAS has no index for gfx1100, so its kernels would not be found"
    assert finding.places == (f"{SITE}/{LAZY.replace('gfx1100', 'gfx906')}",)


def test_damage_names_its_file():
    path = "torch/lib/rocblas/library/Kernels.so-000-gfx1100.hsaco"
    finding = only(wheel_tree("gfx1100") | {path: code_object("gfx906")})
    assert (finding.code, finding.places) == ("RM215", (f"{SITE}/{path}",))
    assert finding.what


def test_device_code_in_a_cpu_image_is_named():
    cpu = {"torch/lib/libtorch_cpu.so": host_library()}
    clean = check(cpu, architecture=None)
    assert (clean.name, clean.summary) == ("device code", "none, as on a CPU, in 1 files")
    more = {"torch/lib/libother.so": host_library(plain_bundle({"gfx906": code_object("gfx906")}))}
    library = {"torch/lib/rocblas/library/Kernels.so-000-gfx906.hsaco": code_object("gfx906")}
    finding = only(cpu | more | library, architecture=None)
    assert finding.places == tuple(f"{SITE}/{path}" for path in (*library, *more))
