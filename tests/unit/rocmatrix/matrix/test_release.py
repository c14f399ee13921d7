"""One entry stands for every torch with every ROCm, and each release knows what pip is asked for."""

import pytest
from pydantic import ValidationError

from rocmatrix.matrix.release import DeviceCode, Series
from rocmatrix.matrix.statement import Evidence
from tests.fixtures.cells import MATRIX

RELEASES = MATRIX.release_by_name


def test_entry_stands_for_each_pair_of_its_versions():
    names = {release.name for release in MATRIX.releases}
    assert {"rocm6.2.4-torch2.7.0", "rocm6.3-torch2.7.0", "rocm6.2.4-torch2.7.1", "rocm6.3-torch2.7.1"} <= names
    assert "cpu-torch2.13.0" in names
    assert len(names) == len(MATRIX.releases)


def test_companions_follow_the_torch_version():
    assert RELEASES["rocm6.3-torch2.7.0"].companions["torchvision"] == "0.22.0"
    assert RELEASES["rocm6.3-torch2.7.1"].companions["pytorch-triton-rocm"] == "3.3.1"
    assert RELEASES["rocm7.2-torch2.12.1"].companions == {
        "torchvision": "0.27.1", "torchaudio": "2.11.0", "triton-rocm": "3.7.1",
    }  # fmt: skip


def test_bundled_release_is_requested_plainly_and_has_no_device_packages():
    release = RELEASES["rocm6.2.4-torch2.7.1"]
    assert release.requirement("gfx1100") == "torch==2.7.1+rocm6.2.4"
    assert release.index == "https://download.pytorch.org/whl/rocm6.2.4"
    assert release.device_packages("gfx1100") == ()


def test_split_release_is_requested_by_architecture():
    release = RELEASES["rocm10.0-torch2.13.0"]
    assert release.requirement("gfx1100") == "torch[device-gfx1100]==2.13.0+rocm10.0.0"
    assert release.device_packages("gfx1100") == ("amd-torch-device-gfx1100", "rocm-sdk-device-gfx1100")
    assert release.index == "https://stable.repo.amd.com/rocm/whl-next/"


def test_requirements_keep_no_placeholder():
    for release in MATRIX.releases:
        texts = [release.index, release.requirement("gfx1100"), *release.device_packages("gfx1100")]
        assert not any("{" in text or "}" in text for text in texts), release.name


def test_bundled_ends_where_rocm_comes_in_packages():
    for release in MATRIX.releases:
        split = release.rocm in ("7.14", "10.0")
        assert (release.device_code.layout == "host-and-device") == split, release.name
        assert bool(release.device_packages("gfx1100")) == split


def test_unknown_facts_of_2_15_are_left_open():
    unknown = [release for release in MATRIX.releases if release.torch == "2.15.0"]
    assert unknown
    assert all(release.architectures is None and release.pythons == [] for release in unknown)


@pytest.mark.parametrize(
    ("package", "architecture", "foreign"),
    [
        ("amd-torch-device-gfx1151", "gfx1151", False),
        ("amd_torch_device_gfx115x", "gfx1151", False),
        ("amd-torch-device-gfx110x", "gfx1100", False),
        ("amd-torch-device-gfx11", "gfx1100", False),
        ("amd-torch-device-gfx12-0", "gfx1201", False),
        ("amd-torch-device-gfx115x", "gfx1100", True),
        ("amd-torch-device-gfx12-0", "gfx1100", True),
        ("amd-torch-device-gfx1101", "gfx1100", True),
        ("amd-torch-device-all", "gfx1100", True),
        ("rocm-sdk-device-gfx942", "gfx950", True),
        ("rocm-sdk-device-gfx942", None, True),
        ("torch", "gfx1100", False),
    ],
)
def test_familys_package_belongs_to_each_architecture_of_it(package, architecture, foreign):
    release = MATRIX.cell("rocm10.0-torch2.13.0-gfx1100").release
    assert release.foreign(package, architecture) == foreign


def test_package_of_no_architecture_is_foreign_to_none():
    common = DeviceCode(layout="host-and-device", architectures=None, packages=["rocm-sdk-core"], evidence=SEEN)
    release = next(series(device_code=common).releases())
    assert not any(release.foreign(package, "gfx1100") for package in ("rocm-sdk-core", "torch"))


SEEN = Evidence(sources=["a test"], confidence="reported", date="2026-11-21")
BUNDLED = DeviceCode(layout="bundled", architectures=["gfx906", "gfx1100"], evidence=SEEN)
SPLIT = DeviceCode(
    layout="host-and-device", architectures=None, packages=["torch-device-{architecture}"], evidence=SEEN
)


def series(**changes):
    fields = {
        "torch": {"2.7.0": {"torchvision": "0.22.0"}, "2.7.1": {}},
        "rocm": ["6.2.4", "6.3"],
        "index": "https://x/{rocm}/{torch}",
        "requirement": "torch[{architecture}]=={torch}+rocm{rocm}",
        "pythons": ["3.12"],
        "device_code": BUNDLED,
        "evidence": SEEN,
    }
    return Series(**fields | changes)


def test_series_yields_each_torch_with_each_rocm_older_ones_first():
    found = list(series().releases())
    assert [each.name for each in found] == [
        f"rocm{rocm}-torch{torch}" for torch in ("2.7.0", "2.7.1") for rocm in ("6.2.4", "6.3")
    ]
    assert found[1].index == "https://x/6.3/2.7.0"
    assert [each.companions for each in found[1:3]] == [{"torchvision": "0.22.0"}, {}]


def test_series_without_rocm_is_the_cpu_build():
    (release,) = series(torch={"2.13.0": {}}, rocm=[], index="https://x/cpu{rocm}").releases()
    assert (release.name, release.rocm, release.index) == ("cpu-torch2.13.0", None, "https://x/cpu")
    assert release.requirement(None) == "torch[]==2.13.0+rocm"


@pytest.mark.parametrize("version", ["2.7", "2", "2.7.1.0", "0.1"])
def test_final_versions_name_a_release(version):
    assert next(series(torch={version: {}}).releases()).torch == version


@pytest.mark.parametrize("version", ["2.7.0rc1", "2.7.0+rocm6.3", "02.7", "2.", "", "v2.7", "2.7.dev1"])
def test_version_that_is_not_final_is_refused(version):
    with pytest.raises(ValidationError):
        series(torch={version: {}})
    with pytest.raises(ValidationError):
        series(torch={})


def test_lock_is_one_for_each_architecture_only_where_packages_differ():
    (bundled, *_), (split, *_) = series().releases(), series(device_code=SPLIT).releases()
    assert (bundled.by_architecture, split.by_architecture) == (False, True)
    assert bundled.lock_name("gfx1100") == bundled.name
    assert split.lock_name("gfx1100") == f"{split.name}-gfx1100"
    assert split.lock_name(None) == split.name
    assert (bundled.architectures, split.architectures) == (["gfx906", "gfx1100"], None)


@pytest.mark.parametrize(
    ("lock", "bundled", "split"),
    [
        ("rocm6.2.4-torch2.7.0", True, True),
        ("rocm6.2.4-torch2.7.0-gfx1100", False, True),
        ("rocm6.2.4-torch2.7.0-gfx", False, False),
        ("rocm6.2.4-torch2.7.0-cpu", False, False),
        ("rocm6.2.4-torch2.7.01-gfx1100", False, False),
        ("rocm6.3-torch2.7.0", False, False),
    ],
)
def test_lock_of_a_release_is_recognised_by_its_name(lock, bundled, split):
    owners = [next(series(device_code=code).releases()) for code in (BUNDLED, SPLIT)]
    assert [release.owns_lock(lock) for release in owners] == [bundled, split]
