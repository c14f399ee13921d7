"""Files as a whole: made for NVIDIA's cards alone, or for AMD's without giving one."""

import pytest

from rocmatrix.doctor.environment.files import recognise
from rocmatrix.doctor.environment.whole import found


def of(folder, name, text):
    path = folder / name
    path.write_text(text)
    return [(row.rule, row.severity) for _, row in found(recognise.subjects(path, shell={}))]


NVIDIA = [("nvidia-alone", "note")]
RESERVED = "    deploy: {resources: {reservations: {devices: [{driver: nvidia, count: 1}]}}}\n"
GIVEN = "    devices: [/dev/kfd, /dev/dri]\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("compose.yaml", f"services:\n  a:\n    image: b:1\n{RESERVED}"),
        ("compose.yaml", "services:\n  a:\n    image: b:1\n    gpus: all\n"),
        ("run.sh", "#!/bin/sh\ndocker run --gpus all b:1\n"),
        ("a.container", "[Container]\nImage=b:1\nAddDevice=nvidia.com/gpu=all\n"),
        ("devcontainer.json", '{"image": "b:1", "runArgs": ["--gpus=all"]}'),
        ("Dockerfile", "FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04\n"),
        ("Dockerfile", "FROM python:3.12\nRUN pip install torch --index-url https://download.pytorch.org/whl/cu126\n"),
    ],
)
def test_file_for_nvidia_alone_is_a_note(tmp_path, name, text):
    assert of(tmp_path, name, text) == NVIDIA


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("docker-compose.nvidia.yml", f"services:\n  a:\n    image: b:1\n{RESERVED}"),  # its name states it
        ("compose.yaml", f"services:\n  a:\n    image: b:1\n{RESERVED}  c:\n    image: d:1\n{GIVEN}"),  # one for each
        ("compose.yaml", "services:\n  a:\n    image: b:1\n"),
        ("run.sh", "#!/bin/sh\ndocker run b:1\n"),
        ("Dockerfile", "ARG BASE\nFROM $BASE\n"),
        ("Dockerfile.cuda", "FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04\n"),
    ],
)
def test_file_that_states_its_maker_or_serves_both_is_let_be(tmp_path, name, text):
    assert of(tmp_path, name, text) == []


def test_torch_of_a_list_that_names_no_index_is_a_note(tmp_path):
    note = [("torch-from-default-index", "note")]
    project = '[project]\ndependencies = ["numpy", "torch>=2.0"]\n'
    assert of(tmp_path, "pyproject.toml", project) == note
    assert of(tmp_path, "requirements.txt", "numpy\ntorch\n") == note
    assert of(tmp_path, "requirements.txt", "--index-url https://download.pytorch.org/whl/cpu\ntorch\n") == []
    assert of(tmp_path, "requirements.txt", "numpy\n") == []
    assert of(tmp_path, "requirements.txt", "vllm==0.2.6\n") == note  # brings torch along
    assert of(tmp_path, "setup.sh", "pip install torch==2.6.0\npip install einops\n") == note
    rocm = "pip install torch --index-url https://download.pytorch.org/whl/rocm6.4\npip install vllm\n"
    assert of(tmp_path, "setup.sh", rocm) == []  # vllm is examined as what may replace that torch
    assert of(tmp_path, "requirements-cpu.txt", "torch\n") == []
    extra = project + '[project.optional-dependencies]\nrocm = ["torch"]\n'
    assert of(tmp_path, "pyproject.toml", extra) == []  # the extra is for AMD, and is examined as such


def test_variable_of_nvidia_has_no_effect_on_an_amd_card(tmp_path):
    text = "services:\n  a:\n    image: b:1\n    environment: {{NVIDIA_VISIBLE_DEVICES: {}}}\n" + GIVEN
    assert of(tmp_path, "compose.yaml", text.format("all")) == [("nvidia-variable", "note")]
    assert of(tmp_path, "compose.yaml", text.format("void")) == []
    assert of(tmp_path, "compose.yaml", text.format("all").replace(GIVEN, "")) == []


@pytest.mark.parametrize(
    ("name", "rows", "expected"),
    [
        ("compose.yaml", "    image: rocm/vllm:1\n", [("no-devices-given", "warning")]),
        ("compose.yaml", f"    image: rocm/vllm:1\n{GIVEN}", []),
        ("compose.yaml", "    image: rocm/vllm:1\n    runtime: amd\n", []),
        ("compose.yaml", "    image: rocm/vllm:1\n    privileged: true\n", []),
        ("compose.yaml", "    image: rocm/vllm:1\n    extends: {service: c}\n", []),
        ("compose.yaml", "    image: rocm/dev-ubuntu-24.04:6.4\n", [("no-devices-given", "note")]),
        ("compose.yaml", f"    image: rocm/vllm:1\n  c:\n    image: d:1\n{GIVEN}", [("no-devices-given", "note")]),
        ("compose.rocm.yaml", "    build: .\n", [("no-devices-given", "note")]),
        ("compose.rocm.yaml", f"    build: .\n{GIVEN}", []),
        ("compose.yaml", "    build: .\n", []),
    ],
)
def test_image_of_rocm_needs_a_card(tmp_path, name, rows, expected):
    assert of(tmp_path, name, f"services:\n  a:\n{rows}") == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("${HSA_OVERRIDE_GFX_VERSION}", [("empty-when-unset", "note")]),
        ("$GFX", [("empty-when-unset", "note")]),
        ("${GFX:-10.3.0}", []),
        ("10.3.0", []),
    ],
)
def test_variable_of_the_caller_without_a_default_is_set_to_nothing(tmp_path, value, expected):
    text = f"services:\n  a:\n    image: b:1\n    environment: ['HSA_OVERRIDE_GFX_VERSION={value}']\n{GIVEN}"
    assert of(tmp_path, "compose.yaml", text) == expected


def test_other_images_of_a_file_for_amd_that_move_are_notes(tmp_path):
    other = "  c:\n    image: {}\n"
    text = f"services:\n  a:\n    image: b:1\n{GIVEN}"
    assert of(tmp_path, "compose.yaml", text + other.format("me/web:latest-gpu")) == [("image-moves", "note")]
    assert of(tmp_path, "compose.yaml", text + other.format("me/web:1.2")) == []
    assert of(tmp_path, "compose.yaml", text + other.format("redis")) == []
    assert of(tmp_path, "compose.yaml", "services:\n" + other.format("me/web:latest")) == []


def test_command_with_an_image_of_rocm_may_only_compile(tmp_path):
    text = "#!/bin/sh\n{} run {} rocm/vllm:1 python a.py\n"
    assert of(tmp_path, "run.sh", text.format("docker", "--rm")) == [("no-devices-given", "note")]
    assert of(tmp_path, "run.sh", text.format("docker", "--device /dev/kfd --device /dev/dri")) == []
    assert of(tmp_path, "run.sh", text.format("docker", "$OPTIONS --rm")) == []
