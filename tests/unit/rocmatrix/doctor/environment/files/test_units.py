"""Env files, units of Podman and systemd, development containers."""

import pytest

from rocmatrix.doctor.environment.files import recognise, units
from rocmatrix.doctor.environment.placement import misplaced
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures.cells import MATRIX


def read(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    return recognise.subjects(tmp_path / name, shell={})


def rules(subjects):
    """Return the rules, less that on tags that move, which has tests of its own."""
    return [finding.rule for finding in misplaced(subjects, MATRIX) if finding.rule != "image-moves"]


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


def severities(subjects):
    return [(one.rule, one.severity) for one in misplaced(subjects, MATRIX) if one.rule == "podman-without-groups"]


DEVICES = "AddDevice=/dev/kfd\nAddDevice=/dev/dri\nPodmanArgs=--ipc=host"


@pytest.mark.parametrize(
    ("name", "target", "severity"),
    [
        (".config/containers/systemd/a.container", "", "warning"),
        ("etc/containers/systemd/users/a.container", "", "warning"),
        ("etc/containers/systemd/a.container", "", None),
        ("usr/share/containers/systemd/a.container", "", None),
        ("a.container", "multi-user.target default.target", None),
        ("a.container", "default.target", "warning"),
        ("a.container", "", "note"),
    ],
)
def test_quadlet_of_root_keeps_its_groups(tmp_path, name, target, severity):
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    text = QUADLET.format(more=DEVICES) + (f"\n[Install]\nWantedBy={target}\n" if target else "")
    expected = [("podman-without-groups", severity)] if severity else []
    assert severities(read(tmp_path, name, text)) == expected


def test_podman_with_names_of_groups_is_a_note_and_with_sudo_nothing(tmp_path):
    line = "podman run --device /dev/kfd --device /dev/dri --ipc=host {}rocm/pytorch:a\n"
    for text, expected in (
        (line.format(""), ["warning"]),
        (line.format("--group-add video "), ["note"]),
        (line.format("--group-add keep-groups "), []),
        ("sudo " + line.format(""), []),
        (line.format('"${MORE[@]}" '), []),
    ):
        subjects = read(tmp_path, "run.sh", "#!/bin/bash\n" + text)
        assert [severity for _, severity in severities(subjects)] == expected


def test_systemd_service_of_another_user_is_not_roots(tmp_path):
    start = "ExecStart=podman run --device /dev/kfd --ipc=host rocm/pytorch\n"
    text = "[Service]\n{}" + start + "[Install]\nWantedBy=multi-user.target\n"
    assert severities(read(tmp_path, "x.service", text.format(""))) == []
    assert severities(read(tmp_path, "x.service", text.format("User=me\n"))) == [("podman-without-groups", "warning")]


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


def test_settings_of_a_unit_go_on_behind_a_backslash(tmp_path):
    text = (
        '[Service]\nEnvironment="HSA_ENABLE_SDMA=0" \\\n# between\n  "A=1"\nExecStart=/usr/bin/docker run --rm \\\n'
        "  --device=/dev/dri --log-opt max-size=10m \\\n  --device=/dev/kfd --group-add video \\\n"
        "  --group-add render --ipc=host \\\n  rocm/pytorch\n"
    )
    unit, started = read(tmp_path, "x.service", text)
    assert [(row.name, row.value) for row in unit.variables] == [("HSA_ENABLE_SDMA", "0"), ("A", "1")]
    assert (started.image, started.launch.devices) == ("rocm/pytorch", ("/dev/dri", "/dev/kfd"))
    assert started.where.rpartition(":")[2] == "5"
    assert rules([started]) == []
    more = "AddDevice=/dev/kfd\nAddDevice=/dev/dri\nPodmanArgs=--group-add keep-groups \\\n  --ipc=host"
    assert rules(read(tmp_path, "a.container", QUADLET.format(more=more))) == []


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "ROCm", "dockerComposeFile": "../compose.rocm.yml", "service": "dev"}',
        '{"image": "rocm/pytorch", "privileged": true, "runArgs": ["--ipc=host"]}',
        '{"name": "ROCm docs", "image": "python:3.12", "postCreateCommand": "pip install -r rocm/docs.txt"}',
        '{"name": "procmon", "build": {"dockerfile": "Dockerfile"}}',
    ],
)
def test_development_container_whose_devices_come_otherwise_or_that_needs_none_is_right(tmp_path, text):
    assert rules(read(tmp_path, "devcontainer.json", text)) == []


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "PyTorch ROCm", "build": {"dockerfile": "Dockerfile"}}',
        '{"build": {"args": {"BASE": "rocm/dev"}}, "runArgs": ["--ipc=host"]}',
        '{"image": "ubuntu", "containerEnv": {"ROCM_PATH": "/opt/rocm"}}',
    ],
)
def test_development_container_that_is_built_for_rocm_needs_devices(tmp_path, text):
    assert rules(read(tmp_path, "devcontainer.json", text))[0] == "no-devices-given"


def test_envrc_is_a_script(tmp_path):
    (subject,) = read(tmp_path, ".envrc", "use flake\nexport HSA_OVERRIDE_GFX_VERSION=10.3.0\n")
    assert [(row.name, row.value) for row in subject.variables] == [("HSA_OVERRIDE_GFX_VERSION", "10.3.0")]


def test_conf_without_sections_holds_variables_and_one_of_another_program_is_refused(tmp_path):
    (subject,) = read(tmp_path, "10-amd.conf", "HSA_ENABLE_SDMA=0\n")
    assert [row.name for row in subject.variables] == ["HSA_ENABLE_SDMA"]
    for text in ("[program:x]\ncommand=x\n", "options amdgpu gttsize=1024\n"):
        with pytest.raises(RocmatrixError) as caught:
            read(tmp_path, "other.conf", text)
        assert caught.value.code == "RM311"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("ROCM_VERSION=6.2\nA=b\nROCM_VERSION=6.3\n", "3"),
        ("A=b\nA=b\n", None),
        ("A=b\nB=c\n", None),
        ("PATH=/a\nPATH=${PATH}:/b\n", None),
    ],
)
def test_variable_that_is_set_twice_is_reported_at_the_later_place(tmp_path, text, line):
    (subject,) = read(tmp_path, "a.env", text)
    found = [(note.rule, note.where.rpartition(":")[2]) for note in subject.notes]
    assert found == ([("set-twice", line)] if line else [])


def test_finding_on_a_variable_shows_no_value(tmp_path):
    (subject,) = read(tmp_path, "a.env", "HF_TOKEN=hf_secretone\nHF_TOKEN=hf_secrettwo\n")
    (note,) = subject.notes
    assert "secret" not in f"{note.what} {note.truth} {note.instead}"


@pytest.mark.parametrize(
    ("file", "found"),
    [("/home/me/app/Dockerfile", True), ("Dockerfile", False), ("../docker/Dockerfile", False)],
)
def test_dockerfile_of_one_machine_is_reported(tmp_path, file, found):
    expected = ["path-of-one-machine"] if found else []
    assert rules(read(tmp_path, "devcontainer.json", f'{{"build": {{"dockerfile": "{file}"}}}}')) == expected
    assert rules(read(tmp_path, "devcontainer.json", f'{{"dockerFile": "{file}"}}')) == expected


def test_number_of_a_group_in_a_quadlet_is_that_of_one_host(tmp_path):
    text = "[Container]\nImage=me/app:1\nAddDevice=/dev/kfd\nAddDevice=/dev/dri\nGroupAdd={}\nShmSize=1g\n"
    text += "[Install]\nWantedBy=multi-user.target\n"
    assert rules(read(tmp_path, "a.container", text.format("992"))) == ["group-number-of-one-host"]
    assert rules(read(tmp_path, "a.container", text.format("keep-groups"))) == []
