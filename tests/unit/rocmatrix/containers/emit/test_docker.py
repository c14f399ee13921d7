"""Every emitter carries every setting, quotes what its reader would misread, and agrees with the golden files."""

import json
from pathlib import Path
from typing import get_args

import pytest
import yaml
from hypothesis import given

from rocmatrix.containers import emit
from rocmatrix.containers.runspec import RUN_FOLDER, Chosen, run_spec
from rocmatrix.containers.settings import (
    Setting,
)
from rocmatrix.host.hardware import read_hardware
from tests.fixtures import cells, sysfs
from tests.fixtures.golden import assert_golden
from tests.fixtures.run_specs import KINDS, common, mount_option, parsed, specs


def from_sdk(arguments):
    """Say the SDK's arguments as options of `docker run`, written apart from the emitter."""
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
    options = emit.docker_options(spec)
    assert len(options) == len(spec.settings) + bool(spec.entrypoint)
    assert sorted(map(parsed, options)) == sorted(from_sdk(emit.docker_sdk_arguments(spec)))


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
    assert_golden(f"run/{name}.argv", "\n".join(emit.docker_run_argv(spec)) + "\n")
    assert_golden(f"run/{name}.sdk.json", json.dumps(emit.docker_sdk_arguments(spec), indent=2) + "\n")
    assert_golden(f"run/{name}.compose.yaml", emit.compose_file(spec))


def test_groups_are_numbers_and_differ_between_hosts_in_every_emitter(tmp_path):
    texts = {}
    for gid in (109, 992):
        spec = host_spec(sysfs.two_rx_7900_xt(tmp_path / str(gid), render_gid=gid), cells.GFX1100)
        sdk = emit.docker_sdk_arguments(spec)["group_add"]
        file = yaml.safe_load(emit.compose_file(spec))["services"]["train"]["group_add"]
        assert f"--group-add={gid}" in emit.docker_run_argv(spec)
        assert sdk == file == [str(gid)]
        texts[gid] = emit.compose_file(spec)
    assert texts[109] != texts[992]


def test_command_and_image_close_the_command_line(tmp_path):
    argv = emit.docker_run_argv(host_spec(sysfs.no_driver(tmp_path), cells.CPU))
    assert argv[:4] == ["docker", "run", "--rm", "--pull=never"]
    assert argv[-3:] == [f"rocmatrix:{cells.CPU.name}", "train", f"--output={RUN_FOLDER}"]
    assert all(option.startswith("--") for option in argv[2:-3])
