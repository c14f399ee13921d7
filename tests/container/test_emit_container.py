"""What an engine makes of the emitters. Device nodes are STAND-INS: harmless nodes of this machine, made by mknod.

The image holds this machine's own shell and a few of its programs, so nothing is pulled.
"""

import json
import os
import stat
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from rocmatrix.containers import emit
from rocmatrix.containers.runspec import portable_spec
from rocmatrix.containers.settings import Group
from rocmatrix.host.hardware import read_hardware
from tests.fixtures import cells, sysfs
from tests.fixtures.small_image import (
    GID,
    GROUP,
    TRY_TO_OPEN,
    TRY_TO_WRITE,
    UID,
    on_stand_ins,
    output,
    remove_volumes,
    spec_for,
)

pytestmark = pytest.mark.container


def made_of(engine, identity):
    """Return what the engine recorded, without what only the typing terminal decides."""
    about = engine.api.inspect_container(identity)
    host = {key: value or None for key, value in about["HostConfig"].items() if key != "ConsoleSize"}
    host["Mounts"] = sorted(json.dumps(mount, sort_keys=True) for mount in host["Mounts"] or ())
    config = about["Config"]
    return host | {key: config[key] for key in ("User", "Cmd", "Image")} | {"Env": sorted(config["Env"])}


HOSTS = {
    "cpu": (sysfs.no_driver, cells.CPU, {}),
    "two cards": (sysfs.two_rx_7900_xt, cells.GFX1100, {}),
    "one card of two": (sysfs.two_rx_7900_xt, cells.GFX1100, {"cards": [1], "features": ["network"]}),
    "mi50": (sysfs.mi50, cells.GFX906, {"environment": {"A": "$HOME, 'b'"}}),
}


@pytest.mark.parametrize("name", HOSTS)
def test_command_line_and_sdk_make_the_same_container(client, small, run_folder, tmp_path, name):
    build, cell, choices = HOSTS[name]
    data = tmp_path / "bars, daily.csv"
    data.touch()
    hardware = read_hardware(build(tmp_path / "machine"))
    spec = spec_for(hardware, run_folder, ["sh", "-c", "$x"], cell, data=data, **choices)
    argv = ["docker", "create", *emit.docker_options(spec), spec.image, *spec.command]
    typed = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert typed.returncode == 0, typed.stderr
    created = client.containers.create(**emit.docker_sdk_arguments(spec))
    try:
        by_sdk, by_hand = made_of(client, created.id), made_of(client, typed.stdout.strip())
        assert by_sdk == by_hand
        assert by_sdk["CapDrop"] == ["ALL"]
        assert by_sdk["ReadonlyRootfs"]
    finally:
        created.remove(force=True, v=True)
        client.api.remove_container(typed.stdout.strip(), force=True, v=True)
        remove_volumes(client, spec)


def test_arbitrary_user_opens_the_nodes_it_was_given_and_no_others(client, small, run_folder, stand_ins):
    hardware, places = stand_ins
    smuggled = run_folder / "kfd"
    os.mknod(smuggled, stat.S_IFCHR, Path(places["/dev/dri/renderD129"]).stat().st_rdev)
    smuggled.chmod(0o666)
    nodes = ["/dev/kfd", "/dev/dri/renderD128", "/dev/dri/renderD129", "/training/kfd"]
    spec = spec_for(hardware, run_folder, ["sh", "-c", f"id -G; ls /dev/dri; {TRY_TO_OPEN}", "sh", *nodes], cards=[0])
    status, text = output(client, on_stand_ins(spec, places))
    assert status == 0, text
    assert text.splitlines() == [
        f"{GID} {GROUP}",
        "renderD128",
        "/dev/kfd open",
        "/dev/dri/renderD128 open",
        "/dev/dri/renderD129 closed",
        "/training/kfd closed",
    ]


def test_nodes_without_the_numeric_group_are_closed(client, small, run_folder, stand_ins):
    hardware, places = stand_ins
    spec = spec_for(hardware, run_folder, ["sh", "-c", TRY_TO_OPEN, "sh", "/dev/kfd"])
    kept = tuple(setting for setting in spec.settings if not isinstance(setting, Group))
    status, text = output(client, on_stand_ins(replace(spec, settings=kept), places))
    assert (status, text) == (0, "/dev/kfd closed\n")


def test_root_can_make_no_node_of_its_own(client, small, run_folder, stand_ins):
    hardware, places = stand_ins
    spec = spec_for(hardware, run_folder, ["mknod", "/tmp/kfd", "c", "10", "237"], user="0:0")
    status, text = output(client, on_stand_ins(spec, places))
    assert status != 0
    assert "Operation not permitted" in text


def test_arbitrary_user_writes_where_it_should_and_nowhere_else(client, small, run_folder, tmp_path):
    data = tmp_path / "bars.csv"
    data.touch()
    data.chmod(0o666)
    places = ["/training/a", "/cache/a", "/tmp/a", "/dev/shm/a", "/a", "/data/bars.csv"]
    hardware = read_hardware(sysfs.no_driver(tmp_path / "machine"))
    spec = spec_for(hardware, run_folder, ["sh", "-c", TRY_TO_WRITE, "sh", *places], cells.CPU, data=data)
    status, text = output(client, spec)
    assert status == 0, text
    verdicts = dict(line.split() for line in text.splitlines())
    assert verdicts == dict.fromkeys(places[:4], "written") | dict.fromkeys(places[4:], "kept")
    assert (run_folder / "a").stat().st_uid == UID


def compose(*arguments, file, **environment):
    argv = ["docker", "compose", "--file", str(file), *arguments]
    return subprocess.run(argv, capture_output=True, text=True, env=os.environ | environment, check=False)


def test_compose_runs_the_same_spec(client, small, run_folder, stand_ins, tmp_path):
    hardware, places = stand_ins
    command = ["sh", "-c", f"id -G; id -u; {TRY_TO_OPEN}", "sh", "/dev/kfd", "/dev/dri/renderD129"]
    file = tmp_path / "compose.yaml"
    file.write_text(emit.compose_file(on_stand_ins(spec_for(hardware, run_folder, command, cards=[0]), places)))
    try:
        done = compose("run", "--rm", "--no-TTY", "train", file=file)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines() == [f"{GID} {GROUP}", f"{UID}", "/dev/kfd open", "/dev/dri/renderD129 closed"]
    finally:
        compose("down", "--volumes", file=file)


RIGHTS = [
    *("User", "GroupAdd", "Devices", "CapAdd", "CapDrop", "SecurityOpt", "Privileged", "ReadonlyRootfs"),
    *("NetworkMode", "Tmpfs", "ShmSize", "Ulimits", "Init", "Env"),
]


def test_compose_makes_a_container_with_the_same_rights(client, small, run_folder, tmp_path):
    environment = {"A": "$HOME", "B": "1e3"}
    hardware = read_hardware(sysfs.mi50(tmp_path / "machine"))
    spec = spec_for(hardware, run_folder, ["sh"], cells.GFX906, environment=environment)
    file = tmp_path / "compose.yaml"
    file.write_text(emit.compose_file(spec))
    created = client.containers.create(**emit.docker_sdk_arguments(spec))
    try:
        done = compose("create", file=file)
        assert done.returncode == 0, done.stderr
        by_compose = made_of(client, compose("ps", "--all", "--quiet", file=file).stdout.strip())
        by_sdk = made_of(client, created.id)
        assert {key: by_compose[key] for key in RIGHTS} == {key: by_sdk[key] for key in RIGHTS}
    finally:
        created.remove(force=True, v=True)
        compose("down", "--volumes", file=file)
        remove_volumes(client, spec)


def portable_file(cell, folder):
    """Return the rendered file of a cell, and the variables it needs."""
    file = folder / "compose.yaml"
    file.write_text(emit.compose_file(portable_spec(cell)))
    needed = {"ROCMATRIX_UID": "1000", "ROCMATRIX_GID": "1000", "ROCMATRIX_RUN_FOLDER": str(folder)}
    return file, needed | ({"ROCMATRIX_RENDER_GID": "992", "ROCMATRIX_CARDS": "0"} if cell.architecture else {})


@pytest.mark.parametrize("cell", cells.MATRIX.cells, ids=lambda cell: cell.name)
def test_portable_file_is_valid_once_its_variables_are_set(client, cell, tmp_path):
    file, needed = portable_file(cell, tmp_path)
    done = compose("config", "--quiet", file=file, **needed)
    assert done.returncode == 0, done.stderr


def test_host_with_a_group_for_kfd_alone_can_name_it(client, tmp_path):
    file, needed = portable_file(cells.GFX906, tmp_path)
    done = compose("config", "--format", "json", file=file, **needed, ROCMATRIX_KFD_GID="44")
    assert json.loads(done.stdout)["services"]["train"]["group_add"] == ["992", "44"]


@pytest.mark.parametrize("cell", [cells.CPU, cells.GFX1100], ids=lambda cell: cell.name)
def test_portable_file_names_each_variable_that_is_not_set(client, cell, tmp_path):
    file, needed = portable_file(cell, tmp_path)
    for name in needed:
        others = {key: value for key, value in needed.items() if key != name}
        done = compose("config", "--quiet", file=file, **others)
        assert done.returncode != 0
        assert f"required variable {name} is missing a value" in done.stderr
