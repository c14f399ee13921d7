"""Every emitter carries every setting, quotes what its reader would misread, and agrees with the golden files."""

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rocmatrix.containers import emit
from rocmatrix.containers.runspec import RUN_FOLDER, Chosen, RunSpec, portable_spec, run_spec
from rocmatrix.containers.settings import (
    AddCapability,
    CdiDevice,
    Device,
    DropCapability,
    Environment,
    Group,
    Init,
    Ipc,
    Limit,
    Mount,
    Network,
    Port,
    ReadOnlyRoot,
    SecurityOption,
    Setting,
    SharedMemory,
    Tmpfs,
    User,
)
from rocmatrix.host.hardware import survey
from tests.fixtures import cells, sysfs
from tests.fixtures.golden import assert_golden

WHY = {"reason": "r", "source": "s"}
TEXT = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=12)
PATHS = TEXT.map(lambda name: "/" + name.replace("/", "_"))
NUMBERS = st.integers(min_value=1, max_value=2**40)
NAMES = st.from_regex(r"[A-Z][A-Z0-9_]{0,8}", fullmatch=True)


def rows(cls, /, **fields):
    return st.builds(cls, **fields, reason=st.just("r"), source=st.just("s"))


KINDS = {
    User: rows(User, value=st.just("1000:1000")),
    Device: rows(Device, host=PATHS, container=PATHS),
    CdiDevice: rows(CdiDevice, value=NUMBERS.map("amd.com/gpu={}".format)),
    Group: rows(Group, gid=NUMBERS),
    Environment: rows(Environment, name=NAMES, content=TEXT),
    Mount: rows(Mount, kind=st.sampled_from(["bind", "volume"]), origin=PATHS, target=PATHS, read_only=st.booleans()),
    Tmpfs: rows(Tmpfs, target=PATHS, bytes=NUMBERS, mode=st.just("1777")),
    SharedMemory: rows(SharedMemory, bytes=NUMBERS),
    Limit: rows(Limit, name=st.just("memlock"), soft=st.just(-1), hard=st.just(-1)),
    Network: rows(Network, value=st.sampled_from(["none", "bridge", "host"])),
    Port: rows(Port, address=st.just("127.0.0.1"), host=st.integers(1, 65535), container=st.integers(1, 65535)),
    Ipc: rows(Ipc, value=st.just("host")),
    DropCapability: rows(DropCapability, value=st.just("ALL")),
    AddCapability: rows(AddCapability, value=st.just("SYS_PTRACE")),
    SecurityOption: rows(SecurityOption, value=st.just("no-new-privileges:true")),
    ReadOnlyRoot: rows(ReadOnlyRoot),
    Init: rows(Init),
}
ONCE = (User, SharedMemory, Network, Ipc, ReadOnlyRoot, Init, Limit, Tmpfs)


@st.composite
def specs(draw):
    settings = [draw(KINDS[kind]) for kind in ONCE if draw(st.booleans())]
    for kind in set(KINDS) - set(ONCE):
        settings += draw(st.lists(KINDS[kind], max_size=3, unique_by=identity))
    command = tuple(draw(st.lists(TEXT, max_size=3)))
    entrypoint = draw(st.none() | TEXT)
    return RunSpec(cell="c", image="i", command=command, settings=tuple(settings), entrypoint=entrypoint)


def identity(setting):
    return getattr(setting, "name", None) or getattr(setting, "target", None) or setting.value


PLAIN = {
    "user": "--user",
    "shm_size": "--shm-size",
    "network_mode": "--network",
    "ipc_mode": "--ipc",
    "ipc": "--ipc",
}
LISTED = {
    "devices": "--device",
    "group_add": "--group-add",
    "cap_drop": "--cap-drop",
    "cap_add": "--cap-add",
    "security_opt": "--security-opt",
    "ports": "--publish",
    "entrypoint": "--entrypoint",  # a list of one, for SDK and compose take a text apart as a shell does
}


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


def from_compose(document):
    """Say a compose file's service as options of `docker run`, written apart from the emitter."""
    service = document["services"]["train"]
    assert service.pop("pull_policy") == "never"
    reserved = service.pop("deploy", {"resources": {"reservations": {"devices": []}}})["resources"]["reservations"]
    cdi = [f"--device={device['device_ids'][0]}" for device in reserved["devices"] if device["driver"] == "cdi"]
    ulimits = [f"--ulimit={name}={u['soft']}:{u['hard']}" for name, u in service.pop("ulimits", {}).items()]
    tmpfs = [f"--tmpfs={entry}" for entry in service.pop("tmpfs", [])]
    mounts = []
    for volume in service.pop("volumes", []):
        origin = volume["source"] if volume["type"] == "bind" else document["volumes"][volume["source"]]["name"]
        mounts.append((volume["type"], origin, volume["target"], volume.get("read_only", False)))
    return cdi + ulimits + tmpfs + list(map(mount_option, mounts)) + common(service)


def common(arguments):
    options = []
    for key, value in arguments.items():
        if key in PLAIN:
            options.append(f"{PLAIN[key]}={value}")
        elif key in LISTED:
            options += [f"{LISTED[key]}={item}" for item in value]
        elif key == "environment":
            options += [f"--env={name}={content}" for name, content in value.items()]
        elif key in ("read_only", "init"):
            options.append(f"--{key.replace('_', '-')}={str(value).lower()}")
        else:
            assert key in ("image", "command"), key
    return options


def mount_option(mount):
    kind, origin, target, read_only = mount
    return f"--mount={[f'type={kind}', f'source={origin}', f'target={target}'] + ['readonly'] * read_only}"


def parsed(option):
    """Take a mount's CSV apart as the engine does; any other option is compared as it stands."""
    flag, _, value = option.partition("=")
    return f"{flag}={next(csv.reader([value]))}" if flag == "--mount" else option


def test_strategies_know_every_kind():
    assert set(KINDS) == set(get_args(Setting))


@given(specs())
def test_command_line_and_sdk_carry_every_setting_and_the_same(spec):
    options = emit.docker_options(spec)
    assert len(options) == len(spec.settings) + bool(spec.entrypoint)
    assert sorted(map(parsed, options)) == sorted(from_sdk(emit.docker_sdk_arguments(spec)))


@given(specs())
def test_compose_carries_every_setting_through_yaml(spec):
    document = yaml.safe_load(emit.compose_file(spec))
    found = [option.replace("$$", "$") for option in from_compose(document)]
    assert sorted(found) == sorted(map(parsed, emit.docker_options(spec)))
    command = document["services"]["train"].get("command", [])
    assert [word.replace("$$", "$") for word in command] == list(spec.command)


def example(kind):
    fields = {
        User: {"value": "1:1"},
        Device: {"host": "/d", "container": "/d"},
        Group: {"gid": 7},
        Environment: {"name": "A", "content": "b"},
        Mount: {"kind": "bind", "origin": "/a", "target": "/b", "read_only": False},
        Tmpfs: {"target": "/t", "bytes": 1, "mode": "1777"},
        SharedMemory: {"bytes": 1},
        Limit: {"name": "memlock", "soft": -1, "hard": -1},
        Network: {"value": "none"},
        DropCapability: {"value": "ALL"},
        SecurityOption: {"value": "no-new-privileges:true"},
    }
    return kind(**fields.get(kind, {}), **WHY)


def test_setting_given_twice_is_refused():
    spec = RunSpec(cell="c", image="i", command=(), settings=(example(User), example(User)))
    with pytest.raises(ValueError, match="user is set twice"):
        emit.docker_sdk_arguments(spec)


def test_comma_in_a_path_is_quoted():
    mount = replace(example(Mount), origin='/srv/a,b "c"')
    assert next(csv.reader([mount.value])) == ["type=bind", 'source=/srv/a,b "c"', "target=/b"]


@pytest.mark.parametrize("content", ["1e3", "0o17", "no", "~", "12:30:45", "$HOME", "", "a: b", "-x", "0x1F"])
def test_text_that_yaml_could_misread_stays_text(content):
    spec = RunSpec(cell="c", image="i", command=(), settings=(replace(example(Environment), content=content),))
    text = emit.compose_file(spec)
    assert yaml.safe_load(text)["services"]["train"]["environment"]["A"] == content.replace("$", "$$")


def host_spec(machine, cell):
    output = f"--output={RUN_FOLDER}"
    return run_spec(
        cell,
        survey(machine),
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


@pytest.mark.parametrize(("name", "cell"), [("cpu", cells.CPU), ("gfx1100", cells.GFX1100)])
def test_portable_compose_file_equals_the_reviewed_one(name, cell):
    assert_golden(f"run/portable-{name}.compose.yaml", emit.compose_file(portable_spec(cell)))


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


def test_portable_spec_is_no_command():
    spec = portable_spec(cells.GFX1100)
    for emitter in (emit.docker_run_argv, emit.docker_sdk_arguments):
        with pytest.raises(ValueError, match="compose variables"):
            emitter(spec)


def test_command_and_image_close_the_command_line(tmp_path):
    argv = emit.docker_run_argv(host_spec(sysfs.no_driver(tmp_path), cells.CPU))
    assert argv[:4] == ["docker", "run", "--rm", "--pull=never"]
    assert argv[-3:] == [f"rocmatrix:{cells.CPU.name}", "train", f"--output={RUN_FOLDER}"]
    assert all(option.startswith("--") for option in argv[2:-3])
