"""Checks of cards, their links and their partitions."""

import shutil

import pytest

from tests.fixtures import machines, sysfs
from tests.fixtures.doctor import FOLDER, findings_on


def test_slow_link_under_load_is_more_than_a_note(tmp_path):
    machine = machines.two_rx_7900_xt(tmp_path)
    machine.write("sys/bus/pci/devices/0000:01:00.0/current_link_speed", "8.0 GT/s PCIe\n")
    machine.write(f"{FOLDER}/gpu_busy_percent", "97\n")
    found = findings_on(machine)["D203"]
    assert found.status == "warning"
    assert "x8 of x16, 8.0 of 16.0 GT/s" in found.seen


def test_fix_for_a_visible_integrated_gpu_is_the_exact_variable(tmp_path):
    machine = machines.desktop_with_igpu(tmp_path)
    found = findings_on(machine)["D205"]
    assert (found.status, found.fix) == ("warning", "export ROCR_VISIBLE_DEVICES=GPU-13a10000000000a2")
    assert findings_on(machine, environment={"ROCR_VISIBLE_DEVICES": "1"})["D205"].status == "ok"


def test_partitions_are_reported(tmp_path):
    machine = machines.mi300x_cpx(tmp_path)
    found = findings_on(machine)["D207"]
    assert found.status == "note"
    assert "2 card(s) show as 16 (CPX/NPS4, 8 each)" in found.seen


@pytest.mark.parametrize("missing", [8, 1, 3])  # the last, the first and one in the middle
def test_partition_that_is_missing_is_a_warning_with_its_card(tmp_path, missing):
    machine = machines.mi300x_cpx(tmp_path)
    assert findings_on(machine)["D207"].status == "note"
    shutil.rmtree(machine.root / f"{sysfs.TOPOLOGY}/{missing}")
    found = findings_on(machine)["D207"]
    assert found.status == "warning"
    assert "2 card(s) show as 15 (CPX/NPS4); missing: 0000:0c:00.0 shows 7 of 8" in found.seen


def test_partitioned_card_that_shows_a_single_partition_is_a_warning(tmp_path):
    machine = machines.mi300x_cpx(tmp_path, cards=1)
    for node in range(2, 9):
        shutil.rmtree(machine.root / f"{sysfs.TOPOLOGY}/{node}")
    assert "shows 1 of at least 2" in findings_on(machine)["D207"].seen


def test_partition_that_is_missing_is_found_where_no_mode_is_reported(tmp_path):
    machine = machines.mi300x_cpx(tmp_path, cards=3, old_kernel=True)
    for folder in ("sys/bus", "sys/class/drm", "sys/devices"):
        shutil.rmtree(machine.root / folder)
    assert findings_on(machine)["D207"].status == "note"
    shutil.rmtree(machine.root / f"{sysfs.TOPOLOGY}/24")
    assert "missing: 0000:1c:00.0 shows 7 of 8" in findings_on(machine)["D207"].seen


def test_whole_card_next_to_partitioned_ones_is_not_taken_for_a_broken_one(tmp_path):
    machine = machines.mi300x_cpx(tmp_path, cards=2)
    for node in range(10, 17):
        shutil.rmtree(machine.root / f"{sysfs.TOPOLOGY}/{node}")
    machine.write("sys/bus/pci/devices/0000:14:00.0/current_compute_partition", "SPX\n")
    assert findings_on(machine)["D207"].status == "note"
