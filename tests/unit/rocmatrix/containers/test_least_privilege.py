"""A run gets its nodes, groups, mounts and memory, and no more than it needs."""

from dataclasses import replace
from pathlib import Path

import pytest

from rocmatrix.containers import least_privilege
from rocmatrix.containers.runspec import RUN_FOLDER, data_path, explain, portable_spec
from rocmatrix.containers.settings import (
    Device,
    DropCapability,
    Environment,
    Group,
    Init,
    Limit,
    Mount,
    Network,
    ReadOnlyRoot,
    SecurityOption,
    SharedMemory,
    Tmpfs,
    User,
)
from rocmatrix.host.hardware import read_hardware
from tests.fixtures import cells, sysfs
from tests.fixtures.machine_specs import spec_for


def variables(spec):
    return {row.name: row.content for row in spec.of(Environment)}


def test_rocm_cell_gets_its_nodes_and_their_groups_in_numbers(tmp_path):
    spec = spec_for(sysfs.two_rx_7900_xt(tmp_path))
    assert [row.host for row in spec.of(Device)] == ["/dev/kfd", "/dev/dri/renderD128", "/dev/dri/renderD129"]
    assert [row.gid for row in spec.of(Group)] == [992]
    assert "ROCR_VISIBLE_DEVICES" not in variables(spec)
    assert spec.of(Limit) == ()  # an engine without CAP_SYS_RESOURCE would refuse to start


def test_cpu_cell_gets_neither_devices_nor_groups(tmp_path):
    spec = spec_for(sysfs.two_rx_7900_xt(tmp_path), cells.CPU)
    assert spec.of(Device) + spec.of(Group) + spec.of(Limit) == ()
    assert "ROCR_VISIBLE_DEVICES" not in variables(spec)


def test_hosts_with_other_groups_get_other_numbers(tmp_path):
    one = spec_for(sysfs.two_rx_7900_xt(tmp_path / "one", render_gid=992))
    two = spec_for(sysfs.two_rx_7900_xt(tmp_path / "two", render_gid=109))
    assert ([row.gid for row in one.of(Group)], [row.gid for row in two.of(Group)]) == ([992], [109])


def test_chosen_card_of_two_hides_the_other_and_its_node(tmp_path):
    spec = spec_for(sysfs.two_rx_7900_xt(tmp_path), cards=[1])
    assert [row.host for row in spec.of(Device)] == ["/dev/kfd", "/dev/dri/renderD129"]
    assert variables(spec)["ROCR_VISIBLE_DEVICES"] == "GPU-13a10000000000a2"


def test_integrated_card_is_hidden_with_its_name_in_the_reason(tmp_path):
    spec = spec_for(sysfs.desktop_with_igpu(tmp_path))
    (row,) = [row for row in spec.of(Environment) if row.name == "ROCR_VISIBLE_DEVICES"]
    assert "card 0 is gfx1036 (integrated)" in row.reason
    assert [row.host for row in spec.of(Device)] == ["/dev/kfd", "/dev/dri/renderD129"]


def test_least_privilege_is_the_default(tmp_path):
    spec = spec_for(sysfs.two_rx_7900_xt(tmp_path))
    assert [row.value for row in spec.of(User)] == ["1000:100"]
    assert [row.value for row in spec.of(Network)] == ["none"]
    assert [row.value for row in spec.of(DropCapability)] == ["ALL"]
    assert [row.value for row in spec.of(SecurityOption)] == ["no-new-privileges:true"]
    assert len(spec.of(ReadOnlyRoot)) == len(spec.of(Init)) == 1
    assert [(row.target, row.mode, "noexec" in row.options) for row in spec.of(Tmpfs)] == [("/tmp", "1777", True)]
    flags = {row.flag for row in spec.settings}
    assert flags.isdisjoint({"--privileged", "--cap-add", "--ipc", "--pid", "--userns", "--cgroupns"})


def test_writable_paths_are_the_run_folder_and_the_users_cache(tmp_path):
    spec = spec_for(sysfs.two_rx_7900_xt(tmp_path), data=Path("/srv/bars.csv"))
    run, cache, data = spec.of(Mount)
    assert (run.kind, run.origin, run.target, run.read_only) == ("bind", "/srv/run", RUN_FOLDER, False)
    assert (cache.kind, cache.target, cache.read_only) == ("volume", "/cache", False)
    assert (data.origin, data.target, data.read_only) == ("/srv/bars.csv", data_path(Path("/srv/bars.csv")), True)
    other = spec_for(sysfs.two_rx_7900_xt(tmp_path), user="1001:100")
    assert cache.origin != other.of(Mount)[1].origin


def test_network_is_given_on_request_only(tmp_path):
    spec = spec_for(sysfs.two_rx_7900_xt(tmp_path), features=["network"])
    assert [row.value for row in spec.of(Network)] == ["bridge"]
    assert "NCCL_SOCKET_IFNAME" not in variables(spec)
    assert variables(spec_for(sysfs.two_rx_7900_xt(tmp_path)))["NCCL_SOCKET_IFNAME"] == "lo"


def test_cells_environment_is_set_and_the_callers_wins(tmp_path):
    spec = spec_for(sysfs.mi50(tmp_path), cells.GFX906, environment={"TRITON_CACHE_DIR": "/training/t", "A": "b"})
    found = variables(spec)
    assert found["MIOPEN_USER_DB_PATH"] == "/cache/miopen/db"
    assert (found["TRITON_CACHE_DIR"], found["A"]) == ("/training/t", "b")
    names = [row.name for row in spec.of(Environment)]
    assert len(names) == len(set(names))


def test_run_folder_is_no_place_of_modules_for_the_trainer_alone(tmp_path):
    """A program of the user's own may import what lies beside it."""
    machine = sysfs.two_rx_7900_xt(tmp_path)
    assert variables(spec_for(machine))["PYTHONSAFEPATH"] == "1"
    assert variables(portable_spec(cells.CPU))["PYTHONSAFEPATH"] == "1"
    assert "PYTHONSAFEPATH" not in variables(spec_for(machine, entrypoint="python", command=["own.py"]))


def test_shared_memory_is_at_most_half_of_the_hosts(tmp_path):
    machine = sysfs.two_rx_7900_xt(tmp_path)
    assert spec_for(machine).of(SharedMemory)[0].bytes == 8 * sysfs.GIB
    assert spec_for(machine, cells.CPU).of(SharedMemory)[0].bytes == sysfs.GIB
    machine.write("proc/meminfo", "MemTotal: 4096 kB\n")
    assert spec_for(machine).of(SharedMemory)[0].bytes == 2048 * 1024


def test_run_as_root_is_reported(tmp_path):
    (row,) = spec_for(sysfs.two_rx_7900_xt(tmp_path), user="0:0").of(User)
    assert "started by root" in row.reason


def test_omitted_settings_are_explained_too(tmp_path):
    rows = explain(spec_for(sysfs.two_rx_7900_xt(tmp_path)))
    left_out = [row.flag for row in rows if row.value is None]
    never = ["--privileged", "--cap-add=SYS_ADMIN"]
    options = ["--network=host", "--security-opt=seccomp=unconfined", "--ipc=host", "--ulimit=memlock=-1"]
    assert left_out == [*never, *options, "--cap-add=SYS_PTRACE"]


@pytest.mark.parametrize(("value", "root"), [("0:0", True), ("0:1000", True), ("1000:0", False), ("10:0", False)])
def test_root_is_recognised_by_the_user_id_alone(value, root):
    assert ("started by root" in least_privilege.user(value).reason) is root


@pytest.mark.parametrize("host_bytes", [None, 0])
def test_shared_memory_of_an_unknown_host_is_what_the_cell_needs(host_bytes):
    (row,) = least_privilege.memory(cells.GFX1100, host_bytes=host_bytes)
    assert row.bytes == 8 * least_privilege.GIB


@pytest.mark.parametrize(("gib", "expected"), [(15, 7.5), (16, 8), (17, 8), (64, 8)])
def test_shared_memory_ends_at_half_of_the_hosts(gib, expected):
    (row,) = least_privilege.memory(cells.GFX1100, host_bytes=gib * least_privilege.GIB)
    assert row.bytes == expected * least_privilege.GIB


def test_label_is_lifted_where_selinux_is_enforced_alone():
    assert [row.value for row in least_privilege.labels(enforced=True)] == ["label=disable"]
    assert list(least_privilege.labels(enforced=False)) == []


@pytest.mark.parametrize(
    ("cell", "network", "libraries"),
    [
        (cells.GFX1100, "none", {"GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"}),
        (cells.CPU, "none", {"GLOO_SOCKET_IFNAME"}),
        (cells.GFX1100, "bridge", set()),
        (cells.GFX1100, "host", set()),
    ],
)
def test_ranks_are_sent_to_the_loopback_where_there_is_no_network(cell, network, libraries):
    found = {row.name for row in least_privilege.environment(cell, network=network)}
    assert {name for name in found if name.endswith("SOCKET_IFNAME")} == libraries


def test_cache_that_the_cell_names_is_not_named_twice():
    plain = {row.name: row.content for row in least_privilege.environment(cells.CPU, network="none")}
    assert plain["HF_HOME"] == "/cache/huggingface"
    row = cells.GFX1100.environment[0].model_copy(update={"name": "HF_HOME", "value": "/cache/own"})
    named = cells.GFX1100.model_copy(update={"environment": (row,)})
    found = [row.content for row in least_privilege.environment(named, network="none") if row.name == "HF_HOME"]
    assert found == ["/cache/own"]


def test_caches_of_a_simulated_machine_are_kept_apart():
    def volume(simulated):
        rows = least_privilege.files(cells.CPU, run_folder="/srv/run", owner="1000", simulated=simulated)
        return next(row.origin for row in rows if isinstance(row, Mount) and row.kind == "volume")

    assert volume(simulated=True) != volume(simulated=False)
    assert volume(simulated=False) == f"rocmatrix-cache-{cells.CPU.name}-1000"


def test_files_of_a_user_are_mounted_read_only_and_apart():
    assert list(least_privilege.data(None, origin="None")) == []
    assert list(least_privilege.recipe(None)) == []
    (recipe,) = least_privilege.recipe(Path("/home/a/my.yaml"))
    assert (recipe.target, recipe.read_only) == ("/recipe/my.yaml", True)
    one, two = least_privilege.callbacks([Path("/a/mine.py"), Path("/b/mine.py")])
    assert (one.target, two.target) == ("/callbacks/0/mine.py", "/callbacks/1/mine.py")
    assert one.read_only and two.read_only


def test_cards_that_were_not_chosen_are_hidden_by_name(tmp_path):
    machine = read_hardware(sysfs.two_rx_7900_xt(tmp_path))
    assert list(least_privilege.visibility(machine, machine.cards)) == []
    (row,) = least_privilege.visibility(machine, machine.cards[1:])
    assert row.content == machine.cards[1].uuid
    assert row.reason.startswith("card 0 is gfx1100")


def test_devices_name_the_card_and_group_of_each_node(tmp_path):
    machine = read_hardware(sysfs.two_rx_7900_xt(tmp_path))
    unnamed = replace(machine.cards[0], gfx=None)
    rows = list(least_privilege.devices([machine.kfd, machine.cards[0].render], [unnamed]))
    assert [row.reason.partition(";")[0] for row in rows[:2]] == [
        least_privilege.KFD, "card 0, not named by its old kernel",
    ]  # fmt: skip
    assert [row.gid for row in rows[2:]] == [992]
    assert "/dev/kfd, /dev/dri/renderD128" in rows[2].reason
