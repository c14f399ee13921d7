"""What each target is told, looked at once: two hosts whose render groups differ, numbers and never names."""

import json
import re
import shlex
from pathlib import Path

import pytest

from rocmatrix.cli.commands.run import Run
from rocmatrix.containers.emit.podman import missing_groups
from rocmatrix.containers.emit.target import NO_SPEC, Host, known, target
from rocmatrix.containers.runspec import Chosen, run_spec
from rocmatrix.host.hardware import read_hardware
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.option import options_of
from tests.fixtures import cells, sysfs
from tests.fixtures.golden import assert_golden

HOSTS = {  # two RX 7900 XT in group 992; an MI50 in group 109, whose /dev/kfd has group 44
    "two-rx-7900-xt": (sysfs.two_rx_7900_xt, cells.GFX1100, [992]),
    "mi50": (sysfs.mi50, cells.GFX906, [44, 109]),
}
SUFFIX = {"docker-sdk": "json", "compose": "yaml", "cdi": "json", "devcontainer": "json"}
TARGETS = known()
NAMES = re.compile(r"group[-_a-z\"' =:]*(render|video)\b", re.IGNORECASE)


def host_and_spec(folder, name):
    machine, cell, _ = HOSTS[name]
    hardware = read_hardware(machine(folder))
    spec = run_spec(
        cell,
        hardware,
        Chosen(
            image=f"rocmatrix:{cell.name}",
            entrypoint="python",
            command=["-m", "trainer", "smoke"],
            run_folder=Path("/srv/training"),
            user="1000:1000",
        ),
    )
    return hardware, spec


@pytest.mark.parametrize("rootless", [False, True], ids=["root", "rootless"])
@pytest.mark.parametrize("name", HOSTS)
@pytest.mark.parametrize("where", TARGETS)
def test_texts_equal_the_reviewed_ones(tmp_path, where, name, rootless):
    hardware, spec = host_and_spec(tmp_path, name)
    text = TARGETS[where].text(spec, Host(hardware=hardware, rootless=rootless, selinux=rootless))
    kind = "-rootless" if rootless and where == "podman" else ""
    assert_golden(f"targets/{name}.{where}{kind}.{SUFFIX.get(where, 'txt')}", text)
    assert not NAMES.search(text)
    if not kind:  # a rootless engine keeps the user's own groups, and takes no number
        assert all(str(gid) in text for gid in HOSTS[name][2])


@pytest.mark.parametrize("name", HOSTS)
@pytest.mark.parametrize("where", TARGETS)
def test_rows_of_every_target_have_a_reason_and_a_source(tmp_path, where, name):
    hardware, spec = host_and_spec(tmp_path, name)
    rows = TARGETS[where].rows(spec, Host(hardware=hardware, rootless=True, selinux=True))
    assert rows
    for row in rows:
        assert row.reason.strip(), row
        assert row.source.strip(), row


@pytest.mark.parametrize("rootless", [False, True], ids=["root", "rootless"])
@pytest.mark.parametrize("where", ["docker", "podman"])
def test_options_of_a_command_have_a_reason(tmp_path, where, rootless):
    hardware, spec = host_and_spec(tmp_path, "mi50")
    host = Host(hardware=hardware, rootless=rootless, selinux=rootless)
    words = shlex.split(TARGETS[where].text(spec, host))
    options = words[2 : words.index(spec.image)]
    assert options == [row.option for row in TARGETS[where].rows(spec, host) if row.value is not None]


@pytest.mark.parametrize("where", [name for name, each in TARGETS.items() if each.host_alone])
def test_targets_that_need_only_the_host_exist(tmp_path, where):
    hardware, spec = host_and_spec(tmp_path, "mi50")
    host = Host(hardware=hardware)
    assert TARGETS[where].text(NO_SPEC, host) == TARGETS[where].text(spec, host)
    assert json.loads(TARGETS[where].text(NO_SPEC, host))


def test_targets_are_those_that_the_option_names():
    words = options_of(Run)["target"].help.partition(": ")[2]
    assert set(re.split(r", | or ", words)) == set(TARGETS)
    assert [name for name, each in TARGETS.items() if each.host_alone] == ["cdi"]


def test_groups_that_the_user_is_not_in_are_found(tmp_path):
    _, spec = host_and_spec(tmp_path, "mi50")
    assert missing_groups(spec, [44, 1000]) == (109,)
    assert missing_groups(spec, [44, 109]) == ()


def test_unknown_target_names_the_nearest():
    with pytest.raises(RocmatrixError, match="did you mean podman"):
        target("podmann")
