"""What a Dockerfile copies from images, and for which processor it is built."""

import pytest

from rocmatrix.doctor.environment import dockerfile
from rocmatrix.doctor.environment.files import instructions


def of(folder, text):
    path = folder / "Dockerfile"
    path.write_text(text)
    return [(note.rule, note.where.rpartition(":")[2]) for one in dockerfile.of_dockerfile(path) for note in one.notes]


@pytest.mark.parametrize(
    ("image", "moves"),
    [
        ("ghcr.io/astral-sh/uv:latest", True),
        ("ghcr.io/astral-sh/uv", True),
        ("ghcr.io/astral-sh/uv:0.8.19", False),
        ("ghcr.io/astral-sh/uv@sha256:00", False),
        ("ghcr.io/astral-sh/uv:$UV", False),
        ("builder", False),
    ],
)
def test_image_that_is_copied_from_by_a_tag_that_moves_is_a_note(tmp_path, image, moves):
    text = f"FROM {{}}\nCOPY --from={image} /uv /bin/\n"
    assert of(tmp_path, text.format("rocm/dev-ubuntu-24.04:6.4")) == ([("copied-image-moves", "2")] if moves else [])
    assert of(tmp_path, text.format("python:3.12")) == []  # nothing there means an AMD card


@pytest.mark.parametrize(
    ("base", "wrong"),
    [
        ("--platform=linux/arm64 rocm/pytorch:a", True),
        ("--platform=linux/amd64 rocm/pytorch:a", False),
        ("--platform=$BUILDPLATFORM rocm/pytorch:a", False),
        ("--platform=linux/arm64 python:3.12", False),
    ],
)
def test_base_of_rocm_is_built_for_one_processor(tmp_path, base, wrong):
    assert of(tmp_path, f"FROM {base}\n") == ([("platform-without-rocm", "1")] if wrong else [])


def test_note_on_a_copied_image_names_it_and_its_place():
    (note,) = instructions.copied("--link --from=ghcr.io/astral-sh/uv:latest /uv /bin/", "a:7")
    assert (note.what, note.where, note.severity) == ("ghcr.io/astral-sh/uv:latest", "a:7", "note")
    assert list(instructions.copied("requirements.txt .", "a:7")) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("FROM rocm/dev-ubuntu-22.04\nFROM python:3.10\nRUN true\n", [("stage-without-use", "1")]),
        ("FROM rocm/dev-ubuntu-22.04 AS rocm\nFROM python:3.10\n", []),  # --target may name it
        ("FROM rocm/dev-ubuntu-22.04\nFROM python:3.10\nCOPY --from=0 /opt/rocm /opt/rocm\n", []),
        ("FROM a/b\nFROM python:3.10\nRUN --mount=type=bind,from=0,target=/a true\n", []),
        ("FROM python:3.10\n", []),
    ],
)
def test_stage_that_nothing_can_refer_to_is_a_warning(tmp_path, text, found):
    assert of(tmp_path, text) == found
    assert [note.rule for note in instructions.unused("a/b", "f:1")] == ["stage-without-use"]
