"""What a log says of its own card and versions is read where it says one thing only."""

import pytest

from rocmatrix.diagnosis import diagnosis
from rocmatrix.diagnosis.machine.log_environment import Values
from rocmatrix.diagnosis.ranking import HostContext


def read(text, here=None):
    values = Values()
    assert b"".join(values.watched([text.encode()])) == text.encode()
    return values.completed(here or HostContext())


@pytest.mark.parametrize(
    "line",
    [
        "rocBLAS error: Cannot read TensileLibrary.dat: Illegal seek for GPU arch : gfx1103",
        'msg="amdgpu is not supported" gpu_type=gfx1103 gpu=0',
        "AMD arch: gfx1103",
        "error: unsupported target: 'gfx1103'",
        "1 error generated when compiling for gfx1103.",
        "  Name:                    amdgcn-amd-amdhsa--gfx1103",
    ],
)
def test_program_that_names_its_own_card_is_read(line):
    assert read(line).architecture == "gfx1103"


def test_list_of_supported_cards_is_no_card():
    assert read("amdgpu is not supported (supported types:[gfx1030 gfx1100])").architecture is None
    assert read("TensileLibrary_lazy_gfx1100.dat").architecture is None


def test_two_cards_give_no_architecture():
    assert read("AMD arch: gfx1100\nAMD arch: gfx1201\n").architecture is None


def test_versions_of_torch_and_rocm_are_read():
    here = read("pytorch version: 2.9.1+rocm7.2.0.git7e1940d4\n")
    assert (here.torch, here.rocm) == ("2.9.1", "7.2.0")


def test_known_value_is_kept():
    assert read("AMD arch: gfx1100", HostContext(architecture="gfx90a")).architecture == "gfx90a"


ASSUMED = HostContext(architecture="gfx1100", others=("gfx1100",), assumed=True)


def test_card_that_the_log_names_comes_before_the_one_assumed_for_this_host():
    here = read("AMD arch: gfx90a", ASSUMED)
    assert (here.architecture, here.others) == ("gfx90a", ())
    assert read("nothing of cards", ASSUMED).architecture == "gfx1100"
    assert read("AMD arch: gfx90a\nAMD arch: gfx1100\n", ASSUMED).architecture == "gfx1100"


def test_card_of_this_host_that_the_log_names_is_taken():
    both = HostContext(others=("gfx1100", "gfx1036"), assumed=True)
    assert read("AMD arch: gfx1036", both).architecture == "gfx1036"
    assert read("AMD arch: gfx90a", both) == HostContext(architecture="gfx90a", assumed=True)


def test_checks_of_this_host_count_nothing_for_a_log_of_another_machine():
    values = Values()
    list(values.watched([b"AMD arch: gfx90a\n"]))
    assert diagnosis.checks_of(values, ASSUMED, ["D101"]) == frozenset()
    assert diagnosis.checks_of(values, HostContext(architecture="gfx1100"), ["D101"]) == {"D101"}
    assert diagnosis.checks_of(Values(), ASSUMED, ["D101"]) == {"D101"}


def test_build_for_another_card_is_a_log_of_this_host():
    values = Values()
    list(values.watched([b"1 warning generated when compiling for gfx90a.\nhipcc --offload-arch=gfx90a a.hip\n"]))
    assert diagnosis.checks_of(values, ASSUMED, ["D101"]) == {"D101"}
    assert values.completed(ASSUMED).architecture == "gfx1100"
    assert values.completed(HostContext()).architecture == "gfx90a"


def test_card_that_runs_comes_before_the_one_compiled_for():
    assert read("compiling for gfx90a\nAMD arch: gfx1100\n").architecture == "gfx1100"


@pytest.mark.parametrize(
    "line",
    [
        "/opt/rocm-6.2.1/lib/librocblas.so.4",
        "Requirement already satisfied: rocm-sdk-core==6.2.1 in ./lib",
        "ROCm version: 6.2.1",
        "rocm-core 6.2.1.60201-112",
    ],
)
def test_release_of_rocm_is_read_without_torch(line):
    assert read(line + "\n").rocm == "6.2.1"


def test_two_releases_of_rocm_give_none():
    assert read("/opt/rocm-6.2.1/lib\n/opt/rocm-7.0.0/lib\n").rocm is None
    assert read("torch: 2.9.1+rocm7.2.0\n/opt/rocm-7.0.0/lib\n").rocm == "7.2.0"


RELEASES = ("/opt/rocm-", "rocm-sdk-core==", "rocm-core - ", "HIP SDK version: ", "ROCm Version =")


@pytest.mark.parametrize("before", RELEASES)
def test_release_is_read_behind_each_of_its_texts(before):
    assert read(f"rocm: {before}6.2.1 and more of it, {before}6.2.1\n").rocm == "6.2.1"
    assert read(f"rocm: {before}6.2.123 and {before}\n").rocm is None
