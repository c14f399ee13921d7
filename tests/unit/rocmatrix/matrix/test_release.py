"""One entry stands for every torch with every ROCm, and each release knows what pip is asked for."""

from pathlib import Path

import pytest

from rocmatrix.matrix.loading import load as matrix_file

MATRIX = matrix_file.load(Path(__file__).resolve().parents[4])
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


def test_bundled_release_is_asked_for_plainly_and_has_no_device_packages():
    release = RELEASES["rocm6.2.4-torch2.7.1"]
    assert release.requirement("gfx1100") == "torch==2.7.1+rocm6.2.4"
    assert release.index == "https://download.pytorch.org/whl/rocm6.2.4"
    assert release.device_packages("gfx1100") == ()


def test_split_release_is_asked_for_by_architecture():
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
