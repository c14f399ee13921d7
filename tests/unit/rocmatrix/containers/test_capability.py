"""A feature brings its own settings with their reasons; without it none of them is there."""

import pytest

from rocmatrix.containers.capability import FEATURES, network_of, rdma_nodes, settings_of
from rocmatrix.containers.least_privilege import LEFT_OUT
from rocmatrix.containers.runspec import Chosen, explain, run_spec
from rocmatrix.containers.settings import UNLIMITED, Device, Group, Limit, Network, SharedMemory
from rocmatrix.host.hardware import read_hardware
from rocmatrix.host.sysfs import DeviceNode
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures import cells, sysfs

ADAPTERS = (
    DeviceNode(path="/dev/infiniband/rdma_cm", uid=0, gid=0, mode=0o666),
    DeviceNode(path="/dev/infiniband/uverbs0", uid=0, gid=992, mode=0o660),
)
BRINGS = {
    "network": {"--network=bridge"},
    "debugger": {"--cap-add=SYS_PTRACE", "--security-opt=seccomp=unconfined"},
    "numa": {"--cap-add=SYS_NICE"},
    "ipc": {"--ipc=host"},
    "rdma": {
        "--network=host",
        "--ulimit=memlock=-1:-1",
        "--device=/dev/infiniband/rdma_cm:/dev/infiniband/rdma_cm:rw",
        "--device=/dev/infiniband/uverbs0:/dev/infiniband/uverbs0:rw",
    },
}


def spec_with(folder, *features):
    hardware = read_hardware(sysfs.two_rx_7900_xt(folder))
    plan = {"image": "i", "command": [], "run_folder": folder, "user": "1000:1000", "rdma": ADAPTERS}
    return run_spec(cells.GFX1100, hardware, Chosen(features=features, **plan))


def flags(spec):
    return {f"{s.flag}={s.value}" for s in spec.settings if s.flag != "--env"}


@pytest.mark.parametrize("name", FEATURES)
def test_feature_brings_what_it_needs_and_nothing_else(tmp_path, name):
    assert flags(spec_with(tmp_path, name)) - flags(spec_with(tmp_path)) == BRINGS[name]


@pytest.mark.parametrize("name", FEATURES)
def test_settings_of_a_feature_name_the_flag_that_requested_it(tmp_path, name):
    for setting in spec_with(tmp_path, name).settings:
        if f"{setting.flag}={setting.value}" in BRINGS[name]:
            assert f"--with-{name}" in setting.reason


@pytest.mark.parametrize("name", sorted({row[3] for row in LEFT_OUT if row[3]}))
def test_given_feature_is_not_listed_as_left_out(tmp_path, name):
    left_out = {row.flag for row in explain(spec_with(tmp_path, name)) if row.value is None}
    assert left_out == {row[0] for row in LEFT_OUT if row[3] != name}


def test_group_that_owns_adapter_and_card_is_given_once(tmp_path):
    assert [row.gid for row in spec_with(tmp_path, "rdma").of(Group)] == [992]


def test_hosts_shared_memory_has_no_size_of_ours(tmp_path):
    assert spec_with(tmp_path, "ipc").of(SharedMemory) == ()


def test_rdma_takes_the_hosts_network_and_unlimited_locked_memory(tmp_path):
    spec = spec_with(tmp_path, "rdma", "network")
    assert [row.value for row in spec.of(Network)] == ["host"]
    assert [(row.name, row.soft, row.hard) for row in spec.of(Limit)] == [("memlock", UNLIMITED, UNLIMITED)]
    assert len(spec.of(Device)) == 3 + len(ADAPTERS)


def test_rdma_without_an_adapter_is_an_error():
    with pytest.raises(RocmatrixError, match="RM410"):
        list(settings_of(["rdma"]))


def test_unknown_feature_names_the_nearest():
    with pytest.raises(RocmatrixError, match="did you mean debugger"):
        list(settings_of(["debuger"]))


def test_network_is_absent_without_a_feature():
    assert [network_of(names) for names in ((), ("ipc",), ("network",), ("rdma",))] == [
        "none",
        "none",
        "bridge",
        "host",
    ]


def test_adapters_are_read_with_their_numeric_groups(tmp_path):
    machine = sysfs.no_driver(tmp_path)
    assert rdma_nodes(machine) == ()
    machine.device("dev/infiniband/uverbs0", gid=992)
    machine.device("dev/infiniband/rdma_cm", gid=0, mode=0o666)
    (machine.root / "dev/infiniband/by-path").mkdir()
    assert rdma_nodes(machine) == ADAPTERS
