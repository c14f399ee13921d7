"""What a machine has, without serial numbers."""

from rocmatrix.host import inventory
from rocmatrix.host.hardware import read_hardware
from tests.fixtures import machines, sysfs


def test_inventory_holds_cards_products_links_and_partitions_and_no_serial_number(tmp_path):
    machine = machines.mi300x_cpx(tmp_path)
    machine.write("sys/bus/pci/devices/0000:0c:00.0/product_name", "AMD Instinct MI300X OAM\n")
    found = inventory.described(read_hardware(machine))
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
    serials = {f"{card.unique_id:x}" for card in read_hardware(machine).cards} | {
        str(c.unique_id) for c in read_hardware(machine).cards
    }
    words = {str(value) for card in found["cards"] for value in card.values()}
    assert not serials & words


def test_inventory_of_a_machine_without_a_usable_card_names_what_is_on_the_bus(tmp_path):
    found = inventory.described(read_hardware(machines.unserved(tmp_path, driver="vfio-pci")))
    assert found["devices"] == [{"address": "0000:03:00.0", "device_id": 0x744C, "driver": "vfio-pci"}]
    assert "vfio-pci" in found["unusable"]


def test_card_of_the_same_device_differs_by_its_revision(tmp_path):
    machine = machines.two_rx_7900_xt(tmp_path)
    machine.write("sys/bus/pci/devices/0000:03:00.0/revision", "0xcc\n")
    found = inventory.described(read_hardware(machine))
    assert [card["pci_id"] for card in found["cards"]] == ["1002:744c:cc", "1002:744c"]
