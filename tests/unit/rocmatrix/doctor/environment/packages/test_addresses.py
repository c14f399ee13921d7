"""Indexes that replace PyPI, and nightlies that have ended."""

import pytest

from rocmatrix.doctor.environment import dockerfile, scripts
from rocmatrix.doctor.environment.files import pyproject
from rocmatrix.doctor.environment.packages.addresses import found
from tests.fixtures.cells import MATRIX

INDEX = "https://download.pytorch.org/whl/rocm6.4"


def put(folder, name, text):
    path = folder / name
    path.write_text(text)
    return path


def of(subjects):
    return [(row.rule, row.where.rpartition(":")[2]) for one in subjects for row in found(one, MATRIX)]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"numpy\n--index-url {INDEX}\ntorch\nfastapi\n", "2"),
        (f"-i {INDEX}\ntorch\ntransformers==4.40\npandas\n", "1"),
        (f"--index-url={INDEX}\ntorch\ngradio\n", "1"),
        (f"--extra-index-url {INDEX}\ntorch\nfastapi\n", None),
        (f"--index-url {INDEX}\n--extra-index-url https://pypi.example/simple\ntorch\nfastapi\n", None),
        (f"--index-url {INDEX}\ntorch\ntorchvision\nnumpy\n", None),
        ("--index-url https://pypi.example/simple\nfastapi\n", None),
    ],
)
def test_index_of_a_requirements_file_replaces_pypi_for_all(tmp_path, text, line):
    path = put(tmp_path, "requirements-rocm.txt", text)
    assert of(scripts.of_file(path)) == ([("index-replaces-pypi", line)] if line else [])


def test_index_next_to_pypi_in_a_list_without_torch_is_a_note(tmp_path):
    text = f"--extra-index-url {INDEX}\ndemucs\nnumpy\n"
    assert of(scripts.of_file(put(tmp_path, "requirements-rocm.txt", text))) == [("torch-index-next-to-pypi", "1")]
    assert of(scripts.of_file(put(tmp_path, "requirements-rocm.txt", f"{text}torch==2.9.1+rocm6.4\n"))) == []
    assert of(scripts.of_file(put(tmp_path, "requirements-rocm.txt", "demucs\n"))) == []


def test_index_of_a_command_replaces_pypi_for_that_command(tmp_path):
    text = f"FROM python:3.12\nRUN pip install torch --index-url {INDEX} && pip install transformers\n"
    assert of(dockerfile.of_dockerfile(put(tmp_path, "Dockerfile", text))) == []
    text = f"FROM python:3.12\nRUN pip install torch transformers --index-url {INDEX}\n"
    assert of(dockerfile.of_dockerfile(put(tmp_path, "Dockerfile", text))) == [("index-replaces-pypi", "2")]


def test_index_of_one_package_in_a_pyproject_file_replaces_nothing(tmp_path):
    text = (
        '[project]\ndependencies = ["torch", "fastapi"]\n[tool.uv.sources]\ntorch = {index = "a"}\n'
        f'[[tool.uv.index]]\nname = "a"\nurl = "{INDEX}"\nexplicit = true\n'
    )
    assert of(pyproject.of_pyproject(put(tmp_path, "pyproject.toml", text))) == []


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("requirements-rocm.txt", "--index-url https://download.pytorch.org/whl/cu121\ntorch==2.5.1\n", "1"),
        ("requirements-rocm.txt", "numpy\ntorch==2.5.1+cu121\n", "2"),
        ("requirements-rocm.txt", f"--index-url {INDEX}\ntorch==2.9.1\n", None),
        ("requirements.txt", "--index-url https://download.pytorch.org/whl/cu121\ntorch==2.5.1\n", None),
    ],
)
def test_torch_of_cuda_is_out_of_place_in_requirements_for_amd(tmp_path, name, text, line):
    assert of(scripts.of_file(put(tmp_path, name, text))) == ([("index-of-cuda", line)] if line else [])


def test_torch_of_cuda_is_out_of_place_on_an_image_for_amd(tmp_path):
    text = "FROM {}\nRUN {}pip install torch --index-url https://download.pytorch.org/whl/cu124{}\n"
    for image, before, after, expected in (
        ("rocm/pytorch:a", "", "", [("index-of-cuda", "2")]),
        ("nvidia/cuda:12", "", "", []),
        ("rocm/pytorch:a", "if a; then ", "; fi", []),  # one of several to choose from
    ):
        path = put(tmp_path, "Dockerfile", text.format(image, before, after))
        assert of(dockerfile.of_dockerfile(path)) == expected


@pytest.mark.parametrize(("rocm", "ended"), [("5.5", True), ("6.1", True), ("99.9", False)])
def test_nightlies_are_of_the_newest_releases_alone(tmp_path, rocm, ended):
    index = f"https://download.pytorch.org/whl/nightly/rocm{rocm}"
    path = put(tmp_path, "requirements-rocm.txt", f"--pre --extra-index-url {index}\ntorch\nnumpy\n")
    assert of(scripts.of_file(path)) == ([("nightly-ended", "1")] if ended else [])
    text = f"FROM python:3.12\nRUN if a; then b; else pip install --pre torch --index-url {index}; fi\n"
    assert of(dockerfile.of_dockerfile(put(tmp_path, "Dockerfile", text))) == []  # one of several to choose from


def test_index_given_elsewhere_stays_next_to_the_one_of_a_command(tmp_path):
    install = f"RUN pip install --index-url {INDEX} torch transformers\n"
    for before, rules in (
        ("", ["index-replaces-pypi"]),
        ("ENV PIP_EXTRA_INDEX_URL=https://pypi.example/simple\n", []),
        ("RUN pip config set global.extra-index-url https://pypi.example/simple\n", []),
    ):
        subjects = dockerfile.of_dockerfile(put(tmp_path, "Dockerfile", f"FROM python:3.12\n{before}{install}"))
        assert [rule for rule, _ in of(subjects)] == rules


def test_script_for_either_maker_may_name_the_index_of_cuda(tmp_path):
    cuda = "pip install torch --index-url https://download.pytorch.org/whl/cu126"
    either = f"if command -v nvidia-smi; then\n  {cuda}\nelse\n  pip install torch --index-url {INDEX}\nfi\n"
    assert of(scripts.of_file(put(tmp_path, "install-rocm.sh", either))) == []
    printed = f'echo "for NVIDIA: {cuda}"\n'
    assert of(scripts.of_file(put(tmp_path, "print-rocm.sh", printed))) == []
