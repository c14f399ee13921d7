"""Where torch and what is built with it come from."""

import pytest

from rocmatrix.doctor.environment.lint_input import Assignment, Command, Subject
from rocmatrix.doctor.environment.packages.indexes import found, is_rocm, refuses_cuda
from rocmatrix.doctor.environment.packages.installs import installs
from rocmatrix.matrix.loading import load
from tests.unit.rocmatrix.diagnosis.known import ROOT

MATRIX = load.load(ROOT)
INDEX = "--index-url https://download.pytorch.org/whl/rocm6.4"
BASE = "rocm/pytorch:rocm6.4.1_ubuntu22.04_py3.10_pytorch_release_2.6.0"


def of(*texts, **subject):
    rows = tuple(Command(text=f"pip install {text}", where=f"a:{number}") for number, text in enumerate(texts, 2))
    one = Subject(**{"name": "a", "commands": rows, **subject})
    return [row.rule for row in found(one, tuple(listed for row in rows for listed in installs(row)), MATRIX)]


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("torch==2.6.0", ["torch-replaced"]),
        ("-U torch", ["torch-replaced"]),
        ("torch", []),
        (f"torch==2.9.1 {INDEX}", []),
        ("torch==2.9.1 --find-links wheels", []),
    ],
)
def test_torch_of_an_image_is_replaced_by_an_exact_one_of_the_default_index(text, rules):
    assert of(text, image=BASE) == rules


def test_torch_of_a_command_before_is_replaced_too():
    assert of(f"torch {INDEX}", "torch==2.9.1", image="rocm/dev-ubuntu-22.04:6.4") == ["torch-replaced"]
    assert of("torch==2.9.1", f"torch {INDEX}", image="rocm/dev-ubuntu-22.04:6.4") == ["torch-from-default-index"]


def test_torchvision_of_the_default_index_is_of_cuda():
    assert of(f"torch {INDEX}", "torchvision", image="python:3.12") == ["companion-from-default-index"]
    assert of(f"torch torchvision {INDEX}", image="python:3.12") == []
    assert of("torch torchvision", f"torch {INDEX}", image="python:3.12") == ["torch-from-default-index"]
    assert of("torchaudio", image="the extra rocm", for_amd=True) == ["companion-from-default-index"]


def test_torch_of_a_file_for_amd_needs_an_index():
    assert of("torch", name="requirements-rocm.txt") == ["torch-from-default-index"]
    assert of("torch", name="requirements.txt") == []
    index = (Assignment(name="UV_INDEX_URL", value="x", where="a:1"),)
    assert of("torch", name="install-rocm.sh", variables=index) == []
    assert of("torch --index-url $TORCH_INDEX", name="install-rocm.sh") == []


def test_image_for_compiling_has_no_torch():
    assert of("torch", image="rocm/dev-ubuntu-22.04:6.4") == ["torch-from-default-index"]
    assert of("torch", image="quay.io/me/rocm-base:6.4") == []


def test_image_of_another_maker_is_let_be():
    assert of("torch", image="intel/oneapi-basekit:2025.0") == of("torch", image="arm64v8/python:3.10") == []
    assert of("torch", image="python:3.10") == ["torch-from-default-index"]


def test_old_index_is_a_note_with_its_newest_torch():
    assert of("torch --index-url https://download.pytorch.org/whl/rocm6.0", image="python:3.12") == ["rocm-release-old"]
    assert of(f"torch {INDEX}", image="python:3.12") == []


def test_packages_of_cuda_are_out_of_place_in_what_means_amd_alone():
    assert refuses_cuda(Subject(name="Dockerfile.rocm stage a"))
    assert not refuses_cuda(Subject(name="Dockerfile.rocm stage a", image="nvidia/cuda:12"))
    assert not refuses_cuda(Subject(name="Dockerfile stage a", image="python:3.12"))
    assert is_rocm("rocm/pytorch:a") and is_rocm("$BASE") and not is_rocm("python:3.12")


def test_version_of_torchvision_belongs_to_one_of_torch():
    index = "--index-url https://download.pytorch.org/whl/rocm6.4"
    assert of(f"torch==2.9.1 torchvision==0.23.0 {index}", image="python:3.12") == ["torchvision-of-another-torch"]
    for pair in (
        "torch==2.9.1 torchvision==0.24.0",
        "torch==1.13.1 torchvision==0.14.1",
        "torch==2.9.1 torchvision==0",
    ):
        assert of(f"{pair} {index}", image="python:3.12") == []


def test_local_version_needs_an_index_in_a_file_that_is_no_image():
    assert of("torch==2.9.1+rocm6.4") == ["local-version-without-index"]
    assert of("torch==2.9.1+rocm6.4", image="python:3.12") == []


@pytest.mark.parametrize("image", ["python:3.12", BASE])
def test_index_of_rocm_may_be_the_default_one(image):
    value = "https://download.pytorch.org/whl/rocm6.4"
    index = (Assignment(name="PIP_INDEX_URL", value=value, where="a:1"),)
    assert of("torch==2.8.0", image=image, variables=index) == []
    mirror = (Assignment(name="PIP_INDEX_URL", value="https://mirror.example/simple", where="a:1"),)
    assert of("torch==2.8.0", image=image, variables=mirror) != []
    configured = (
        Command(text=f"pip config set global.index-url {value}", where="a:1"),
        Command(text="pip install torch", where="a:2"),
    )
    assert of("torch", image="debian:13", commands=configured) == []


def test_torch_backend_option_of_uv_is_an_index():
    (one,) = installs(Command(text="uv pip install torch --torch-backend=rocm6.4", where="a:1"))
    assert (one.rocm, one.indexed) == ("6.4", True)
    (one,) = installs(Command(text="uv pip install --torch-backend auto torch", where="a:1"))
    assert one.indexed
    (one,) = installs(Command(text="uv pip install --torch-backend cpu torch", where="a:1"))
    assert not one.indexed


def test_image_of_another_maker_is_taken_as_given():
    assert of("torch", image="nvidia/cuda:12.4.1-runtime-ubuntu22.04") == []


def advice(*texts, **subject):
    rows = tuple(Command(text=f"pip install {text}", where=f"a:{number}") for number, text in enumerate(texts, 2))
    one = Subject(**{"name": "a", "commands": rows, **subject})
    (note,) = found(one, tuple(listed for row in rows for listed in installs(row)), MATRIX)
    return note.instead


def test_advice_names_the_release_that_is_written():
    pytorch = "https://download.pytorch.org/whl/rocm6.4"
    assert advice("torch==2.9.1+rocm6.4") == f"--extra-index-url {pytorch} in the same file"
    assert "repo.radeon.com" in advice("torch==2.6.0+rocm6.4.1.git1ded221d")
    assert advice(f"torch --extra-index-url {pytorch}").endswith("or pin torch==X.Y.Z+rocm6.4")


def test_advice_on_an_index_leaves_other_packages_theirs():
    apart = "install torch first, in a command or file of its own with --index-url"
    assert advice("torch", "numpy", name="requirements-rocm.txt").startswith(apart)
    assert advice("torch numpy", image="python:3.12").startswith(apart)
    assert advice("torch", image="python:3.12").startswith("add --index-url")


@pytest.mark.parametrize(
    ("text", "image", "rules"),
    [
        (f"torchvision {INDEX}", BASE, ["torch-replaced"]),
        (f"torchaudio {INDEX}", BASE, ["torch-replaced"]),
        (f"torch torchvision {INDEX}", BASE, []),  # another torch is what is asked for
        (f"--no-deps torchvision {INDEX}", BASE, []),
        (f"torchvision==0.21.0 {INDEX}", BASE, []),
        ("torchvision", BASE, []),
        (f"torchvision {INDEX}", "rocm/dev-ubuntu-22.04:6.4", []),
    ],
)
def test_partner_of_an_index_brings_its_own_torch_over_that_of_the_image(text, image, rules):
    assert of(text, image=image) == rules
