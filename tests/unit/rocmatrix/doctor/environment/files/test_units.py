"""Env files, units of Podman and systemd, development containers."""

import pytest

from rocmatrix.doctor.environment.files import recognise, units
from rocmatrix.doctor.environment.placement import misplaced
from rocmatrix.matrix.loading import load
from rocmatrix.runtime.errors import RocmatrixError
from tests.unit.rocmatrix.diagnosis.known import ROOT

MATRIX = load.load(ROOT)


def read(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    return recognise.subjects(tmp_path / name, shell={})


def rules(subjects):
    return [finding.rule for finding in misplaced(subjects, MATRIX)]


def test_env_file_gives_its_variables_with_their_lines(tmp_path):
    (subject,) = read(tmp_path, ".env.amd", "# cards\nHSA_OVERRIDE_GFX_VERSION=11.0.0\n")
    (row,) = subject.variables
    assert (row.name, row.value, row.where.rpartition(":")[2]) == ("HSA_OVERRIDE_GFX_VERSION", "11.0.0", "2")


QUADLET = '[Container]\nImage=docker.io/ollama/ollama:rocm\nEnvironment=HSA_ENABLE_SDMA=0 "A=b c"\n{more}\n[Install]\n'


def test_quadlet_is_read_as_a_start_by_podman(tmp_path):
    more = "AddDevice=-/dev/kfd:/dev/kfd\nAddDevice=/dev/dri\nGroupAdd=keep-groups\nShmSize=8g\nPodmanArgs=--ipc=host"
    (subject,) = read(tmp_path, "ollama.container", QUADLET.format(more=more))
    launch = subject.launch
    assert [(row.name, row.value) for row in subject.variables] == [("HSA_ENABLE_SDMA", "0"), ("A", "b c")]
    assert launch.devices == ("/dev/kfd", "/dev/dri")
    assert (launch.groups, launch.shared_memory, launch.ipc, launch.runner) == (
        ("keep-groups",), "8g", "host", "podman",
    )  # fmt: skip


def test_quadlet_without_groups_loses_those_of_the_user(tmp_path):
    more = "AddDevice=/dev/kfd\nAddDevice=/dev/dri\nPodmanArgs=--ipc=host"
    assert rules(read(tmp_path, "a.container", QUADLET.format(more=more))) == ["podman-without-groups"]


def test_systemd_unit_gives_its_variables_and_the_container_that_it_starts(tmp_path):
    text = (
        "[Service]\nEnvironment=A=1\n;Environment=B=2\nExecStart=-/usr/bin/docker run --device dev/dri rocm/pytorch\n"
    )
    unit, started = read(tmp_path, "x.service", text)
    assert [row.name for row in unit.variables] == ["A"]
    assert started.image == "rocm/pytorch"
    assert rules([started])[0] == "device-path"


def test_development_container_for_rocm_without_devices_is_an_error(tmp_path):
    text = '{\n // a comment\n "name": "ROCm",\n "image": "rocm/dev",\n "runArgs": ["--network=host",],\n}'
    assert rules(read(tmp_path, "devcontainer.json", text)) == ["no-devices-given"]
    given = text.replace("--network=host", "--device=/dev/kfd").replace('",]', '", "--device=/dev/dri", "--ipc=host"]')
    assert rules(read(tmp_path, "devcontainer.json", given)) == []
    assert rules(read(tmp_path, "devcontainer.json", '{"image": "python:3.12"}')) == []


def test_addresses_in_a_development_container_are_no_comments(tmp_path):
    text = '{"image": "x", "containerEnv": {"A": "https://example.org//b"}}'
    (subject,) = read(tmp_path, "devcontainer.json", text)
    assert subject.variables[0].value == "https://example.org//b"


@pytest.mark.parametrize("text", ["{", "[1]", ""])
def test_development_container_of_another_form_is_a_coded_error(tmp_path, text):
    (tmp_path / "devcontainer.json").write_text(text)
    with pytest.raises(RocmatrixError) as caught:
        units.of_devcontainer(tmp_path / "devcontainer.json")
    assert caught.value.code == "RM311"
