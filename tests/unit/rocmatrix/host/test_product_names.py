"""Product names from a card's own file and from the tables of a distribution. SYNTHETIC trees."""

import pytest

from rocmatrix.host.product_names import product
from tests.fixtures import machines
from tests.fixtures.bus_cards import BUS, card

BY_REVISION = "744C,\tC8,\tAMD Radeon RX 7900 XTX\n744C,\tCC,\tAMD Radeon RX 7900 XT\n"
BY_DEVICE = (
    "1001  Other\n\t744c  Wrong maker\n1002  AMD\n\t0001  First\n\t\t1849 5230  Board\n# note\n"
    "\t744c  Navi 31 [Radeon RX 7900 XT/7900 XTX]\n1003  Third\n\t66a1  Wrong too\n"
)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"libdrm": BY_REVISION, "pci": BY_DEVICE}, "AMD Radeon RX 7900 XT"),
        ({"libdrm": BY_REVISION, "pci": BY_DEVICE, "revision": "0xc8"}, "AMD Radeon RX 7900 XTX"),
        ({"libdrm": BY_REVISION, "pci": BY_DEVICE, "revision": "0x01"}, "Navi 31 [Radeon RX 7900 XT/7900 XTX]"),
        ({"pci": BY_DEVICE}, "Navi 31 [Radeon RX 7900 XT/7900 XTX]"),
        ({"pci": BY_DEVICE, "device": "0x66a1"}, None),
        ({"pci": BY_DEVICE, "device": ".*"}, None),
        ({"libdrm": BY_REVISION, "revision": "(.)"}, None),
        ({}, None),
    ],
)
def test_product_is_that_of_device_and_revision_else_of_the_device(tmp_path, given, name):
    assert card(tmp_path, **given) == name


def test_cards_own_name_comes_first_and_an_unprintable_one_is_none(tmp_path):
    machine = machines.unserved(tmp_path)
    machine.write(f"{BUS}/product_name", "AMD Instinct MI300X OAM\n")
    assert product(machine, BUS) == "AMD Instinct MI300X OAM"
    machine.write(f"{BUS}/product_name", "\x1b[31mred\n")
    assert product(machine, BUS) is None
