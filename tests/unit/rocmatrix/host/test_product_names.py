"""Product names from a card's own file and from the tables of a distribution. SYNTHETIC trees."""

import pytest

from rocmatrix.host import inventory
from rocmatrix.host.hardware import survey
from rocmatrix.host.product_names import product
from tests.fixtures import machines, sysfs

BUS = "sys/bus/pci/devices/0000:03:00.0"
BY_REVISION = "744C,\tC8,\tAMD Radeon RX 7900 XTX\n744C,\tCC,\tAMD Radeon RX 7900 XT\n"
BY_DEVICE = (
    "1001  Other\n\t744c  Wrong maker\n1002  AMD\n\t0001  First\n\t\t1849 5230  Board\n# note\n"
    "\t744c  Navi 31 [Radeon RX 7900 XT/7900 XTX]\n1003  Third\n\t66a1  Wrong too\n"
)


def card(tmp_path, *, device="0x744c", revision="0xcc", **tables):
    machine = machines.unserved(tmp_path, device=device)
    machine.write(f"{BUS}/revision", f"{revision}\n")
    for path, text in tables.items():
        machine.write({"libdrm": "usr/share/libdrm/amdgpu.ids", "pci": "usr/share/misc/pci.ids"}[path], text)
    return product(machine, BUS)


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


def test_inventory_holds_cards_products_links_and_partitions_and_no_serial_number(tmp_path):
    machine = machines.mi300x_cpx(tmp_path)
    machine.write("sys/bus/pci/devices/0000:0c:00.0/product_name", "AMD Instinct MI300X OAM\n")
    found = inventory.described(survey(machine))
    assert (found["plugged"], len(found["cards"]), found["unusable"]) == (2, 16, None)
    first = found["cards"][0]
    assert (first["product"], first["architecture"], first["device_id"]) == (
        "AMD Instinct MI300X OAM",
        "gfx942",
        "0x74a1",
    )
    assert (first["compute_partition"], first["memory_partition"]) == ("CPX", "NPS4")
    assert (first["memory_bytes"], first["slot"]["most_width"]) == (24 * sysfs.GIB, 16)
    assert {link["kind"] for link in found["links"]} == {"XGMI", "PCIe"}
    assert found["driver"]["origin"] == "kernel"
    serials = {f"{card.unique_id:x}" for card in survey(machine).cards} | {
        str(c.unique_id) for c in survey(machine).cards
    }
    words = {str(value) for card in found["cards"] for value in card.values()}
    assert not serials & words


def test_inventory_of_a_machine_without_a_usable_card_names_what_is_on_the_bus(tmp_path):
    found = inventory.described(survey(machines.unserved(tmp_path, driver="vfio-pci")))
    assert found["devices"] == [{"address": "0000:03:00.0", "device_id": 0x744C, "driver": "vfio-pci"}]
    assert "vfio-pci" in found["unusable"]
