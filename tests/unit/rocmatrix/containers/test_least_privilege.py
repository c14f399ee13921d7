"""A run gets its nodes, groups, mounts and memory, and no more than it needs."""

from pathlib import Path

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
    ask = ["--network=host", "--security-opt=seccomp=unconfined", "--ipc=host", "--ulimit=memlock=-1"]
    assert left_out == [*never, *ask, "--cap-add=SYS_PTRACE"]
