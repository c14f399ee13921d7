"""Every check is shown to pass on a sound machine and to fail on one that is spoiled in a single place."""

import os
from dataclasses import replace

import pytest

from rocmatrix.doctor import examination, host
from rocmatrix.doctor.examination import CHECKS
from rocmatrix.doctor.host import Disk, Engine, User
from rocmatrix.host.hardware import read_hardware
from tests.fixtures import machines, sysfs
from tests.fixtures.doctor import FOLDER, GIB, KNOWN, LIVE, ROOT, SECOND, extra_card, findings_on


def test_sound_machine_has_no_error_and_every_check_reports(tmp_path):
    machine = machines.rx_9070_xt(tmp_path)
    machine.write("sys/module/amdgpu/version", "6.16.6\n")
    found = findings_on(machine, cell=None)
    assert set(found) == {check.code for check in CHECKS}
    assert {f.status for f in found.values()} <= {"ok", "not applicable"}
    assert {code for code, f in found.items() if f.status == "not applicable"} == {"D102", "D206", "D301"}


def test_two_sound_cards(tmp_path):
    machine = machines.two_rx_7900_xt(tmp_path)
    found = findings_on(machine)
    assert {code: f.status for code, f in found.items() if f.status not in ("ok", "not applicable")} == {
        "D202": "warning"
    }
    assert "card 0 at 0000:01:00.0: x8 of x16, 16.0 of 16.0 GT/s (the slot has x16)" in found["D202"].seen
    assert "lspci -vv -s 0000:01:00.0" in found["D202"].fix


def _remove(*paths):
    return lambda machine: [(machine.root / path).unlink() for path in paths]


def _write(path, text):
    return lambda machine: machine.write(path, text)


def _metrics(**metrics):
    return lambda machine: (machine.root / FOLDER / "gpu_metrics").write_bytes(machines.metrics(**metrics))


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


def _warm(machine):
    machine.write(f"{FOLDER}/hwmon/hwmon4/temp2_input", "91000\n")  # of 110
    _metrics(status=1 << 36)(machine)


def _rdma(machine):
    machine.write("sys/class/infiniband/mlx5_0/node_type", "1\n")


@pytest.mark.parametrize(
    ("code", "status", "spoil", "words"),
    [
        ("D101", "error", _no_module, "the driver is not loaded"),
        ("D104", "warning", extra_card, "0000:0b:00.0 is not in it"),
        ("D105", "note", lambda machine: machine.withhold(1), "1 card(s) are hidden by the container"),
        ("D110", "error", _remove("dev/kfd"), "/dev/kfd is not there"),
        ("D111", "error", _remove("dev/dri/renderD129"), "renderD129 is not there"),
        ("D112", "warning", lambda machine: machine.device("dev/kfd", gid=0), "/dev/kfd belongs to root's group"),
        ("D201", "error", _no_atomics, "card 0"),
        ("D203", "note", _write("sys/bus/pci/devices/0000:01:00.0/current_link_speed", "2.5 GT/s PCIe\n"), "idle"),
        ("D204", "warning", _write(f"{FOLDER}/mem_info_vis_vram_total", f"{256 * 1024**2}\n"), "256 of 20480 MiB"),
        ("D206", "warning", _no_peers, "2 of 2 ways"),
        ("D301", "note", _write(f"{SECOND}/iommu_group/type", "DMA-FQ\n"), "0000:08:00.0"),
        ("D302", "warning", _numa, "2 NUMA nodes"),
        ("D304", "warning", _rdma, "8388608"),
        ("D501", "warning", _write(f"{FOLDER}/power_dpm_force_performance_level", "low\n"), "card 0: low"),
        ("D501", "note", _write(f"{FOLDER}/power_dpm_force_performance_level", "manual\n"), "card 0: manual"),
        ("D502", "warning", _write(f"{FOLDER}/hwmon/hwmon4/temp2_input", "107000\n"), "junction 107 of 110"),
        ("D502", "error", _write(f"{FOLDER}/hwmon/hwmon4/temp2_input", "111000\n"), "junction 111 of 110"),
        ("D503", "warning", _warm, "card 0: temperature"),
        # recorded so on a laptop's RX 7600S that was idle at 54 of 100 °C (ilya-zlobintsev/LACT, tests/snapshots)
        ("D503", "note", _metrics(status=1 << 36), "the sensors of card 0 are 20 °C and more below their limits"),
        ("D503", "unknown", _metrics(version=(1, 7)), "card 0 counts throttled time, which takes two looks"),
        ("D503", "unknown", _metrics(version=(3, 0), size=264), "card 0 counts throttled time"),
        ("D503", "note", _metrics(status=1), "card 0: power"),
        ("D503", "unknown", _metrics(version=(9, 9)), "format that is not read"),
    ],
)
def test_spoiled_place_is_one_finding(tmp_path, code, status, spoil, words):
    machine = machines.two_rx_7900_xt(tmp_path)
    assert findings_on(machine)[code].status in ("ok", "not applicable")
    spoil(machine)
    found = findings_on(machine)[code]
    assert (found.status, words in found.seen) == (status, True), found
    assert found.fix or status in ("unknown", "note"), found


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
        ("D305", "warning", {"environment": {"GPU_DEVICE_ORDINAL": "1"}}, "HIP does not read it"),
        ("D305", "ok", {"environment": {"ROCR_VISIBLE_DEVICES": "0", "GPU_DEVICE_ORDINAL": "0"}}, "ROCR_VISIBLE"),
        ("D305", "unknown", {"environment": None}, "recorded"),
        ("D401", "warning", {"engine": Engine(version=None, obstacle="the daemon is stopped")}, "stopped"),
        ("D401", "unknown", {"engine": None}, "recorded"),
        (
            "D401",
            "warning",
            {"engine": Engine(version="29.3", kept=("no card of this host", "Use it"))},
            "no card of this host",
        ),
        ("D402", "note", {"engine": Engine(version="26.1.5+dfsg1")}, "CDI names"),
        ("D402", "note", {"engine": Engine(version="24.0.7")}, "--device only"),
        ("D402", "unknown", {"engine": Engine(version="dev")}, "no version"),
        ("D403", "warning", {"disk": Disk(path="/x", free_bytes=20 * GIB)}, "20 GiB free below /x"),
        ("D403", "unknown", {"disk": None}, "not to be seen"),
    ],
)
def test_checks_of_a_running_machine_have_the_expected_status(tmp_path, code, status, changes, words):
    machine = machines.two_rx_7900_xt(tmp_path)
    assert findings_on(machine)[code].status == "ok"
    found = findings_on(machine, **changes)[code]
    assert (found.status, words in found.seen) == (status, True), found


@pytest.mark.parametrize(("ids", "status"), [((1000, 1000), "warning"), ((1000, 992), "ok"), ((0, 0), "ok")])
def test_rootless_engine_opens_what_its_user_does_without_further_groups(tmp_path, monkeypatch, ids, status):
    monkeypatch.setattr(os, "getuid", lambda: ids[0])
    monkeypatch.setattr(os, "getgid", lambda: ids[1])
    rootless = Engine(version="29.3", security=frozenset({"rootless", "seccomp"}))
    found = findings_on(machines.two_rx_7900_xt(tmp_path), engine=rootless)["D401"]
    assert (found.status, "rootless" in found.seen) == (status, True)
    assert ("setfacl -m u:1000:rw /dev/kfd" in (found.fix or "")) is (status == "warning")


def test_closed_node_of_the_processors_graphics_stops_a_rootless_engine(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    monkeypatch.setattr(os, "getgid", lambda: 992)
    machine = machines.desktop_with_igpu(tmp_path)
    rootless = Engine(version="29.3", security=frozenset({"rootless"}))
    assert findings_on(machine, engine=rootless)["D401"].status == "ok"
    machine.owners["dev/dri/renderD128"] = (0, 44, 0o660)
    found = findings_on(machine, engine=rootless)["D401"]
    assert (found.status, "/dev/dri/renderD128 cannot be opened" in found.seen) == ("warning", True)


def test_machine_without_amd_hardware_is_reported_and_no_failure(tmp_path):
    found = examination.examine(host.read(sysfs.no_driver(tmp_path), **LIVE), KNOWN)
    assert not found.failed
    assert "no AMD card was found in this machine: CPU cells only" in found.summary
    by_code = {finding.code: finding.status for finding in found.findings}
    assert by_code["D101"] == by_code["D201"] == "not applicable"


def test_examination_without_findings_is_a_failure(tmp_path):
    done = examination.examine(host.read(sysfs.no_driver(tmp_path), **LIVE), KNOWN)
    assert replace(done, findings=()).failed


@pytest.mark.parametrize("build", [machines.mi50, machines.rx_9070_xt, machines.two_rx_7900_xt, machines.mi300x_cpx])
def test_sound_fixtures_have_no_error(tmp_path, build):
    found = findings_on(build(tmp_path), user=User(uid=1000, groups=frozenset({992, 109, 44})))
    assert [f for f in found.values() if f.status == "error"] == []


def test_recorded_mi210_tree_is_examined_without_an_error():
    tree = ROOT.parent / "shared" / "data" / "kfd" / "mi210-8x"
    if not tree.is_dir():
        pytest.skip(f"the recorded tree is not here: {tree}")
    found = findings_on(
        sysfs.Files(tree), user=None, engine=None, disk=None, environment=None, shared_memory_bytes=None
    )
    assert {f.status for f in found.values()} <= {"ok", "unknown", "not applicable"}
    assert (found["D201"].seen, found["D206"].status) == ("on all 8 links to a processor", "ok")
    assert len(read_hardware(sysfs.Files(tree)).links) > 60


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
