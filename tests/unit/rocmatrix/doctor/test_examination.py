"""Every check is shown to pass on a sound machine and to fail on one that is spoiled in a single place."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from rocmatrix.doctor import examination, host, knowledge
from rocmatrix.doctor.examination import CHECKS
from rocmatrix.doctor.host import Disk, Engine, User
from rocmatrix.host.hardware import survey
from tests.fixtures import machines, sysfs
from tests.fixtures.cells import CPU, GFX1100, GFX1151

ROOT = Path(__file__).resolve().parents[4]
KNOWN = knowledge.load(ROOT)
GIB = sysfs.GIB
LIVE = {
    "user": User(uid=1000, groups=frozenset({1000, 992})),
    "engine": Engine(version="29.3.1", cdi_folders=("/etc/cdi",), cdi_devices=("amd.com/gpu=0",)),
    "disk": Disk(path="/var/lib/docker", free_bytes=200 * GIB),
    "shared_memory_bytes": 16 * GIB,
    "environment": {},
}


def look(machine, **changes):
    found = host.read(machine, **LIVE | changes)
    return {finding.code: finding for finding in examination.examine(found, KNOWN).findings}


def test_sound_machine_has_no_error_and_every_check_reports(tmp_path):
    machine = machines.rx_9070_xt(tmp_path)
    machine.write("sys/module/amdgpu/version", "6.16.6\n")
    found = look(machine, cell=None)
    assert set(found) == {check.code for check in CHECKS}
    assert {f.status for f in found.values()} <= {"ok", "not applicable"}
    assert {code for code, f in found.items() if f.status == "not applicable"} == {"D102", "D206", "D301"}


def test_two_sound_cards(tmp_path):
    machine = machines.two_rx_7900_xt(tmp_path)
    found = look(machine)
    assert {code: f.status for code, f in found.items() if f.status not in ("ok", "not applicable")} == {
        "D202": "warning"
    }
    assert "card 0 at 0000:01:00.0: x8 of x16, 16.0 of 16.0 GT/s (the slot has x16)" in found["D202"].seen
    assert "lspci -vv -s 0000:01:00.0" in found["D202"].fix


FOLDER = "sys/devices/pci0000:00/0000:00:01.1/0000:01:00.0/0000:02:00.0/0000:03:00.0"
SECOND = "sys/devices/pci0000:00/0000:00:01.1/0000:06:00.0/0000:07:00.0/0000:08:00.0"


def _remove(*paths):
    return lambda machine: [(machine.root / path).unlink() for path in paths]


def _write(path, text):
    return lambda machine: machine.write(path, text)


def _metrics(**told):
    return lambda machine: (machine.root / FOLDER / "gpu_metrics").write_bytes(machines.metrics(**told))


def _no_atomics(machine):
    machine.write(f"{sysfs.TOPOLOGY}/1/io_links/0/properties", "type 2\nnode_to 0\nflags 13\n")


def _no_peers(machine):
    for node in (1, 2):
        (machine.root / f"{sysfs.TOPOLOGY}/{node}/p2p_links/0/properties").unlink()


def _no_module(machine):
    for file in (machine.root / "sys/module/amdgpu").iterdir():
        file.unlink()
    (machine.root / "sys/module/amdgpu").rmdir()
    for node in (1, 2):
        (machine.root / f"{sysfs.TOPOLOGY}/{node}/gpu_id").write_text("0\n")


def _numa(machine):
    machine.write("proc/sys/kernel/numa_balancing", "1\n")
    machine.write("sys/devices/system/node/node1/cpulist", "24-47\n")


def _rdma(machine):
    machine.write("sys/class/infiniband/mlx5_0/node_type", "1\n")


def _extra_card(machine):
    machines.pci(machine, "0000:00:02.1/0000:0b:00.0", "0000:0b:00.0", **machines.AMD)


@pytest.mark.parametrize(
    ("code", "status", "spoil", "words"),
    [
        ("D101", "error", _no_module, "the driver is not loaded"),
        ("D104", "warning", _extra_card, "0000:0b:00.0 is not in it"),
        ("D105", "note", lambda machine: machine.withhold(1), "1 card(s) are hidden by the container"),
        ("D110", "error", _remove("dev/kfd"), "/dev/kfd is not there"),
        ("D111", "error", _remove("dev/dri/renderD129"), "renderD129 is not there"),
        ("D112", "warning", lambda machine: machine.device("dev/kfd", gid=0), "/dev/kfd belongs to root's group"),
        ("D201", "error", _no_atomics, "card 0"),
        ("D203", "note", _write("sys/bus/pci/devices/0000:01:00.0/current_link_speed", "2.5 GT/s PCIe\n"), "idle"),
        ("D204", "warning", _write(f"{FOLDER}/mem_info_vis_vram_total", f"{256 * 1024**2}\n"), "256 of 20480 MiB"),
        ("D206", "warning", _no_peers, "2 of 2 ways"),
        ("D301", "warning", _write(f"{SECOND}/iommu_group/type", "DMA-FQ\n"), "0000:08:00.0"),
        ("D302", "warning", _numa, "2 NUMA nodes"),
        ("D304", "warning", _rdma, "8388608"),
        ("D501", "warning", _write(f"{FOLDER}/power_dpm_force_performance_level", "low\n"), "card 0: low"),
        ("D501", "note", _write(f"{FOLDER}/power_dpm_force_performance_level", "manual\n"), "card 0: manual"),
        ("D502", "warning", _write(f"{FOLDER}/hwmon/hwmon4/temp2_input", "107000\n"), "junction 107 of 110"),
        ("D502", "error", _write(f"{FOLDER}/hwmon/hwmon4/temp2_input", "111000\n"), "junction 111 of 110"),
        ("D503", "warning", _metrics(status=1 << 36), "card 0: temperature"),
        ("D503", "note", _metrics(status=1), "card 0: power"),
        ("D503", "unknown", _metrics(version=(9, 9)), "format that is not read"),
    ],
)
def test_spoiled_place_is_one_finding(tmp_path, code, status, spoil, words):
    machine = machines.two_rx_7900_xt(tmp_path)
    assert look(machine)[code].status in ("ok", "not applicable")
    spoil(machine)
    found = look(machine)[code]
    assert (found.status, words in found.seen) == (status, True), found
    assert found.fix or status in ("unknown", "note"), found


def test_slow_link_under_load_is_more_than_a_note(tmp_path):
    machine = machines.two_rx_7900_xt(tmp_path)
    machine.write("sys/bus/pci/devices/0000:01:00.0/current_link_speed", "8.0 GT/s PCIe\n")
    machine.write(f"{FOLDER}/gpu_busy_percent", "97\n")
    found = look(machine)["D203"]
    assert found.status == "warning"
    assert "x8 of x16, 8.0 of 16.0 GT/s" in found.seen


@pytest.mark.parametrize(
    ("code", "status", "changes", "words"),
    [
        ("D110", "error", {"user": User(uid=1000, groups=frozenset({1000}))}, "user 1000 cannot open /dev/kfd (0:992"),
        ("D111", "error", {"user": User(uid=1000, groups=frozenset({44}))}, "renderD128 (0:992 0660)"),
        ("D110", "unknown", {"user": None}, "not recorded"),
        ("D303", "warning", {"shared_memory_bytes": 64 * 1024**2}, "0.1 GiB"),
        ("D303", "unknown", {"shared_memory_bytes": None}, "recorded"),
        ("D305", "warning", {"environment": {"ROCR_VISIBLE_DEVICES": "0", "HIP_VISIBLE_DEVICES": "1"}}, "two filters"),
        ("D305", "error", {"environment": {"CUDA_VISIBLE_DEVICES": "0", "HIP_VISIBLE_DEVICES": "1"}}, "contradict"),
        ("D305", "unknown", {"environment": None}, "recorded"),
        ("D401", "warning", {"engine": Engine(version=None, obstacle="the daemon is stopped")}, "stopped"),
        ("D401", "unknown", {"engine": None}, "recorded"),
        ("D402", "note", {"engine": Engine(version="26.1.5+dfsg1")}, "CDI names"),
        ("D402", "note", {"engine": Engine(version="24.0.7")}, "--device only"),
        ("D402", "unknown", {"engine": Engine(version="dev")}, "no version"),
        ("D403", "warning", {"disk": Disk(path="/x", free_bytes=20 * GIB)}, "20 GiB free below /x"),
        ("D403", "unknown", {"disk": None}, "not to be seen"),
    ],
)
def test_checks_of_a_running_machine_have_the_expected_status(tmp_path, code, status, changes, words):
    machine = machines.two_rx_7900_xt(tmp_path)
    assert look(machine)[code].status == "ok"
    found = look(machine, **changes)[code]
    assert (found.status, words in found.seen) == (status, True), found


def test_iommu_is_judged_by_the_command_line_where_groups_are_unknown(tmp_path):
    machine = machines.two_rx_7900_xt(tmp_path)
    for folder in (FOLDER, SECOND):
        (tmp_path / folder / "iommu_group/type").unlink()
    assert look(machine)["D301"].status == "ok"
    machine.write("proc/cmdline", "quiet\n")
    assert look(machine)["D301"].status == "note"
    machine.write("sys/class/iommu/dmar0/x", "")
    assert look(machine)["D301"].status == "warning"


def test_fix_for_a_visible_integrated_gpu_is_the_exact_variable(tmp_path):
    machine = machines.desktop_with_igpu(tmp_path)
    found = look(machine)["D205"]
    assert (found.status, found.fix) == ("warning", "export ROCR_VISIBLE_DEVICES=GPU-13a10000000000a2")
    assert look(machine, environment={"ROCR_VISIBLE_DEVICES": "1"})["D205"].status == "ok"


def test_partitions_are_reported(tmp_path):
    machine = machines.mi300x_cpx(tmp_path)
    found = look(machine)["D207"]
    assert found.status == "note"
    assert "2 card(s) show as 16 (CPX/NPS4, 8 each)" in found.seen


def test_cells_rocm_is_held_against_the_drivers_window(tmp_path):
    machine = machines.two_rx_7900_xt(tmp_path)
    assert look(machine, cell=GFX1100)["D102"].status == "ok"
    machine.write("sys/module/amdgpu/version", "6.3.6\n")
    found = look(machine, cell=GFX1100)["D102"]
    assert (found.status, "serves ROCm >=5.6,<6.3; the cell has 6.3" in found.seen) == ("warning", True)
    machine.write("sys/module/amdgpu/version", "9.9.9\n")
    assert look(machine, cell=GFX1100)["D102"].status == "unknown"
    (tmp_path / "sys/module/amdgpu/version").unlink()
    assert look(machine, cell=GFX1100)["D102"].status == "note"


def test_kernel_known_to_be_bad_is_named_for_its_card_alone(tmp_path):
    machine = machines.strix_halo(tmp_path)
    assert look(machine, cell=GFX1151)["D103"].status == "ok"
    machine.write("proc/sys/kernel/osrelease", "6.14.0-24-generic\n")
    found = look(machine)["D103"]
    assert (found.status, "6.14.0-24-generic with gfx1151" in found.seen) == ("warning", True)
    machine.write("proc/sys/kernel/osrelease", "6.14.0-1010-oem\n")
    assert look(machine)["D103"].status == "ok"
    machine.write("proc/sys/kernel/osrelease", "unknown\n")
    assert look(machine)["D103"].status == "unknown"


def test_kernel_is_not_judged_by_the_ranges_of_amds_driver(tmp_path):
    machine = sysfs.Machine(tmp_path)
    machine.amdgpu(kfd_gid=992, dkms="6.14.14")
    machine.gpu(1, sysfs.STRIX_HALO | {"gfx_target_version": 110500}, minor=128, gid=992, memory=GIB)
    assert look(machine)["D103"].status == "warning"
    (tmp_path / "sys/module/amdgpu/version").unlink()
    machine.write("proc/sys/kernel/osrelease", "6.14.14\n")
    assert look(machine)["D103"].status == "ok"


def test_machine_without_amd_hardware_is_reported_and_no_failure(tmp_path):
    found = examination.examine(host.read(sysfs.no_driver(tmp_path), **LIVE), KNOWN)
    assert not found.failed
    assert "no AMD card was found in this machine: CPU cells only" in found.summary
    by_code = {finding.code: finding.status for finding in found.findings}
    assert by_code["D101"] == by_code["D201"] == "not applicable"


def test_named_cell_for_a_card_makes_its_absence_an_error(tmp_path):
    machine = sysfs.no_driver(tmp_path)
    assert look(machine, cell=GFX1100)["D101"].status == "error"
    assert look(machine, cell=CPU)["D101"].status == "not applicable"


def test_wsl2_is_recognised_and_not_examined(tmp_path):
    found = look(sysfs.wsl2(tmp_path))
    assert (found["D101"].status, "/dev/dxg" in found["D101"].seen) == ("note", True)
    assert found["D104"].status == "not applicable"


def test_container_without_any_card_is_an_error(tmp_path):
    machine = machines.two_rx_7900_xt(tmp_path)
    machine.withhold(1)
    machine.withhold(2)
    found = look(machine)
    assert (found["D105"].status, found["D104"].status) == ("error", "note")


def test_tree_without_dev_has_no_findings_on_nodes(tmp_path):
    machines.two_rx_7900_xt(tmp_path)
    found = look(sysfs.Files(tmp_path / "sys"), user=None)
    assert (found["D110"].status, found["D111"].status) == ("unknown", "unknown")


def test_examination_without_findings_is_a_failure(tmp_path):
    done = examination.examine(host.read(sysfs.no_driver(tmp_path), **LIVE), KNOWN)
    assert replace(done, findings=()).failed


def test_root_opens_everything(tmp_path):
    machine = machines.two_rx_7900_xt(tmp_path)
    assert look(machine, user=User(uid=0, groups=frozenset({0})))["D110"].status == "ok"


@pytest.mark.parametrize("build", [machines.mi50, machines.rx_9070_xt, machines.two_rx_7900_xt, machines.mi300x_cpx])
def test_sound_fixtures_have_no_error(tmp_path, build):
    found = look(build(tmp_path), user=User(uid=1000, groups=frozenset({992, 109, 44})))
    assert [f for f in found.values() if f.status == "error"] == []


def test_recorded_mi210_tree_is_examined_without_an_error():
    tree = ROOT.parent / "shared" / "data" / "kfd" / "mi210-8x"
    if not tree.is_dir():
        pytest.skip(f"the recorded tree is not here: {tree}")
    found = look(sysfs.Files(tree), user=None, engine=None, disk=None, environment=None, shared_memory_bytes=None)
    assert {f.status for f in found.values()} <= {"ok", "unknown", "not applicable"}
    assert (found["D201"].seen, found["D206"].status) == ("on all 8 links to a processor", "ok")
    assert len(survey(sysfs.Files(tree)).links) > 60


@pytest.mark.parametrize(
    "parts",
    [
        {"engine": Engine(version=None, obstacle="the daemon is stopped")},
        {"engine": Engine(version=None, obstacle="there is no such socket")},
        {"disk": Disk(path="/x", free_bytes=GIB)},
    ],
)
def test_container_checks_stop_no_run(tmp_path, parts):
    machine = machines.rx_9070_xt(tmp_path)
    done = examination.examine(host.read(machine, **LIVE | parts), KNOWN)
    assert not done.failed, [f for f in done.findings if f.status == "error"]
    assert "nothing stops a run" in done.summary


def test_missing_card_next_to_a_present_one_stops_no_run(tmp_path):
    machine = machines.two_rx_7900_xt(tmp_path)
    _extra_card(machine)
    assert look(machine)["D104"].status == "warning"


@pytest.mark.parametrize(("cell", "status"), [(None, "note"), (GFX1100, "error")])
def test_card_of_the_radeon_driver_is_named_and_amdgpu_is_not_advised(tmp_path, cell, status):
    found = look(machines.unserved(tmp_path, driver="radeon", device="0x6818"), cell=cell)["D101"]
    assert (found.status, "its driver is radeon" in found.seen) == (status, True)
    assert "modprobe amdgpu" not in (found.fix or "")


def test_card_given_to_a_virtual_machine_is_an_error_with_the_way_back(tmp_path):
    found = look(machines.unserved(tmp_path, driver="vfio-pci"))["D101"]
    assert found.status == "error"
    assert "drivers/vfio-pci/unbind" in found.fix


def test_tree_without_a_topology_is_not_reported_as_hiding_nothing(tmp_path):
    assert look(machines.unserved(tmp_path))["D105"].status == "unknown"
    assert look(sysfs.no_driver(tmp_path / "none"))["D105"].status == "not applicable"


def test_engine_of_a_machine_without_a_card_gets_no_advice_on_cards(tmp_path):
    found = look(sysfs.no_driver(tmp_path), engine=Engine(version="24.0.7"))["D402"]
    assert (found.status, found.fix) == ("not applicable", None)


@pytest.mark.parametrize("missing", [8, 1, 3])  # the last, the first and one in the middle
def test_partition_that_is_missing_is_a_warning_with_its_card(tmp_path, missing):
    machine = machines.mi300x_cpx(tmp_path)
    assert look(machine)["D207"].status == "note"
    shutil.rmtree(machine.root / f"{sysfs.TOPOLOGY}/{missing}")
    found = look(machine)["D207"]
    assert found.status == "warning"
    assert "2 card(s) show as 15 (CPX/NPS4); missing: 0000:0c:00.0 shows 7 of 8" in found.seen


def test_partitioned_card_that_shows_a_single_partition_is_a_warning(tmp_path):
    machine = machines.mi300x_cpx(tmp_path, cards=1)
    for node in range(2, 9):
        shutil.rmtree(machine.root / f"{sysfs.TOPOLOGY}/{node}")
    assert "shows 1 of at least 2" in look(machine)["D207"].seen


def test_partition_that_is_missing_is_found_where_no_mode_is_reported(tmp_path):
    machine = machines.mi300x_cpx(tmp_path, cards=3, old_kernel=True)
    for folder in ("sys/bus", "sys/class/drm", "sys/devices"):
        shutil.rmtree(machine.root / folder)
    assert look(machine)["D207"].status == "note"
    shutil.rmtree(machine.root / f"{sysfs.TOPOLOGY}/24")
    assert "missing: 0000:1c:00.0 shows 7 of 8" in look(machine)["D207"].seen


def test_whole_card_next_to_partitioned_ones_is_not_taken_for_a_broken_one(tmp_path):
    machine = machines.mi300x_cpx(tmp_path, cards=2)
    for node in range(10, 17):
        shutil.rmtree(machine.root / f"{sysfs.TOPOLOGY}/{node}")
    machine.write("sys/bus/pci/devices/0000:14:00.0/current_compute_partition", "SPX\n")
    assert look(machine)["D207"].status == "note"
