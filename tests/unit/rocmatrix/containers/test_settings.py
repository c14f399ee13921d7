"""A row of a spec spells its setting as `docker run` does."""

import csv

import pytest
from hypothesis import given

from rocmatrix.containers.settings import (
    UNLIMITED,
    Device,
    Environment,
    Group,
    HostText,
    Limit,
    Mount,
    Port,
    SharedMemory,
    Tmpfs,
)
from tests.fixtures.run_specs import KINDS, WHY


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        (Device(host="/dev/kfd", container="/dev/kfd0", **WHY), "/dev/kfd:/dev/kfd0:rw"),
        (Group(gid=992, **WHY), "992"),
        (Group(gid=HostText("${GID}"), **WHY), "${GID}"),
        (Environment(name="A", content="b=c", **WHY), "A=b=c"),
        (Environment(name="TOKEN", content="", passed=True, **WHY), "TOKEN"),
        (Tmpfs(target="/tmp", bytes=7, mode="1777", **WHY), "/tmp:rw,noexec,nosuid,nodev,size=7,mode=1777"),
        (SharedMemory(bytes=64, **WHY), "64"),
        (Limit(name="memlock", soft=5, hard=UNLIMITED, **WHY), "memlock=5:-1"),
        (Port(address="127.0.0.1", host=8080, container=80, **WHY), "127.0.0.1:8080:80"),
    ],
)
def test_value_is_in_the_notation_of_docker_run(setting, value):
    assert setting.value == value


def test_comma_in_a_path_is_quoted():
    mount = Mount(kind="bind", origin='/srv/a,b "c"', target="/b", read_only=False, **WHY)
    assert next(csv.reader([mount.value])) == ["type=bind", 'source=/srv/a,b "c"', "target=/b"]


@pytest.mark.parametrize("place", ["/a\nb/c", "/a\rb", "/\n"])
def test_end_of_a_line_in_a_path_stays_in_its_field(place):
    mount = Mount(kind="bind", origin=place, target="/b", read_only=True, **WHY)
    assert f'"source={place}"' in mount.value
    assert mount.value.endswith("target=/b,readonly")


@given(KINDS[Mount])
def test_mount_is_read_only_where_its_last_field_states_it(mount):
    fields = next(csv.reader([mount.value]))
    assert fields[:3] == [f"type={mount.kind}", f"source={mount.origin}", f"target={mount.target}"]
    assert fields[3:] == ["readonly"] * mount.read_only
