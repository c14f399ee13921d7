"""A CDI file in the folder of a real engine. Nodes and their kind are STAND-INS: no real card's name is touched."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from rocmatrix.containers import emit
from rocmatrix.containers.emit import cdi
from rocmatrix.containers.settings import Group
from tests.fixtures.small_image import GID, GROUP, TRY_TO_OPEN, UID, output, spec_for

pytestmark = pytest.mark.container

KIND = "rocmatrix.test/stand-in"
LOOK = ["sh", "-c", f"id -G; id -u; ls /dev/dri; {TRY_TO_OPEN}", "sh", "/dev/kfd", "/dev/dri/renderD129"]
SEEN = [f"{GID} {GROUP}", f"{UID}", "renderD129", "/dev/kfd open", "/dev/dri/renderD129 open"]


@pytest.fixture
def by_name(client, stand_ins, monkeypatch):
    """Write the specification of the stand-in cards where the engine reads it; return what asks for them by name."""
    folders = [Path(folder) for folder in client.info().get("CDISpecDirs") or ()]
    if not folders:
        pytest.skip("this engine was started without its feature cdi")
    hardware, places = stand_ins
    monkeypatch.setattr(cdi, "KIND", KIND)
    file = folders[-1] / f"rocmatrix-test-{os.getpid()}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(from_places(cdi.specification(hardware), places)))
    yield lambda spec: cdi.by_name(spec, hardware), hardware
    file.unlink()


def from_places(specification, places):
    """Take each node from the place of its stand-in; inside the container it has its own name."""
    for device in specification["devices"]:
        for node in device["containerEdits"]["deviceNodes"]:
            node["hostPath"] = places[node["path"]]
    return specification


def test_engine_gives_the_named_card_and_no_other(client, small, run_folder, by_name):
    named, hardware = by_name
    spec = named(spec_for(hardware, run_folder, LOOK, cards=[1]))
    status, text = output(client, spec)
    assert (status, text.splitlines()) == (0, SEEN)


def test_command_line_gives_the_same(client, small, run_folder, by_name):
    named, hardware = by_name
    argv = emit.docker_run_argv(named(spec_for(hardware, run_folder, LOOK, cards=[1])))
    assert f"--device={KIND}=1" in argv
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == SEEN, done.stderr


def test_compose_gives_the_same(client, small, run_folder, by_name, tmp_path):
    named, hardware = by_name
    file = tmp_path / "compose.yaml"
    file.write_text(emit.compose_file(named(spec_for(hardware, run_folder, LOOK, cards=[1]))))
    compose = ["docker", "compose", "--file", str(file)]
    done = subprocess.run([*compose, "run", "--rm", "--no-TTY", "train"], capture_output=True, text=True, check=False)
    subprocess.run([*compose, "down", "--volumes"], capture_output=True, check=True)
    assert done.stdout.splitlines() == SEEN, done.stderr


def test_card_without_the_numeric_group_stays_closed(client, small, run_folder, by_name):
    named, hardware = by_name
    spec = named(spec_for(hardware, run_folder, ["sh", "-c", TRY_TO_OPEN, "sh", "/dev/kfd"]))
    bare = type(spec)(**vars(spec) | {"settings": tuple(s for s in spec.settings if not isinstance(s, Group))})
    assert output(client, bare) == (0, "/dev/kfd closed\n")


def test_name_that_no_file_knows_is_refused(client, small, run_folder, stand_ins, monkeypatch):
    hardware, _ = stand_ins
    monkeypatch.setattr(cdi, "KIND", "rocmatrix.test/absent")
    argv = emit.docker_run_argv(cdi.by_name(spec_for(hardware, run_folder, ["sh"], cards=[0]), hardware))
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 125
    assert "rocmatrix.test/absent=0" in done.stderr
