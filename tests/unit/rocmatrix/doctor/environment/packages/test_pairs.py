"""What has to fit torch: its triton, its torchaudio, and a Python with wheels."""

import pytest

from rocmatrix.doctor.environment.lint_input import Command, Subject
from rocmatrix.doctor.environment.packages.installs import installs
from rocmatrix.doctor.environment.packages.pairs import found
from tests.fixtures.cells import MATRIX


def of(text, image=None, *, before="true"):
    command = Command(text=f"pip install {text}", where="a:2")
    subject = Subject(name="a", image=image, commands=(Command(text=before, where="a:1"), command))
    return [row.rule for row in found(subject, tuple(installs(command)), MATRIX)]


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("torch==2.6.0+rocm6.4.1.git1ded221d pytorch-triton-rocm==3.3.1", ["partner-of-another-torch"]),
        ("torch==2.6.0+rocm6.4.1.git1ded221d pytorch-triton-rocm==3.2.0", []),
        ("torch==2.6.0 torchaudio==2.5.1", ["partner-of-another-torch"]),
        ("torch==2.6.0 torchaudio==2.6.0", []),
        ("torch==2.9.1+rocm7.12.0 torchaudio==2.9.0+rocm7.12.0", []),  # AMD's own pair (amd/playbooks)
        ("torch==2.9.1+rocm7.12.0 torchaudio==2.8.0+rocm7.12.0", ["partner-of-another-torch"]),
        ("torch==2.9.1+rocm6.4 torchaudio==2.9.0+rocm6.4", ["partner-of-another-torch"]),  # of PyTorch's index
        ("torch==2.6.0 torchaudio", []),
        ("torch torchaudio==2.5.1", []),
        ("torch==2.13.0 torchaudio==2.11.0", []),  # the newest torchaudio there is
        ("torch==1.9.0 torchaudio==0.9.0", []),  # older than what is recorded
        ("torch==2.6.0 torch==2.5.1 torchaudio==2.5.1", []),  # a choice by markers
    ],
)
def test_partner_belongs_to_one_torch(text, rules):
    assert of(text) == rules


@pytest.mark.parametrize(
    ("image", "text", "missing"),
    [
        ("python:3.13-slim", "torch==2.3.1 --index-url https://download.pytorch.org/whl/rocm6.0", True),
        ("python:3.12-slim", "torch==2.3.1 --index-url https://download.pytorch.org/whl/rocm6.0", False),
        ("python:3.13", "torch --index-url https://download.pytorch.org/whl/rocm6.0", True),
        ("docker.io/library/python:3.8", "torch==2.9.1 --index-url https://download.pytorch.org/whl/rocm6.4", True),
        ("python:3.13", "'torch>=2.3' --index-url https://download.pytorch.org/whl/rocm6.0", False),
        ("python:3.13", "torch==2.3.1", False),
        ("rocm/dev-ubuntu-24.04:6.4", "torch==2.3.1 --index-url https://download.pytorch.org/whl/rocm6.0", False),
    ],
)
def test_torch_needs_a_wheel_for_the_python_of_the_image(image, text, missing):
    assert of(text, image) == (["python-without-wheel"] if missing else [])


@pytest.mark.parametrize(
    "before", ["uv venv --python 3.12 /opt/venv", "uv python install 3.12", "conda create python=3.12"]
)
def test_python_of_another_program_is_not_the_images(before):
    text = "torch==2.3.1 --index-url https://download.pytorch.org/whl/rocm6.0"
    assert of(text, "python:3.13", before=before) == []


@pytest.mark.parametrize(
    ("triton", "torch", "rules"),
    [
        ("2.2.0", "https://download.pytorch.org/whl/rocm6.0/torch-2.3.1%2Brocm6.0", ["partner-of-another-torch"]),
        ("2.3.1", "https://download.pytorch.org/whl/rocm6.0/torch-2.3.1%2Brocm6.0", []),
        ("2.0.0", "https://repo.radeon.com/rocm/manylinux/rocm-rel-6.0/torch-2.1.1%2Brocm6.0", []),  # AMD's had others
    ],
)
def test_triton_by_address_belongs_to_the_torch_by_address(triton, torch, rules):
    end = "cp312-cp312-linux_x86_64.whl"
    partner = f"https://download.pytorch.org/whl/pytorch_triton_rocm-{triton}-{end}"
    assert of(f"{partner} {torch}-{end}") == rules
