"""Checks of what limits a run: IOMMU, engine."""

import shutil
from dataclasses import replace

import pytest

from rocmatrix.doctor import host, limits
from rocmatrix.doctor.host import Disk, Engine
from rocmatrix.host import hardware
from tests.fixtures import machines, sysfs
from tests.fixtures.cells import CPU, GFX1100
from tests.fixtures.doctor import FOLDER, GIB, LIVE, SECOND, findings_on


def test_iommu_is_judged_by_the_command_line_where_groups_are_unknown(tmp_path):
    machine = machines.two_rx_7900_xt(tmp_path)
    for folder in (FOLDER, SECOND):
        (tmp_path / folder / "iommu_group/type").unlink()
    assert findings_on(machine)["D301"].status == "ok"
    machine.write("proc/cmdline", "quiet\n")
    assert findings_on(machine)["D301"].status == "note"
    machine.write("sys/class/iommu/dmar0/x", "")
    assert findings_on(machine)["D301"].status == "note"


def test_translating_iommu_is_documented_for_radeon_cards_with_p2p_alone(tmp_path):
    radeon = machines.two_rx_7900_xt(tmp_path / "radeon")
    radeon.write(f"{SECOND}/iommu_group/type", "DMA-FQ\n")
    found = findings_on(radeon)["D301"]
    assert (found.status, "documents it for Radeon" in found.seen) == ("note", True)
    assert found.fix.startswith("only where collectives are slow or hang: ")
    for node in (1, 2):  # no way from one card to the other
        shutil.rmtree(radeon.root / f"{sysfs.TOPOLOGY}/{node}/p2p_links")
    assert findings_on(radeon)["D301"].status == "warning"
    instinct = machines.eight_mi300x(tmp_path / "instinct")
    place = next((instinct.root / "sys/devices").rglob("0000:14:00.0/iommu_group/type"))
    place.write_text("DMA\n")
    found = findings_on(instinct)["D301"]
    assert (found.status, "0000:14:00.0" in found.seen) == ("warning", True)


def test_graphics_of_the_processor_are_no_second_card_for_the_iommu(tmp_path):
    machine = machines.desktop_with_igpu(tmp_path)
    for place in (tmp_path / "sys/devices").rglob("iommu_group/type"):
        place.write_text("DMA-FQ\n")
    assert len(hardware.read_hardware(machine).cards) == 2
    assert findings_on(machine)["D301"].status == "not applicable"


def test_engine_of_a_machine_without_a_card_gets_no_advice_on_cards(tmp_path):
    found = findings_on(sysfs.no_driver(tmp_path), engine=Engine(version="24.0.7"))["D402"]
    assert (found.status, found.fix) == ("not applicable", None)


@pytest.fixture
def cards(tmp_path):
    return host.read(machines.two_rx_7900_xt(tmp_path / "cards"), **LIVE)


@pytest.fixture
def bare(tmp_path):
    return host.read(sysfs.no_driver(tmp_path / "bare"), **LIVE)


@pytest.mark.parametrize(("kind", "least"), [("cards", 8 * GIB), ("bare", GIB)])
def test_shared_memory_is_enough_from_what_a_run_gets_in_its_container(request, kind, least):
    machine = request.getfixturevalue(kind)
    found = [limits.shared_memory(replace(machine, shared_memory_bytes=size)) for size in (least, least - 1)]
    assert [each.status for each in found] == ["ok", "warning"]
    assert found[1].fix == f"sudo mount -o remount,size={least // GIB}G /dev/shm"


@pytest.mark.parametrize(
    ("kind", "cell", "least"),
    [("cards", None, 35), ("bare", None, 5), ("cards", CPU, 5), ("bare", GFX1100, 35), ("cards", GFX1100, 35)],
)
def test_disk_is_judged_by_the_named_cell_and_else_by_the_cards(request, kind, cell, least):
    machine = replace(request.getfixturevalue(kind), cell=cell)
    free = [Disk(path="/x", free_bytes=size) for size in (least * GIB, least * GIB - 1)]
    assert [limits.disk(replace(machine, disk=each)).status for each in free] == ["ok", "warning"]


@pytest.mark.parametrize(
    ("version", "status", "words"),
    [
        ("24.0.9", "note", "--device only"),
        ("25.0.0", "note", "CDI names"),
        ("29.2.9", "note", "CDI names"),
        ("29.3.0", "ok", "--gpus"),
        ("29.3.1+dfsg1", "ok", "--gpus"),
        ("29.4.0-rc.1", "ok", "--gpus"),
    ],
)
def test_engine_is_judged_by_its_version(cards, version, status, words):
    found = limits.engine_age(replace(cards, engine=Engine(version=version)))
    assert (found.status, words in found.seen) == (status, True)


@pytest.mark.parametrize(
    ("rdma", "memlock", "status"),
    [(True, "8388608", "warning"), (True, "unlimited", "ok"), (False, "8388608", "ok"), (True, None, "unknown")],
)
def test_memory_lock_matters_to_an_adapter_alone(cards, rdma, memlock, status):
    assert limits.locked_memory(replace(cards, rdma=rdma, memlock=memlock)).status == status


@pytest.mark.parametrize(
    ("balancing", "nodes", "status"),
    [(0, 2, "ok"), (1, 1, "ok"), (1, 2, "warning"), (2, 2, "warning"), (None, 2, "ok"), (None, 0, "unknown")],
)
def test_balancing_needs_several_nodes_to_stall_a_card(cards, bare, balancing, nodes, status):
    about = {"numa_balancing": balancing, "numa_nodes": nodes}
    assert limits.numa_balancing(replace(cards, **about)).status == status
    assert limits.numa_balancing(replace(bare, **about)).status == "not applicable"


@pytest.mark.parametrize(
    ("variables", "status"),
    [
        ({}, "ok"),
        ({"ROCR_VISIBLE_DEVICES": "0"}, "ok"),
        ({"HIP_VISIBLE_DEVICES": "0", "CUDA_VISIBLE_DEVICES": "0"}, "ok"),
        ({"HIP_VISIBLE_DEVICES": "0", "CUDA_VISIBLE_DEVICES": "1"}, "error"),
        ({"ROCR_VISIBLE_DEVICES": "0", "CUDA_VISIBLE_DEVICES": "0"}, "warning"),
    ],
)
def test_devices_named_twice_have_to_agree(cards, variables, status):
    assert limits.visible(replace(cards, environment=variables)).status == status


def test_iommu_groups_decide_before_the_command_line(cards):
    cards = replace(cards, hardware=replace(cards.hardware, links=()))  # no P2P, for which AMD documents a default
    assert limits.iommu(cards).status == "ok"
    mixed = replace(cards, iommu_types={"0000:03:00.0": "identity", "0000:08:00.0": "DMA-FQ"})
    found = limits.iommu(mixed)
    assert (found.status, found.seen.startswith("0000:08:00.0: the IOMMU translates")) == ("warning", True)
    assert "iommu=pt" in (mixed.command_line or "")
    unknown = replace(cards, iommu_types={}, command_line=None)
    assert limits.iommu(unknown).status == "unknown"
    near = replace(cards, iommu_types={}, command_line="amd_iommu=pt iommu=ptx", iommu=True)
    assert limits.iommu(near).status == "warning"
