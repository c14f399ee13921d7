"""Checks of cards, their links and their partitions."""

import shutil
from dataclasses import replace

import pytest

from rocmatrix.doctor import cards, host
from tests.fixtures import machines, sysfs
from tests.fixtures.doctor import FOLDER, LIVE, findings_on


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


PORT, OTHER_PORT = "0000:01:00.0", "0000:06:00.0"


@pytest.fixture
def read(tmp_path):
    """Return a function that reads two cards with some files changed; None removes one."""

    def read(changes=(), build=machines.two_rx_7900_xt):
        machine = build(tmp_path / build.__name__)
        for path, text in dict(changes).items():
            if text is None:
                (machine.root / path).unlink()
            else:
                machine.write(path, f"{text}\n")
        return host.read(machine, **LIVE)

    return read


@pytest.mark.parametrize(
    ("lanes", "status"), [(16, "ok"), (15, "warning"), (8, "warning"), (1, "warning"), (0, "ok"), (32, "ok")]
)
def test_link_with_fewer_lanes_than_the_card_has_is_a_warning_with_its_port(read, lanes, status):
    ports = {
        f"sys/bus/pci/devices/{port}/current_link_width": width for port, width in ((PORT, lanes), (OTHER_PORT, 16))
    }
    found = cards.width(read(ports))
    # the other card's link is whole: one that reports no lanes (0) is judged by nothing
    assert (found.code, found.status) == ("D202", status)
    assert (f"lspci -vv -s {PORT}" in (found.fix or "")) == (status == "warning")


@pytest.mark.parametrize(("busy", "status"), [(0, "note"), (1, "warning"), (100, "warning")])
def test_slow_link_of_a_card_that_works_is_a_warning(read, busy, status):
    slow = {f"sys/bus/pci/devices/{PORT}/current_link_speed": "8.0 GT/s PCIe", f"{FOLDER}/gpu_busy_percent": busy}
    found = cards.speed(read(slow))
    assert (found.status, "the card is idle" in found.seen) == (status, status == "note")


def test_speed_and_lanes_that_are_not_reported_are_unknown(read):
    where = [f"sys/bus/pci/devices/{port}" for port in (PORT, OTHER_PORT)]
    found = read({f"{port}/{name}": None for port in where for name in ("current_link_speed", "current_link_width")})
    assert [check(found).status for check in (cards.speed, cards.width)] == ["unknown", "unknown"]


@pytest.mark.parametrize(("less", "status"), [(0, "ok"), (2**28, "warning")])
def test_memory_that_the_processor_does_not_reach_is_counted(read, less, status):
    whole = 20 * sysfs.GIB
    found = cards.resizable_bar(read({f"{FOLDER}/mem_info_vis_vram_total": whole - less}))
    assert found.status == status
    if less:
        assert f"card 0 shows {(whole - less) >> 20} of {whole >> 20} MiB" in found.seen


@pytest.mark.parametrize("check", [cards.atomics, cards.width, cards.speed, cards.resizable_bar])
def test_card_of_the_processor_has_no_slot_to_judge(read, check):
    found = check(read(build=machines.strix_halo))
    assert (found.status, found.seen) == ("not applicable", "the card is part of the processor")


def test_pair_of_cards_is_joined_in_both_directions(read):
    assert cards.peers(read()).status == "ok"
    assert cards.peers(read(build=machines.mi50)).status == "not applicable"
    whole = read()
    (first, *_) = [link for link in whole.hardware.links if link.peer_dma and {link.source, link.target} == {1, 2}]
    rest = tuple(link for link in whole.hardware.links if link != first)
    found = cards.peers(replace(whole, hardware=replace(whole.hardware, links=rest)))
    assert (found.status, "1 of 2 ways are missing" in found.seen) == ("warning", True)
    assert cards.peers(replace(whole, hardware=replace(whole.hardware, links=()))).status == "unknown"


def test_pairs_of_processors_that_compute_are_judged(read):
    whole = read(build=machines.eight_mi300x)
    apus = tuple(replace(card, integrated=True) for card in whole.hardware.cards)  # as MI300A are
    found = cards.peers(replace(whole, hardware=replace(whole.hardware, cards=apus)))
    assert found.seen == "all 8 do, 56 links of them over XGMI"


@pytest.mark.parametrize(
    ("variables", "status"),
    [
        ({}, "warning"),
        ({"HIP_VISIBLE_DEVICES": ""}, "warning"),
        ({"HIP_VISIBLE_DEVICES": "1"}, "ok"),
        (None, "warning"),
    ],
)
def test_integrated_gpu_is_in_the_way_unless_the_shell_chooses(read, variables, status):
    found = cards.integrated(replace(read(build=machines.desktop_with_igpu), environment=variables))
    assert found.status == status
