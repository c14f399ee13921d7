"""One file at a time: its format by its first bytes, its code, and whether its name agrees."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmatrix.host.processors import NUMBERS
from rocmatrix.verify.devicecode import elf
from rocmatrix.verify.devicecode.code import CodeObject
from rocmatrix.verify.devicecode.inspection import DeviceFile, inspect
from rocmatrix.verify.devicecode.target import Target
from tests.fixtures import device_code as synthetic
from tests.fixtures.trees import entry

GFX1100 = synthetic.code_object("gfx1100")
TWO = synthetic.plain_bundle({"gfx1100": GFX1100, "gfx906": synthetic.code_object("gfx906")})
PACKED = synthetic.compressed_bundle(TWO)
PATHS = ["/x/a.so", "/x/rocblas/library/a_gfx1100.co", "/x/aotriton.images/amd-gfx942/a.zip", "/x/a.kpack"]
X86_64 = b"\x7fELF\2\1\1" + bytes(11) + b"\x3e"
MAGICS = [b"", X86_64, b"CCOB\3\0\1\0", b"KPAK\1\0\0\0", b"AKS2", b"PK\3\4"]


def look(path, data):
    return inspect(entry(path, data))


@pytest.mark.parametrize(
    ("path", "data", "kind", "targets"),
    [
        ("/x/rocblas/library/Kernels.so-000-gfx1100.hsaco", GFX1100, "code object", ["gfx1100"]),
        ("/x/any/where.co", GFX1100, "code object", ["gfx1100"]),
        ("/x/hipblaslt/library/hipblasltTransform.hsaco", TWO, "bundle", ["gfx1100", "gfx906"]),
        ("/x/any/where.co", PACKED, "bundle", ["gfx1100", "gfx906"]),
        ("/x/lib/libone.so", synthetic.host_library(TWO, PACKED), "fat binary", ["gfx1100", "gfx906"]),
        ("/x/.kpack/torch_gfx942.kpack", synthetic.kpack({"lib": {"gfx942": 9}}), "kpack", ["gfx942"]),
        ("/x/aotriton.images/amd-gfx11xx/a.aks2", synthetic.aks2(GFX1100), "AKS2", ["gfx1100"]),
        ("/x/aotriton.images/amd-gfx11xx/a.zip", synthetic.aks2_zip(synthetic.aks2(GFX1100)), "AKS2 zip", ["gfx1100"]),
        ("/x/share/miopen/db/gfx90a.kdb", b"SQLite format 3\0" + bytes(84), "kernel database", ["gfx90a"]),
    ],
)  # fmt: skip
def test_format_is_known_by_its_bytes(path, data, kind, targets):
    found = look(path, data)
    assert (found.format, sorted(map(str, found.targets)), found.problem) == (kind, targets, None)
    assert found.holds_code
    assert (found.path, found.size) == (path, len(data))


def test_family_folder_of_aotriton_is_read_for_each_of_its_processors():
    arches = ["gfx1100", "gfx1101", "gfx1151"]
    image = synthetic.aks2(*map(synthetic.code_object, arches), arches=arches)
    found = look("/opt/venv/lib/python3.12/site-packages/torch/lib/aotriton.images/amd-gfx11xx/flash/a.aks2", image)
    assert (sorted(map(str, found.targets)), str(found.named), found.problem) == (arches, "gfx11xx", None)


def test_index_belongs_to_its_target_but_holds_no_code():
    found = look("/x/rocblas/library/TensileLibrary_lazy_gfx1100.dat", b"\x82\xa9")
    assert (found.format, str(*found.targets), found.holds_code) == ("index", "gfx1100", False)


def test_host_part_of_a_split_library_is_distinguished_from_a_host_only_one():
    zeroed = synthetic.elf_with_sections({".hip_fatbin": bytes(8192), ".rocm_kpack_ref": b"\x80"})
    assert look("/x/torch/lib/libtorch_hip.so", zeroed).format == "split host library"
    assert look("/x/torch/lib/libtorch_cpu.so", synthetic.host_library()) is None


@pytest.mark.parametrize("data", [b"plain text", b"", b"PK\x03\x04zip elsewhere", b"SQLite format 3\0"])
def test_other_files_are_passed_over(data):
    assert look("/x/usr/share/file", data) is None


@pytest.mark.parametrize(
    ("path", "data", "words"),
    [
        ("/x/lib/libone.so", synthetic.host_library(b"not a bundle"), "neither a bundle"),
        ("/x/lib/libone.so", synthetic.host_library(TWO)[:-80], "ends within"),
        ("/x/a.co", PACKED[:40], "compressed bundle"),
        ("/x/a.hsaco", synthetic.elf_header(machine=elf.EM_AMDGPU, flags=0xFE), "no AMD GPU that is known"),
        ("/x/rocblas/library/Kernels.so-000-gfx906.hsaco", GFX1100, "named for gfx906, but holds code for gfx1100"),
        ("/x/aotriton.images/amd-gfx120x/a.aks2", synthetic.aks2(GFX1100), "named for gfx120x, but holds"),
    ],
)  # fmt: skip
def test_damage_and_false_names_are_problems(path, data, words):
    assert words in look(path, data).problem


@pytest.mark.parametrize("name", ["/x/a.hsaco", "/x/rocblas/library/Kernels.so-000-gfx906.hsaco"])
def test_damaged_file_is_reported_with_its_form_and_its_name(name):
    data = synthetic.elf_header(machine=elf.EM_AMDGPU, flags=0xFE)
    named = Target(processor="gfx906") if "gfx906" in name else None
    found = look(name, data)
    assert found == DeviceFile(
        path=name, size=len(data), format="code object", objects=(), named=named, problem=found.problem
    )
    assert found.targets == (frozenset({named}) if named else frozenset())


def test_code_object_is_read_whole_by_its_flags_and_a_kernel_database_by_its_name():
    (code,) = look("/x/any/where.co", GFX1100 + bytes(7)).objects
    assert code == CodeObject(target=Target(processor="gfx1100"), size=len(GFX1100) + 7, evidence="ELF flags")
    database = b"SQLite format 3\0" + bytes(84)
    (code,) = look("/x/share/miopen/db/gfx90a.kdb", database).objects
    assert code == CodeObject(target=Target(processor="gfx90a"), size=100, evidence="file name")


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("/x/share/miopen/db/gfx90a.kdb", b"no database"),
        ("/x/rocblas/library/TensileLibrary_lazy_gfx90a.dat", b"SQLite format 3\0"),
    ],
)
def test_kernel_database_is_known_by_its_bytes_and_its_name(path, data):
    named = Target(processor="gfx90a")
    assert look(path, data) == DeviceFile(path=path, size=len(data), format="index", objects=(), named=named)


@given(st.sampled_from(PATHS), st.sampled_from(MAGICS), st.binary(max_size=300))
def test_garbage_never_crashes_and_never_yields_code(path, magic, rest):
    found = look(path, magic + rest)
    assert found is None or not found.holds_code


def test_processors_of_the_shipped_matrix_can_be_read():
    from tests.fixtures.cells import MATRIX

    known = set(NUMBERS.values())
    assert set(MATRIX.architectures) <= known
