"""PCI and DRM attributes, links and partitions, from synthetic machines."""

import pytest

from rocmatrix.containers.device_selection import choose_cards, visible_devices, without_integrated
from rocmatrix.host.hardware import read_hardware
from rocmatrix.host.pci_device import active_profile, amd_display_devices, read_adapter
from tests.fixtures import machines, sysfs
from tests.fixtures.cells import GFX1100


def test_link_is_the_slots_not_the_one_inside_the_card(tmp_path):
    first, second = read_hardware(machines.two_rx_7900_xt(tmp_path)).cards
    for card, port in ((first, "0000:01:00.0"), (second, "0000:06:00.0")):
        link = card.adapter.link
        assert (link.port, link.width, link.most_width, link.speed, link.most_speed) == (port, 8, 16, 16.0, 16.0)
        assert (link.narrow, link.slow) == (True, False)
        assert link.summary == "x8 of x16, 16.0 of 16.0 GT/s"


def test_drm_attributes(tmp_path):
    adapter = read_hardware(machines.rx_9070_xt(tmp_path)).cards[0].adapter
    assert adapter.memory_bytes == adapter.visible_bytes == 16 * sysfs.GIB
    assert (adapter.resizable, adapter.numa_node, adapter.performance_level) == (True, 0, "auto")
    assert next((t.label, t.degrees, t.limit) for t in adapter.temperatures) == ("edge", 45.0, 100.0)


def test_card_without_a_numa_node_has_none(tmp_path):
    machine = machines.rx_9070_xt(tmp_path)
    folder = read_hardware(machine).cards[0].adapter.folder
    machine.write(f"{folder}/numa_node", "-1\n")
    assert read_hardware(machine).cards[0].adapter.numa_node is None


def test_links_carry_weight_bandwidth_and_flags(tmp_path):
    machine = machines.two_rx_7900_xt(tmp_path)
    links = {(link.source, link.target): link for link in read_hardware(machine).links}
    assert links[1, 0].summary == "PCIe, weight 20, 16.0 GB/s"
    assert (links[1, 2].direct, links[1, 2].most_bandwidth, links[1, 2].atomics) == (False, None, True)
    machines.link(machine, 1, 7, flags=1 | 4 | 16)
    closed = {link.target: link for link in read_hardware(machine).links if link.source == 1}[7]
    assert (closed.atomics, closed.peer_dma) == (False, False)
    assert closed.summary.endswith("no atomics, no peer access")


@pytest.mark.parametrize("old_kernel", [False, True])
def test_partitions_are_counted_and_belong_to_their_card(tmp_path, old_kernel):
    hardware = read_hardware(machines.mi300x_cpx(tmp_path, old_kernel=old_kernel))
    assert len(hardware.cards) == 16
    assert [len(group) for group in hardware.physical_cards] == [8, 8]
    assert {card.memory_bytes for card in hardware.cards} == {24 * sysfs.GIB}
    assert {card.adapter.compute_partition for card in hardware.cards} == {"CPX"}
    assert {card.hive_id for card in hardware.cards} == {0xABCD}
    if not old_kernel:
        assert [card.partition for card in hardware.cards] == [*range(8), *range(8)]


def test_partitions_share_is_not_the_whole_cards_memory(tmp_path):
    machine = machines.mi300x_cpx(tmp_path, cards=1)
    machine.write(f"{sysfs.TOPOLOGY}/1/mem_banks/0/properties", "heap_type 0\n")
    assert read_hardware(machine).cards[0].memory_bytes is None


def test_memory_comes_from_drm_where_the_topology_has_no_banks(tmp_path):
    machine = machines.rx_9070_xt(tmp_path)
    machine.write(f"{sysfs.TOPOLOGY}/1/mem_banks/0/properties", "heap_type 1\nsize_in_bytes 0\n")
    assert read_hardware(machine).cards[0].memory_bytes == 16 * sysfs.GIB


def test_integrated_gpu_next_to_a_card_is_recognised_and_hidden(tmp_path):
    hardware = read_hardware(machines.desktop_with_igpu(tmp_path))
    assert hardware.hides_integrated
    chosen = choose_cards(GFX1100, hardware)
    assert visible_devices(hardware, chosen) == "GPU-13a10000000000a2"
    assert without_integrated(hardware, {}) == {"ROCR_VISIBLE_DEVICES": "GPU-13a10000000000a2"}
    assert without_integrated(hardware, {"HIP_VISIBLE_DEVICES": "0"}) == {}


def test_card_without_an_id_is_chosen_natively_by_the_number_it_has_among_all(tmp_path):
    machine = machines.desktop_with_igpu(tmp_path)
    machine.gpu(2, sysfs.RX_7900_XT, minor=129, gid=992, memory=20 * sysfs.GIB, unique_id=0)
    assert without_integrated(read_hardware(machine), {}) == {"ROCR_VISIBLE_DEVICES": "1"}


@pytest.mark.parametrize("build", [machines.strix_halo, machines.two_rx_7900_xt, machines.mi50])
def test_cards_of_one_kind_hide_nothing(tmp_path, build):
    hardware = read_hardware(build(tmp_path))
    assert not hardware.hides_integrated
    assert without_integrated(hardware, {}) == {}


def test_card_of_an_old_kernel_is_found_by_its_device_id(tmp_path):
    machine = sysfs.old_kernel(tmp_path, device_id=0x6860)
    for name, value in {"vendor": "0x1002", "device": "0x6860", "mem_info_vram_total": 8 * sysfs.GIB}.items():
        machine.write(f"sys/class/drm/card0/device/{name}", f"{value}\n")
    (card,) = read_hardware(machine).cards
    assert card.memory_bytes == 8 * sysfs.GIB


def test_recording_that_starts_inside_sys_is_read_too(tmp_path):
    machines.two_rx_7900_xt(tmp_path)
    hardware = read_hardware(sysfs.Files(tmp_path / "sys"))
    assert [card.adapter.link.width for card in hardware.cards] == [8, 8]


def test_device_without_an_address_or_a_node_is_not_found(tmp_path):
    assert read_adapter(sysfs.Machine(tmp_path), address=None, minor=None) is None


def test_devices_on_the_bus_are_seen_without_a_driver(tmp_path):
    machine = sysfs.no_driver(tmp_path)
    machines.pci(machine, "0000:03:00.0", "0000:03:00.0", **machines.AMD)
    machines.pci(machine, "0000:04:00.0", "0000:04:00.0", vendor="0x1002", **{"class": "0x040300"})
    machines.pci(machine, "0000:05:00.0", "0000:05:00.0", vendor="0x10de", **{"class": "0x030000"})
    assert [device.address for device in amd_display_devices(machine)] == ["0000:03:00.0"]


def test_cards_of_their_own_at_one_address_are_not_partitions(tmp_path):
    machine = machines.two_rx_7900_xt(tmp_path)
    for node in (1, 2):
        machine.gpu(node, sysfs.MI50, minor=127 + node, gid=992, memory=sysfs.GIB, location_id=6400, unique_id=node)
    assert [len(group) for group in read_hardware(machine).physical_cards] == [1, 1]


def test_recording_of_drm_alone_gives_the_card_and_its_driver(tmp_path):
    machine = sysfs.Machine(tmp_path)
    machine.write("card0/device/vendor", "0x1002\n")
    machine.write("card0/device/uevent", "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:03:00.0\n")
    assert [device.address for device in amd_display_devices(machine)] == ["0000:03:00.0"]
    assert "no KFD topology" in read_hardware(machine).reason


@pytest.mark.parametrize(
    ("text", "profile"),
    [
        ("NUM  MODE_NAME\n  0   BOOTUP_DEFAULT*:\n  1   3D_FULL_SCREEN :\n", "BOOTUP_DEFAULT"),
        (" 5 COMPUTE *: - -\n", "COMPUTE"),
        ("", None),
        ("* * *", None),
    ],
)
def test_marked_power_profile(text, profile):
    assert active_profile(text) == profile


def test_vendor_file_padded_with_nul_does_not_lose_the_card(tmp_path):
    machine = machines.unserved(tmp_path)
    path = machine.root / "sys/bus/pci/devices/0000:03:00.0/vendor"
    path.write_bytes(b"0x1002\n" + b"\0" * 32)
    assert [device.address for device in amd_display_devices(machine)] == ["0000:03:00.0"]


def test_profile_whose_name_begins_with_a_digit_is_read():
    rows = "NUM        MODE_NAME\n  0   BOOTUP_DEFAULT :\n  1   3D_FULL_SCREEN*:\n  5          COMPUTE :\n"
    assert active_profile(rows) == "3D_FULL_SCREEN"
    assert active_profile(rows.replace("SCREEN*", "SCREEN ").replace("COMPUTE ", "COMPUTE*")) == "COMPUTE"
    assert active_profile("1 12*: 100\n") is None
