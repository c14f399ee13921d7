"""Devices of a virtual machine: which is the card, and which of its functions are given."""

from pathlib import Path

import pytest

from rocmatrix.doctor.environment.files.machines import guest, virtual_machine


def rules(*rows):
    found = virtual_machine.findings(guest.read("\n".join(("machine: q35", "bios: ovmf", *rows)), Path("1.conf")))
    return [finding.rule for finding in found]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("hostpci0: 0000:03:00.0", []),  # may be any device
        ("hostpci0: 0000:03:00,x-vga=on", ["card-not-on-pcie"]),
        ("hostpci0: 0000:03:00,romfile=RX6600XT.rom", ["card-not-on-pcie"]),
        ("hostpci0: mapping=radeon-w7900", ["card-not-on-pcie"]),
        ("hostpci0: host=0000:03:00.1,x-vga=1", []),
        ("hostpci0: 0000:03:00.0,pcie=1,x-vga=1", ["function-not-given"]),
        ("hostpci0: 0000:03:00.0;0000:03:00.1,pcie=1,x-vga=1", []),
        ("hostpci0: 0000:03:00.0,mdev=amdgpu-1", []),  # a part of a card
        ("hostpci0: 03:00.g", ["hostpci-address"]),
    ],
)
def test_card_is_known_by_its_own_words(row, expected):
    assert rules(row) == expected


def test_slot_and_its_function_are_one_device():
    assert rules("hostpci0: 03:00", "hostpci1: 0000:03:00.1") == ["device-given-twice"]
    assert rules("hostpci0: 03:00.1", "hostpci1: 0000:03:00") == ["device-given-twice"]
    assert rules("hostpci0: 03:00.0", "hostpci1: 0000:03:00.1", "hostpci2: 04:00") == []
