"""One image names one ROCm, sources of its own distribution, and no kernel driver."""

import pytest

from rocmatrix.doctor.environment.lint_input import Command, Pair, Subject
from rocmatrix.doctor.environment.packages.releases import found, of_run, rocm_of_image

APT = "echo deb https://repo.radeon.com/rocm/apt/{} {} main"
WHEELS = "pip install torch -f https://repo.radeon.com/rocm/manylinux/rocm-rel-{}/"
INDEX = "pip install torch --index-url https://download.pytorch.org/whl/rocm{}"


def of(image, *texts):
    rows = tuple(Command(text=text, where=f"a:{number}") for number, text in enumerate(texts, 2))
    return [(one.rule, one.severity) for one in found(Subject(name="a", image=image, where="a:1", commands=rows))]


@pytest.mark.parametrize(
    ("image", "rocm"),
    [
        ("rocm/dev-ubuntu-22.04:6.2-complete", "6.2"),
        ("rocm/rocm-terminal:6.4", "6.4"),
        ("rocm/pytorch:rocm7.2.1_ubuntu24.04_py3.12_pytorch_release_2.9.1", "7.2.1"),
        ("rocm/pytorch:latest", None),
        ("python:3.12", None),
        (None, None),
    ],
)
def test_rocm_of_an_image_is_in_its_name(image, rocm):
    assert rocm_of_image(image) == rocm


def test_torch_of_an_image_counts_where_no_other_is_installed():
    image = "rocm/pytorch:rocm6.2_ubuntu22.04_py3.10_pytorch_release_2.3.0"
    known = of_run(Subject(name="a", image=image))
    assert (known.torch, known.rocm) == ("2.3.0", "6.2")
    other = Subject(name="a", image=image, pairs=(Pair(torch="", rocm="6.4", where="a:2"),), rocm="6.4")
    assert (of_run(other).torch, of_run(other).rocm) == (None, "6.4")


def test_releases_that_differ_are_reported_once_a_kind():
    differ = ("releases-differ", "warning")
    assert of("rocm/dev-ubuntu-22.04:6.2", WHEELS.format("6.4.1"), WHEELS.format("6.4.1")) == [differ]
    assert of("ubuntu:24.04", APT.format("6.4.1", "noble"), WHEELS.format("6.3")) == [differ]
    assert of(None, WHEELS.format("6.4.1") + " -f https://repo.radeon.com/rocm/manylinux/rocm-rel-7.0/") == [differ]
    assert of("rocm/dev-ubuntu-22.04:6.2", INDEX.format("6.4")) == [("releases-differ", "note")]
    assert of("rocm/dev-ubuntu-22.04:6.2.4", WHEELS.format("6.2"), INDEX.format("6.2")) == []
    assert of("python:3.12", INDEX.format("6.4"), INDEX.format("6.2")) == []


@pytest.mark.parametrize(
    ("image", "code", "wrong"),
    [
        ("ubuntu:24.04", "jammy", True),
        ("ubuntu:24.04", "noble", False),
        ("ubuntu:jammy", "noble", True),
        ("rocm/dev-ubuntu-22.04:6.4.1", "noble", True),
        ("debian:12", "jammy", False),
        ("debian:trixie", "jammy", True),
        ("python:3.12-slim-bookworm", "noble", True),
        ("python:3.12", "noble", False),
        ("$BASE", "noble", False),
    ],
)
def test_source_of_another_distribution_is_reported(image, code, wrong):
    assert of(image, APT.format("6.4.1", code)) == ([("source-of-another-release", "warning")] if wrong else [])


def test_packages_for_enterprise_linux_on_fedora_are_a_note():
    row = "baseurl=https://repo.radeon.com/rocm/rhel10/7.2/main"
    assert of("registry.fedoraproject.org/fedora:42", row) == [("source-of-another-release", "note")]
    assert of("rockylinux:10", row) == []


@pytest.mark.parametrize(
    ("text", "builds"),
    [
        ("amdgpu-install --usecase=rocm -y", True),
        ("apt update && sudo amdgpu-install -y --usecase=hip", True),
        ("amdgpu-install --usecase=rocm -y --no-dkms", False),
        ("apt install -y amdgpu-install", False),
        ("apt install ./amdgpu-install_6.4.deb", False),
        ("amdgpu-install --list-usecase", False),
    ],
)
def test_kernel_driver_in_an_image_is_reported(text, builds):
    assert of("ubuntu:24.04", text) == ([("driver-in-image", "warning")] if builds else [])
    assert of(None, text) == []  # a script of the host may need it


def test_release_without_fixes_is_a_note():
    assert of("rocm/dev-ubuntu-20.04:5.7") == [("rocm-release-old", "note")]
    assert of("ubuntu:20.04", APT.format("5.7.1", "focal"), APT.format("5.7.1", "focal")) == [
        ("rocm-release-old", "note")
    ]
    assert of("rocm/dev-ubuntu-22.04:6.0") == []


@pytest.mark.parametrize(
    ("source", "absent"),
    [("6.1.5 noble", True), ("6.2.4 noble", False), ("6.1.5 jammy", False), ("7.0 noble", False)],
)
def test_packages_for_noble_begin_with_rocm_6_2(source, absent):
    text = f"echo 'deb https://repo.radeon.com/rocm/apt/{source} main' > a"
    one = Subject(name="setup.sh", commands=(Command(text=text, where="a:1"),))
    assert [row.severity for row in found(one) if "noble with" in row.what] == (["error"] if absent else [])


def test_folder_of_another_release_than_the_pinned_version_is_let_be():
    folders = " ".join(f"-f https://repo.radeon.com/rocm/manylinux/rocm-rel-{rocm}/" for rocm in ("6.4.1", "7.0"))
    assert of(None, f"pip install {folders} torch==2.8.0+rocm7.0.0.git64359f59") == []
    assert of(None, f"pip install {folders} torch==2.8.0") == [("releases-differ", "warning")]
