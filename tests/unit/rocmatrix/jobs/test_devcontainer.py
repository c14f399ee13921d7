"""The folder is written for a user who is not root, and nobody's own file is overwritten."""

import json
import os
from pathlib import Path

import pytest

from rocmatrix.containers.runspec import Chosen, run_spec
from rocmatrix.host.hardware import read_hardware
from rocmatrix.jobs import devcontainer
from rocmatrix.matrix.resolver.resolve import Request
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures import cells, sysfs
from tests.fixtures.commented_json import without_comments


def cpu_spec(folder, cell=cells.CPU):
    hardware = read_hardware(sysfs.no_driver(folder))
    return run_spec(cell, hardware, Chosen(image="i", command=["smoke"], run_folder=Path("/srv"), user="1000:1000"))


def test_user_is_oneself(monkeypatch):
    monkeypatch.setattr(os, "getuid", lambda: 1234)
    monkeypatch.setattr(os, "getgid", lambda: 56)
    assert devcontainer.user_of(None, environment={}) == "1234:56"


def test_user_under_sudo_is_the_caller(monkeypatch):
    monkeypatch.setattr(os, "getuid", lambda: 0)
    monkeypatch.setattr(os, "getgid", lambda: 0)
    assert devcontainer.user_of(None, environment={"SUDO_UID": "1001", "SUDO_GID": "1002"}) == "1001:1002"
    with pytest.raises(RocmatrixError, match="RM412"):
        devcontainer.user_of(None, environment={"SUDO_UID": "0", "SUDO_GID": "0"})


@pytest.mark.parametrize(
    ("requested", "code"), [("0:0", "RM412"), ("me", "RM404"), ("1000", "RM404"), ("1:²", "RM404")]
)
def test_root_and_names_are_refused(requested, code):
    with pytest.raises(RocmatrixError, match=code):
        devcontainer.user_of(requested)


def test_folder_holds_both_files_and_is_written_again(tmp_path):
    texts = devcontainer.files(cpu_spec(tmp_path / "m"))
    for _ in range(2):
        devcontainer.write(tmp_path / "new" / ".devcontainer", texts)
    written = {path.name: path.read_text() for path in (tmp_path / "new" / ".devcontainer").iterdir()}
    assert written == texts
    dockerfile = json.loads(without_comments(written["devcontainer.json"]))["build"]["dockerfile"]
    assert dockerfile in written


def test_foreign_file_stays(tmp_path):
    (tmp_path / "devcontainer.json").write_text("{}")
    with pytest.raises(RocmatrixError, match="RM413"):
        devcontainer.write(tmp_path, devcontainer.files(cpu_spec(tmp_path / "m")))
    assert (tmp_path / "devcontainer.json").read_text() == "{}"
    assert not (tmp_path / "Dockerfile").exists()


@pytest.mark.parametrize(
    ("commands", "uid", "engine_name", "kind"),
    [
        ({"podman"}, 1000, None, "podman"),
        ({"podman"}, 0, None, None),  # podman of root hands groups on
        ({"docker", "podman"}, 1000, "docker", "docker"),
        ({"docker"}, 1000, None, None),
        (set(), 1000, "podman", "podman"),
    ],
)
def test_engine_of_an_editor_is_podman_where_its_command_stands_alone(monkeypatch, commands, uid, engine_name, kind):
    monkeypatch.setattr(devcontainer.shutil, "which", lambda name: f"/usr/bin/{name}" if name in commands else None)
    monkeypatch.setattr(devcontainer.os, "geteuid", lambda: uid)
    monkeypatch.setattr(devcontainer.engine, "rootless_kind", lambda: engine_name)
    assert devcontainer.rootless_engine() == kind


@pytest.mark.parametrize(
    ("text", "kind"), [('#!/bin/sh\nexec /usr/bin/podman "$@"\n', "podman"), ("\x7fELF podman", None)]
)
def test_docker_that_only_calls_podman_is_podman(tmp_path, monkeypatch, text, kind):
    (tmp_path / "docker").write_text(text)
    monkeypatch.setattr(devcontainer.shutil, "which", lambda name: str(tmp_path / name))
    monkeypatch.setattr(devcontainer.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(devcontainer.engine, "rootless_kind", lambda: None)  # its service is not started
    assert devcontainer.rootless_engine() == kind


def test_dockerfile_arguments_are_all_given(tmp_path):
    texts = devcontainer.files(cpu_spec(tmp_path))
    given = json.loads(without_comments(texts["devcontainer.json"]))["build"]["args"]
    declared = {line.split()[1] for line in texts["Dockerfile"].splitlines() if line.startswith("ARG ")}
    assert set(given) == declared


def test_smoke_leaves_out_the_two_card_step_on_one_card(tmp_path):
    request = Request(rocm=None, torch=None, gpu=None, cell=None)
    one = devcontainer.smoke_argv(cells.GFX906, read_hardware(sysfs.mi50(tmp_path / "one")), request)
    two = devcontainer.smoke_argv(cells.GFX1100, read_hardware(sysfs.two_rx_7900_xt(tmp_path / "two")), request)
    assert one[:5] == two[:5] == ["python", "-P", "-m", "trainer", "smoke"]
    assert ("--probe=amp" in one, "--probe=amp" in two) == (True, False)
    assert "--expect=rocm" in one
