"""Requirements files that a Dockerfile names."""

import pytest

from rocmatrix.doctor.environment import dockerfile
from rocmatrix.doctor.environment.files import named_requirements
from rocmatrix.doctor.environment.placement import misplaced
from tests.fixtures.cells import MATRIX

BASE = "rocm/pytorch:rocm6.4.1_ubuntu22.04_py3.10_pytorch_release_2.6.0"


def of(folder, text, *, file="requirements.txt", listed="torch==2.5.1\n"):
    (folder / "docker").mkdir(exist_ok=True)
    place = folder / file
    place.parent.mkdir(exist_ok=True)
    place.write_text(listed)
    path = folder / "docker" / "Dockerfile"
    path.write_text(text)
    found = misplaced(dockerfile.of_dockerfile(path), MATRIX)
    return [(row.rule, row.where.rpartition(":")[2]) for row in found if row.rule != "version-not-pinned"]


@pytest.mark.parametrize("name", ["requirements.txt", "/app/requirements.txt", "./requirements.txt"])
def test_torch_of_a_named_file_replaces_that_of_the_image(tmp_path, name):
    text = f"FROM {BASE}\nCOPY requirements.txt .\nRUN pip install --no-cache-dir -r {name}\n"
    assert of(tmp_path, text) == [("torch-replaced", "3")]
    assert of(tmp_path, text, listed="# torch==2.5.1\nnumpy\n") == []
    assert of(tmp_path, text, listed="--index-url https://download.pytorch.org/whl/rocm6.4\ntorch==2.6.0\n") == []


def test_file_is_found_in_the_folder_that_the_command_names(tmp_path):
    text = f"FROM {BASE}\nCOPY . .\nRUN pip3 install --requirement=deps/gpu.txt && pip list\n"
    assert of(tmp_path, text, file="deps/gpu.txt") == [("torch-replaced", "3")]
    assert of(tmp_path, text, file="docker/gpu.txt") == [("torch-replaced", "3")]


def test_file_of_a_clone_is_not_that_of_the_checkout(tmp_path):
    clone = f"FROM {BASE}\nRUN git clone -b v1.0 https://github.com/me/app /app\nWORKDIR /app\n"
    unread = [("torch-may-be-replaced", "4")]
    assert of(tmp_path, f"{clone}RUN pip install -r requirements.txt\n") == unread
    assert of(tmp_path, f"{clone}COPY --from=other /a /a\nRUN pip install -r requirements.txt\n") == [
        (unread[0][0], "5")
    ]


def test_file_that_is_not_there_or_no_text_is_left_out(tmp_path):
    text = f"FROM {BASE}\nRUN pip install -r absent.txt\n"
    assert of(tmp_path, text) == [("torch-may-be-replaced", "2")]
    (tmp_path / "absent.txt").write_bytes(b"\xff\xfe\x00")
    assert of(tmp_path, text) == [("torch-may-be-replaced", "2")]
    assert of(tmp_path, f"FROM {BASE}\nRUN cp -r requirements.txt /a && pip install a\n") == []


def test_options_of_a_named_file_count_for_each_of_its_packages(tmp_path):
    (tmp_path / "a.txt").write_text(
        "--index-url https://example.org/simple\n-r other.txt\ntorch == 2.9.1  # a comment\n"
    )
    rows = named_requirements.commands("pip install -r a.txt", "b:2", tmp_path / "Dockerfile")
    assert [(row.text, row.where) for row in rows] == [
        ("pip install --index-url https://example.org/simple torch==2.9.1", "b:2")
    ]
