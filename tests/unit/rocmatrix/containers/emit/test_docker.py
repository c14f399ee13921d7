"""Every emitter carries every setting, quotes what its reader would misread, and agrees with the golden files."""

import json
from pathlib import Path
from typing import get_args

import pytest
import yaml
from hypothesis import given

from rocmatrix.containers.emit.compose import compose_file
from rocmatrix.containers.emit.docker import (
    TARGETS,
    docker_options,
    docker_rows,
    docker_run_argv,
    docker_sdk_arguments,
)
from rocmatrix.containers.emit.target import Host
from rocmatrix.containers.runspec import RUN_FOLDER, Chosen, RunSpec, portable_spec, run_spec
from rocmatrix.containers.settings import Environment, Mount, Port, Setting
from rocmatrix.host.hardware import read_hardware
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures import cells, sysfs
from tests.fixtures.golden import assert_golden
from tests.fixtures.run_specs import KINDS, WHY, common, mount_option, parsed, specs


def from_sdk(arguments):
    """Return the SDK's arguments as options of `docker run`, written apart from the emitter."""
    arguments = dict(arguments)
    ulimits = [f"--ulimit={u['Name']}={u['Soft']}:{u['Hard']}" for u in arguments.pop("ulimits", [])]
    tmpfs = [f"--tmpfs={target}:{choices}" for target, choices in arguments.pop("tmpfs", {}).items()]
    cdi = [f"--device={r['DeviceIDs'][0]}" for r in arguments.pop("device_requests", []) if r["Driver"] == "cdi"]
    mounts = [(m["Type"], m["Source"], m["Target"], m.get("ReadOnly", False)) for m in arguments.pop("mounts", [])]
    ports = [
        f"--publish={p['HostIp']}:{p['HostPort']}:{inside.removesuffix('/tcp')}"
        for inside, published in arguments.pop("ports", {}).items()
        for p in published
    ]
    return cdi + ulimits + tmpfs + ports + list(map(mount_option, mounts)) + common(arguments)


def test_strategies_know_every_kind():
    assert set(KINDS) == set(get_args(Setting))


@given(specs())
def test_command_line_and_sdk_carry_every_setting_and_the_same(spec):
    options = docker_options(spec)
    assert len(options) == len(spec.settings) + bool(spec.entrypoint)
    assert sorted(map(parsed, options)) == sorted(from_sdk(docker_sdk_arguments(spec)))


def host_spec(machine, cell):
    output = f"--output={RUN_FOLDER}"
    return run_spec(
        cell,
        read_hardware(machine),
        Chosen(
            image=f"rocmatrix:{cell.name}",
            command=["train", output],
            run_folder=Path("/srv/training"),
            user="1000:1000",
        ),
    )


GOLDEN = {
    "cpu": (sysfs.no_driver, cells.CPU),
    "two-rx-7900-xt": (sysfs.two_rx_7900_xt, cells.GFX1100),
    "mi50": (sysfs.mi50, cells.GFX906),
    "desktop-with-igpu": (sysfs.desktop_with_igpu, cells.GFX1100),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_emitted_texts_equal_the_reviewed_ones(tmp_path, name):
    build, cell = GOLDEN[name]
    spec = host_spec(build(tmp_path), cell)
    assert_golden(f"run/{name}.argv", "\n".join(docker_run_argv(spec)) + "\n")
    assert_golden(f"run/{name}.sdk.json", json.dumps(docker_sdk_arguments(spec), indent=2) + "\n")
    assert_golden(f"run/{name}.compose.yaml", compose_file(spec))


def test_groups_are_numbers_and_differ_between_hosts_in_every_emitter(tmp_path):
    texts = {}
    for gid in (109, 992):
        spec = host_spec(sysfs.two_rx_7900_xt(tmp_path / str(gid), render_gid=gid), cells.GFX1100)
        sdk = docker_sdk_arguments(spec)["group_add"]
        file = yaml.safe_load(compose_file(spec))["services"]["train"]["group_add"]
        assert f"--group-add={gid}" in docker_run_argv(spec)
        assert sdk == file == [str(gid)]
        texts[gid] = compose_file(spec)
    assert texts[109] != texts[992]


def test_command_and_image_close_the_command_line(tmp_path):
    argv = docker_run_argv(host_spec(sysfs.no_driver(tmp_path), cells.CPU))
    assert argv[:4] == ["docker", "run", "--rm", "--pull=never"]
    assert argv[-3:] == [f"rocmatrix:{cells.CPU.name}", "train", f"--output={RUN_FOLDER}"]
    assert all(option.startswith("--") for option in argv[2:-3])


def spec_of(*settings, **fields):
    return RunSpec(**{"cell": "c", "image": "i", "command": ()} | fields, settings=settings)


@pytest.mark.parametrize("emit", [docker_run_argv, docker_options, docker_sdk_arguments])
def test_portable_spec_is_refused_by_an_engine_of_one_host(emit):
    with pytest.raises(ValueError, match="portable"):
        emit(portable_spec(cells.CPU))


def test_passed_variable_is_named_on_the_command_line_and_refused_by_the_sdk():
    spec = spec_of(Environment(name="HF_TOKEN", content="", passed=True, **WHY))
    assert "--env=HF_TOKEN" in docker_options(spec)
    with pytest.raises(RocmatrixError, match="RM111") as refused:
        docker_sdk_arguments(spec)
    assert "HF_TOKEN" in refused.value.what


def test_entrypoint_is_one_word_for_the_sdk():
    assert docker_sdk_arguments(spec_of(entrypoint="a b"))["entrypoint"] == ["a b"]
    assert "entrypoint" not in docker_sdk_arguments(spec_of())


def test_mount_is_read_only_where_it_is_requested():
    mounts = [Mount(kind="bind", origin="/a", target="/b", read_only=only, **WHY) for only in (True, False)]
    first, second = docker_sdk_arguments(spec_of(*mounts))["mounts"]
    assert first == {"Type": "bind", "Source": "/a", "Target": "/b", "ReadOnly": True}
    assert "ReadOnly" not in second


def test_port_is_one_binding_of_address_and_number():
    found = docker_sdk_arguments(spec_of(Port(address="127.0.0.1", host=8888, container=80, **WHY)))
    assert json.loads(json.dumps(found["ports"])) == {"80/tcp": [{"HostIp": "127.0.0.1", "HostPort": "8888"}]}


def test_rows_explain_each_option_of_the_command_line_in_its_order():
    spec = spec_of(Environment(name="A", content="b", **WHY), entrypoint="python", command=("own.py",))
    assert [row.option for row in docker_rows(spec)] == docker_run_argv(spec)[2:-2]
    assert all(row.reason and row.source for row in docker_rows(spec))


def test_target_prints_the_command_quoted_for_a_shell():
    spec = spec_of(command=("train", "--run=a b"))
    host = Host(hardware=None)
    assert TARGETS["docker"].text(spec, host) == "docker run --rm --pull=never i train '--run=a b'\n"
    assert json.loads(TARGETS["docker-sdk"].text(spec, host))["command"] == ["train", "--run=a b"]
