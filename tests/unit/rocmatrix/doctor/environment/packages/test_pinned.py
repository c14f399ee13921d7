"""Packages without a version, in what is built for AMD cards."""

import pytest

from rocmatrix.doctor.environment import dockerfile, scripts
from rocmatrix.doctor.environment.lint_input import Assignment, Command, Subject
from rocmatrix.doctor.environment.packages.installs import installs
from rocmatrix.doctor.environment.packages.pinned import found
from rocmatrix.doctor.environment.placement import misplaced
from tests.fixtures.cells import MATRIX

IMAGE = "rocm/dev-ubuntu-24.04:6.4"
INDEX = "--index-url https://download.pytorch.org/whl/rocm6.4"


def of(text, **given):
    one = Subject(
        **{"name": "Dockerfile stage 0", "image": IMAGE, "commands": (Command(text=text, where="a:3"),), **given}
    )
    listed = tuple(row for command in one.commands for row in installs(command))
    return [(note.rule, note.what) for note in found(one, listed)]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (f"pip install torch torchvision {INDEX}", "torch torchvision"),
        ("pip install -v gptqmodel --no-build-isolation", "gptqmodel"),
        ("uv pip install 'jax[rocm]' numpy", "jax"),
        ("pip install torch==2.9.1 ray", "ray"),
        (f"pip install torch {INDEX} && python -c 'import torch'", "torch"),
    ],
)
def test_package_without_a_version_is_a_note(text, names):
    assert of(text) == [("version-not-pinned", names)]


@pytest.mark.parametrize(
    ("text", "given"),
    [
        (f"pip install torch==2.9.1 {INDEX}", {}),
        ("pip install 'transformers>=4.40'", {}),
        ("pip install numpy jupyterlab", {}),
        ("pip install -c versions.txt vllm", {}),
        ("pip install vllm", {"variables": (Assignment(name="PIP_CONSTRAINT", value="/c", where="a:2"),)}),
        ("pip install torch", {"image": "rocm/pytorch:rocm6.4_ubuntu22.04_py3.10_pytorch_release_2.6.0"}),
        ("pip install vllm-0.9.0-cp312-cp312-linux_x86_64.whl", {}),
        ("pip install vllm", {"image": "python:3.12"}),
        ("pip install vllm", {"name": "setup-rocm.sh", "image": None}),
    ],
)
def test_package_with_a_version_or_for_other_cards_is_let_be(text, given):
    assert of(text, **given) == []


def test_partner_of_a_torch_that_is_installed_anew_is_not_that_of_the_image():
    text = f"pip install --pre torch==2.9.1 torchvision {INDEX}"
    assert of(text, image="rocm/pytorch:latest") == [("version-not-pinned", "torchvision")]


def test_torch_of_the_image_is_replaced_by_upgrade_and_so_noted():
    assert of("pip install -U torch", image="rocm/pytorch:latest") == [("version-not-pinned", "torch")]


@pytest.mark.parametrize(
    ("address", "moves"),
    [
        ("git+https://github.com/me/app", True),
        ("git+https://github.com/me/app.git#subdirectory=a", True),
        ("git+ssh://git@github.com/me/app.git", True),
        ("git+https://github.com/me/app@v1.2", False),
        ("git+https://github.com/me/app.git@3c1a9f0#egg=app", False),
        ("git+https://github.com/me/app@${COMMIT}", False),
    ],
)
def test_package_of_a_branch_is_a_note(address, moves):
    assert of(f"pip install {address}") == ([("source-moves", address)] if moves else [])


def test_requirements_for_amd_have_one_note(tmp_path):
    path = tmp_path / "requirements-rocm.txt"
    path.write_text("numpy\naccelerate\ndatasets\ntransformers\ntrl==0.9\n")
    notes = [row for row in misplaced(scripts.of_file(path), MATRIX) if row.rule == "version-not-pinned"]
    assert [(row.where, row.what) for row in notes] == [(f"{path}:2", "accelerate transformers")]
    path = path.rename(tmp_path / "requirements.txt")
    assert "version-not-pinned" not in {row.rule for row in misplaced(scripts.of_file(path), MATRIX)}


def test_dockerfile_has_a_note_at_each_command(tmp_path):
    path = tmp_path / "Dockerfile"
    path.write_text(f"FROM {IMAGE}\nRUN pip install torch {INDEX}\nRUN pip install deepspeed\n")
    notes = [row for row in misplaced(dockerfile.of_dockerfile(path), MATRIX) if row.rule == "version-not-pinned"]
    assert [(row.where, row.severity) for row in notes] == [(f"{path}:2", "note"), (f"{path}:3", "note")]


@pytest.mark.parametrize(
    ("texts", "image", "what"),
    [
        (("pip install -r requirements.txt",), "rocm/pytorch:latest", "-r requirements.txt"),
        ((f"pip install torch==2.9.1 {INDEX}", "pip install -e ."), IMAGE, "-e ."),
        ((f'i="{INDEX}" && pip install $i torch==2.9.1', "uv pip install ."), IMAGE, "."),
        (("pip install -e .[cuda]; pip install .",), "rocm/pytorch:latest", "."),
        (("pip install -r a.txt -c b.txt",), "rocm/pytorch:latest", None),
        (("pip install --no-deps -r a.txt",), "rocm/pytorch:latest", None),
        ((f"pip install -r a.txt {INDEX}",), "rocm/pytorch:latest", None),
        (("pip install -r a.txt", "python -c 'import torch; assert torch.version.hip'"), "rocm/pytorch:latest", None),
        (("pip install -r a.txt", f"pip install torch==2.9.1 {INDEX}"), IMAGE, None),
        (("pip install -r $LIST",), "rocm/pytorch:latest", None),
    ],
)
def test_list_over_a_torch_for_rocm_is_a_note(texts, image, what):
    commands = tuple(Command(text=text, where=f"a:{at}") for at, text in enumerate(texts))
    one = Subject(name="Dockerfile stage 0", image=image, commands=commands)
    notes = [note.what for note in found(one, ()) if note.rule == "torch-may-be-replaced"]
    assert notes == ([f"pip install {what}"] if what else [])


@pytest.mark.parametrize(
    ("options", "rules"),
    [
        ("--extra-index-url https://download.pytorch.org/whl/rocm7.2", ["torch-may-be-replaced"]),
        ("--prefix=/install --extra-index-url https://download.pytorch.org/whl/rocm7.2", ["torch-may-be-replaced"]),
        ("--index-url https://download.pytorch.org/whl/rocm7.2", []),
        ("-c held.txt --extra-index-url https://download.pytorch.org/whl/rocm7.2", []),
    ],
)
def test_list_that_asks_an_index_next_to_pypi_may_replace_torch_all_the_same(options, rules):
    image = "rocm/pytorch:rocm7.2.1_ubuntu24.04_py3.12_pytorch_release_2.9.1"
    assert [rule for rule, _ in of(f"pip install {options} -r requirements.txt", image=image)] == rules
