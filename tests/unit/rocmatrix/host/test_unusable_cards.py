"""Cards that are there and serve no run. SYNTHETIC machines after public reports; nothing was recorded."""

import pytest

from rocmatrix.host.hardware import read_hardware
from rocmatrix.host.unusable_cards import left_out, none_serves
from tests.fixtures import machines, sysfs
from tests.fixtures.sysfs import GIB

PHOENIX = sysfs.RX_7900_XT | {"simd_count": 24, "gfx_target_version": 110003, "device_id": 0x15BF, "unique_id": 0}


def laptop(root, *, device="0x744c", driver="amdgpu"):
    """A laptop whose own graphics compute, and an external card behind Thunderbolt that KFD has skipped.

    After ROCm/amdgpu#151 (skipped for its firmware) and ROCm/legacy-rocm-build#1537 (an external box).
    """
    machine = sysfs.Machine(root)
    machine.amdgpu(kfd_gid=992)
    machine.cpu(0)
    machine.gpu(1, PHOENIX, minor=128, gid=992, memory=8 * GIB, location_id=0xC400)
    machines.pci(machine, "0000:00:08.1/0000:c4:00.0", "0000:c4:00.0", **machines.AMD, device="0x15bf")
    path = "0000:00:03.1/0000:05:00.0/0000:06:00.0/0000:07:00.0"
    folder = machines.pci(machine, path, "0000:07:00.0", **machines.AMD, device=device)
    place = machine.root / "sys/bus/pci/drivers" / driver
    place.mkdir(parents=True)
    (machine.root / folder / "driver").symlink_to(place)
    return machine


def test_card_that_the_topology_lacks_is_named_next_to_one_that_serves(tmp_path):
    found = read_hardware(laptop(tmp_path))
    assert found.architectures == ("gfx1103",)
    assert found.unusable == (
        "1 AMD card(s) more are there and cannot be used (0000:07:00.0, PCI device 0x744c, gfx1100, which is not in "
        "the kernel's KFD topology; see ./invokew doctor)"
    )


def test_card_of_a_virtual_machine_is_named_with_its_driver(tmp_path):
    assert "gfx1100, whose driver is vfio-pci" in read_hardware(laptop(tmp_path, driver="vfio-pci")).unusable


@pytest.mark.parametrize(
    "device", ["0x164e", "0x6818", "0xfffe"]
)  # a processor's graphics, a chip before ROCm, unknown
def test_device_that_no_release_has_code_for_is_not_missed(tmp_path, device):
    assert read_hardware(laptop(tmp_path, device=device)).unusable is None


def test_cards_of_others_are_not_missed_by_a_container_that_was_given_one(tmp_path):
    found = read_hardware(laptop(tmp_path))
    assert left_out(found.devices, ["0000:c4:00.0"], hidden=1) is None
    assert left_out(found.devices, ["0000:c4:00.0"], hidden=0) is not None


def test_card_whose_partition_is_in_its_function_is_listed(tmp_path):
    found = read_hardware(machines.mi300x_cpx(tmp_path, cards=1, old_kernel=True))
    assert len(found.cards) == 8
    assert found.unusable is None


def test_machine_of_which_no_card_serves_states_each_and_the_reason(tmp_path):
    devices = read_hardware(laptop(tmp_path)).devices
    assert none_serves(devices[1:], "a reason") == (
        "1 AMD card(s) are there and cannot be used (0000:c4:00.0, PCI device 0x15bf, gfx1103): a reason"
    )


@pytest.mark.parametrize("with_processors", [False, True])
def test_node_of_the_driver_without_any_topology_is_no_machine_without_a_card(tmp_path, with_processors):
    machine = sysfs.Machine(tmp_path)
    machine.device("dev/kfd", gid=992)
    if with_processors:  # amdgpu is loaded on a machine that has no card of its own
        machine.cpu(0)
    found = read_hardware(machine)
    assert (found.unusable is None) == with_processors
    assert ("/sys, which is withheld, shows neither topology nor card" in found.reason) != with_processors
