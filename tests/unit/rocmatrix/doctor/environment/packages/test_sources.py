"""Clones and downloads of a Dockerfile that change without a change of the Dockerfile."""

import pytest

from rocmatrix.doctor.environment import dockerfile
from rocmatrix.doctor.environment.lint_input import Command, Subject
from rocmatrix.doctor.environment.packages.sources import found
from rocmatrix.doctor.environment.placement import misplaced
from tests.fixtures.cells import MATRIX

URL = "https://github.com/me/app"
AMD = {"name": "Dockerfile stage 0", "image": "rocm/dev-ubuntu-24.04:6.4"}


def of(*texts, **subject):
    commands = tuple(Command(text=text, where=f"a:{number}") for number, text in enumerate(texts, 1))
    return [(one.rule, one.where) for one in found(Subject(**{**AMD, "commands": commands, **subject}))]


@pytest.mark.parametrize(
    "text",
    [
        f"git clone {URL}",
        f"git clone -b main {URL} app",
        f"git clone --depth 1 --branch=master {URL}",
        f"git clone {URL} && cd app && git checkout -b build origin/develop && make",
        f"git clone -c a.b=c {URL}",
        f"git clone {URL} && git -C app switch dev",
    ],
)
def test_clone_of_a_branch_is_a_note(text):
    assert of(text) == [("source-moves", "a:1")]


@pytest.mark.parametrize(
    "text",
    [
        f"git clone -b v1.2.0 {URL}",
        f"git clone --branch b5040 --depth 1 {URL}",
        f"git clone -b ${{BRANCH}} {URL}",
        f"git clone {URL} && cd app && git checkout 3c1a9f0",
        f"git clone {URL} && cd app && git checkout -b build tags/stable",
        f"git clone {URL} && git -C app reset --hard $COMMIT",
        f"git clone {URL} && cd app && git fetch origin 3c1a9f0d && git checkout FETCH_HEAD",
        f"git clone --branch release/2.5 {URL}",
        "git config --global clone.depth 1",
    ],
)
def test_clone_of_a_tag_a_commit_or_a_variable_is_let_be(text):
    assert of(text) == []


def test_commit_belongs_to_the_clone_before_it():
    pinned = "cd app && git checkout 3c1a9f0"
    assert of(f"git clone {URL}", pinned) == []
    assert of(f"git clone {URL}/a && git clone {URL}/b && {pinned}") == [("source-moves", "a:1")]
    assert of(f"git clone {URL}/a", f"git clone {URL}/b", pinned) == [("source-moves", "a:1")]
    assert of(pinned, f"git clone {URL}") == [("source-moves", "a:2")]


@pytest.mark.parametrize(
    ("address", "moves"),
    [
        ("https://repo.anaconda.com/miniconda/Miniconda3-latest-Linux-x86_64.sh", True),
        ("https://github.com/me/app/releases/latest/download/app.tar.gz", True),
        ("https://repo.radeon.com/amdgpu-install/latest/ubuntu/jammy/a.deb", True),
        ("https://repo.radeon.com/amdgpu-install/6.4/ubuntu/jammy/a.deb", False),
        ("https://rocm.docs.amd.com/en/latest/install.html", False),
        ("https://example.org/latestnews.tar.gz", False),
    ],
)
def test_download_of_the_latest_file_is_a_note(address, moves):
    assert of(f"wget -q {address} -O a && sh a") == ([("download-moves", "a:1")] if moves else [])


def test_sources_of_other_makers_and_of_scripts_are_let_be():
    assert of(f"git clone {URL}", image="nvidia/cuda:12") == []
    assert of(f"git clone {URL}", name="install-rocm.sh", image=None) == []


def test_note_on_a_clone_names_the_branch():
    text = f"git clone {URL} && cd app && git fetch --prune -- origin main && git checkout FETCH_HEAD"
    (note,) = found(Subject(**AMD, commands=(Command(text=text, where="a:1"),)))
    assert note.what == f"git clone {URL} main" and note.truth.startswith("main is another commit")


def test_findings_of_a_dockerfile_are_notes_at_their_line(tmp_path):
    path = tmp_path / "Dockerfile"
    path.write_text(f"FROM rocm/dev-ubuntu-24.04:6.4\nARG BRANCH=master\nRUN git clone -b $BRANCH {URL}\n")
    (note,) = misplaced(dockerfile.of_dockerfile(path), MATRIX)
    assert (note.rule, note.severity, note.where) == ("source-moves", "note", f"{path}:3")
    assert note.what == f"git clone {URL} master"


def test_hostile_commands_come_to_an_end():
    for text in ("git clone " * 5_000, "git checkout " * 20_000, "https://a-latest" * 5_000, "git -c a " * 20_000):
        assert of(text, text) is not None


@pytest.mark.parametrize(
    ("address", "cuda"),
    [
        ("https://github.com/a/b/releases/download/v1/onnxruntime-linux-x64-gpu-1.23.2.tgz", True),
        ("https://example.org/flash_attn-2.7+cu122torch2.4-cp312-cp312-linux_x86_64.whl", True),
        ("https://example.org/llama-b1-bin-ubuntu-cuda-12.4-x64.zip", True),
        ("https://github.com/a/b/releases/download/v1/onnxruntime-linux-x64-1.23.2.tgz", False),
        ("https://example.org/llama-b1-ubuntu-rocm-gfx1151-x64.zip", False),
    ],
)
def test_download_that_is_built_for_cuda_is_out_of_place(address, cuda):
    assert of(f"curl -L {address} -o a") == ([("download-of-cuda", "a:1")] if cuda else [])
    assert of(f"curl -L {address} -o a", image="nvidia/cuda:12") == []


def test_clone_of_a_container_in_a_cluster_is_a_note():
    assert of(f"git clone {URL} && cd app", name="pod.yaml container a", for_amd=True) == [("source-moves", "a:1")]
    assert of(f"git clone {URL} && cd app", name="pod.yaml container a", image="python:3.12") == []
