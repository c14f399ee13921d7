"""Hardware is read from a tree: from synthetic machines, and from one recorded on real cards."""

import errno
import shutil
from pathlib import Path

import pytest

from rocmatrix.host.hardware import Driver, detect, groups_of, memory_total, pci_address, read_hardware
from rocmatrix.host.sysfs import DeviceNode
from tests.fixtures import machines, sysfs

RECORDED = Path(__file__).resolve().parents[5] / "shared" / "data" / "kfd" / "mi210-8x"


def test_two_cards_with_memory_nodes_and_ids_beyond_a_signed_number(tmp_path):
    hardware = read_hardware(sysfs.two_rx_7900_xt(tmp_path))
    assert [card.gfx for card in hardware.cards] == ["gfx1100", "gfx1100"]
    first = hardware.cards[0]
    assert (first.index, first.node, first.compute_units, first.memory_bytes) == (0, 1, 84, 20 * sysfs.GIB)
    assert first.uuid == "GPU-f3a10000000000a1"
    assert first.pci_address == "0000:03:00.0"
    assert (first.render.path, first.render.gid, first.render.mode) == ("/dev/dri/renderD128", 992, 0o660)
    assert not first.integrated
    assert hardware.reason is None
    assert hardware.driver == Driver(version="6.10.5", origin="dkms")
    assert hardware.groups == (992,)
    assert hardware.architectures == ("gfx1100", "gfx1100")


def test_groups_are_distinct_and_numeric_and_memory_is_the_sum_of_both_banks(tmp_path):
    hardware = read_hardware(sysfs.mi50(tmp_path))
    assert hardware.groups == (44, 109)
    assert hardware.cards[0].gfx == "gfx906"
    assert hardware.cards[0].memory_bytes == 16 * sysfs.GIB
    assert hardware.driver == Driver(version="6.12.9-synthetic", origin="kernel")
    assert hardware.kernel == "6.12.9-synthetic"
    assert hardware.memory_bytes == 65536000 * 1024


def test_nodes_open_to_all_need_no_group(tmp_path):
    hardware = read_hardware(sysfs.strix_halo(tmp_path))
    assert hardware.groups == ()
    assert hardware.cards[0].integrated
    assert hardware.cards[0].uuid is None


def test_groups_of_root_are_never_named(tmp_path):
    assert read_hardware(sysfs.mi50(tmp_path, render_gid=0, kfd_gid=0)).groups == ()


def test_integrated_card_is_distinguished_from_the_discrete_one_and_ranked_last(tmp_path):
    hardware = read_hardware(sysfs.desktop_with_igpu(tmp_path))
    assert [(card.gfx, card.integrated) for card in hardware.cards] == [("gfx1036", True), ("gfx1100", False)]
    assert hardware.architectures == ("gfx1100", "gfx1036")


def test_processor_and_its_graphics_in_one_node_is_integrated(tmp_path):
    machine = sysfs.Machine(tmp_path)
    merged = sysfs.CPU | {"simd_count": 44, "simd_per_cu": 4}
    machine.topology(0, merged, gpu_id=1234, banks=[])
    (card,) = read_hardware(machine).cards
    assert card.integrated
    assert card.compute_units == 11


def test_old_kernel_leaves_gaps_and_no_crash(tmp_path):
    hardware = read_hardware(sysfs.old_kernel(tmp_path))
    (card,) = hardware.cards
    assert (card.gfx, card.gpu_id, card.memory_bytes, card.unique_id, card.pci_address) == (None,) * 5
    assert card.compute_units == 64
    assert card.render is not None
    assert hardware.architectures == ()


def test_node_ten_comes_after_node_two(tmp_path):
    cards = read_hardware(sysfs.twelve_nodes(tmp_path)).cards
    assert [card.node for card in cards] == list(range(2, 12))
    assert [card.index for card in cards] == list(range(10))


@pytest.mark.parametrize("code", [errno.EPERM, errno.EACCES])
def test_node_that_the_kernel_withholds_is_counted_not_a_crash(tmp_path, code):
    machine = sysfs.two_rx_7900_xt(tmp_path)
    machine.withhold(1, code)
    hardware = read_hardware(machine)
    assert hardware.hidden_nodes == 1
    assert [(card.index, card.node) for card in hardware.cards] == [(0, 2)]
    machine.withhold(2, code)
    hidden = read_hardware(machine)
    assert hidden.cards == ()
    assert "2 GPU node(s) are hidden" in hidden.reason


def test_missing_render_node_leaves_its_path(tmp_path):
    machine = sysfs.two_rx_7900_xt(tmp_path)
    (tmp_path / "dev/dri/renderD129").unlink()
    card = read_hardware(machine).cards[1]
    assert (card.render, card.render_path) == (None, "/dev/dri/renderD129")


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (sysfs.no_driver, "driver is not loaded"),
        (sysfs.wsl2, "WSL2"),
        (lambda root: _loaded(root, cpu=False), "no KFD topology"),
        (lambda root: _loaded(root, cpu=True), "processors only"),
    ],
)
def test_absence_of_cards_has_a_reason(tmp_path, build, words):
    hardware = read_hardware(build(tmp_path))
    assert hardware.cards == ()
    assert words in hardware.reason
    assert hardware.wsl2 is ("WSL2" in words)


def _loaded(root, *, cpu):
    machine = sysfs.Machine(root)
    machine.amdgpu(kfd_gid=992)
    if cpu:
        machine.cpu(0)
    return machine


def test_dxg_next_to_kfd_is_no_wsl2(tmp_path):
    machine = sysfs.two_rx_7900_xt(tmp_path)
    machine.write("dev/dxg")
    assert not read_hardware(machine).wsl2


@pytest.mark.parametrize("node", ["dev/nvidia0", "dev/nvidiactl"])
def test_card_of_another_maker_is_a_plain_flag(tmp_path, node):
    machine = sysfs.no_driver(tmp_path)
    assert not read_hardware(machine).nvidia
    machine.write(node)
    assert read_hardware(machine).nvidia


def test_damaged_files_are_gaps(tmp_path):
    machine = sysfs.two_rx_7900_xt(tmp_path)
    machine.write(f"{sysfs.TOPOLOGY}/1/properties", "gfx_target_version many\nsimd_count\n\x00\nunique_id -4\n")
    machine.write(f"{sysfs.TOPOLOGY}/1/mem_banks/0/properties", "heap_type 1\n")
    machine.write("proc/meminfo", "")
    hardware = read_hardware(machine)
    card = hardware.cards[0]
    assert (card.gfx, card.unique_id, card.memory_bytes, card.compute_units) == (None,) * 4
    assert hardware.memory_bytes is None


@pytest.mark.parametrize("top", ["sys/devices/virtual/kfd/kfd/topology", "class/kfd/kfd/topology", "topology", "."])
def test_topology_is_found_at_each_level_of_a_recording(tmp_path, top):
    sysfs.two_rx_7900_xt(tmp_path / "machine")
    shutil.copytree(tmp_path / "machine" / sysfs.TOPOLOGY, tmp_path / "recording" / top / "nodes")
    assert detect(tmp_path / "recording").architectures == ("gfx1100", "gfx1100")


def test_hardware_of_this_machine_can_be_read():
    hardware = detect()
    assert bool(hardware.cards) == (hardware.reason is None)
    assert hardware.kernel


@pytest.mark.skipif(not RECORDED.is_dir(), reason=f"the recorded tree is not here: {RECORDED}")
def test_recorded_host_with_eight_mi210():
    hardware = detect(RECORDED)
    assert [card.gfx for card in hardware.cards] == ["gfx90a"] * 8
    assert [card.node for card in hardware.cards] == list(range(2, 10))
    assert [card.render_path for card in hardware.cards] == [f"/dev/dri/renderD{n}" for n in range(128, 136)]
    assert {(card.gpu_id, card.memory_bytes, card.compute_units) for card in hardware.cards} == {(None, None, 104)}
    assert hardware.cards[0].pci_address == "0000:63:00.0"
    assert max(card.unique_id for card in hardware.cards) > 2**63
    assert not any(card.integrated for card in hardware.cards)


@pytest.mark.parametrize(
    ("domain", "location", "address"),
    [
        (0, 25344, "0000:63:00.0"),
        (0, 25600, "0000:64:00.0"),
        (1, 0x8B7F, "0001:8b:0f.7"),
        (2, 0, "0002:00:00.0"),  # a virtual machine of Hyper-V
        (0, 0, None),
    ],
)
def test_location_is_a_pci_address(domain, location, address):
    assert pci_address(domain, location) == address


@pytest.mark.parametrize("partitions", [1, 2])
def test_cards_in_domains_of_their_own_have_addresses_of_their_own(tmp_path, partitions):
    machine = machines.cards_of_hyper_v(tmp_path, partitions=partitions)
    hardware = read_hardware(machine)
    assert {card.pci_address for card in hardware.cards} == {"0002:00:00.0", "0003:00:00.0"}
    assert [len(group) for group in hardware.physical_cards] == [partitions, partitions]
    assert {card.adapter.folder.rpartition("/")[2] for card in hardware.cards} == {"0002:00:00.0", "0003:00:00.0"}


@pytest.mark.parametrize("topology", [True, False])
def test_card_that_the_loaded_driver_did_not_take_is_reported_as_that(tmp_path, topology):
    """A virtual machine whose card did not start, or nomodeset: the processors are in the topology, or nothing is."""
    machine = machines.unserved(tmp_path)
    machine.amdgpu(kfd_gid=992)
    if topology:
        machine.cpu(0)
    assert "taken no card" not in read_hardware(machine).reason  # a recording without the drivers' folders
    (tmp_path / "sys/bus/pci/drivers/amdgpu").mkdir(parents=True)
    hardware = read_hardware(machine)
    assert "amdgpu is loaded and has taken no card" in hardware.reason
    assert hardware.reason in hardware.unusable


def test_memory_is_read_in_bytes():
    assert memory_total("SwapTotal: 3 kB\nMemTotal:   2 kB\n") == 2048
    assert memory_total("nothing") is None


@pytest.mark.parametrize(
    ("domain", "location", "address"),
    [
        (0, 0x6300, "0000:63:00.0"),
        (0, 0x0081, "0000:00:10.1"),  # device 16: five bits, not four
        (0, 0x00FF, "0000:00:1f.7"),
        (0, 0xFFF8, "0000:ff:1f.0"),
        (0x10001, 0x0308, "10001:03:01.0"),
        (0, 0x3000_0300, "0000:03:00.0"),  # the partition's number, above, is no part of it
    ],
)
def test_address_has_five_bits_of_device_and_three_of_function(domain, location, address):
    assert pci_address(domain, location) == address


def test_group_that_several_nodes_have_is_needed_once():
    nodes = [DeviceNode(path=f"/dev/{gid}{n}", uid=0, gid=gid, mode=0o660) for n, gid in enumerate([992, 44, 992, 0])]
    assert groups_of(nodes) == (44, 992)


@pytest.mark.parametrize(("device_id", "gfx"), [(0x6860, "gfx900"), (0x66A1, "gfx906"), (0x738C, "gfx908")])
def test_card_of_an_old_kernel_is_named_by_its_pci_device(tmp_path, device_id, gfx):
    hardware = read_hardware(sysfs.old_kernel(tmp_path, device_id=device_id, cards=2))
    assert hardware.architectures == (gfx, gfx)
    assert hardware.unusable is None


def test_version_of_the_kernel_comes_before_the_pci_device(tmp_path):
    machine = sysfs.Machine(tmp_path)
    machine.gpu(1, sysfs.MI50 | {"gfx_target_version": 90008}, minor=128, gid=992)
    assert read_hardware(machine).architectures == ("gfx908",)
    machine.gpu(1, sysfs.MI50 | {"gfx_target_version": 0}, minor=128, gid=992)  # ROCr's thunk asks its table then, too
    assert read_hardware(machine).architectures == ("gfx906",)


def test_card_that_nothing_names_is_unusable_and_there(tmp_path):
    hardware = read_hardware(sysfs.old_kernel(tmp_path, cards=2))
    assert hardware.unusable == "2 AMD card(s) of PCI device 0xfffe are there, and their architecture is not known"


@pytest.mark.parametrize(
    ("driver", "words"),
    [
        (None, "0000:03:00.0, PCI device 0x744c, gfx1100): the amdgpu driver is not loaded"),
        ("vfio-pci", "the driver of the card is vfio-pci, and ROCm needs amdgpu"),
    ],
)
def test_card_on_the_bus_without_its_driver_is_unusable_and_named(tmp_path, driver, words):
    machine = machines.unserved(tmp_path, driver=driver)
    hardware = read_hardware(machine)
    assert words in hardware.unusable
    assert hardware.unusable.startswith("1 AMD card(s) are there and cannot be used (0000:03:00.0")


@pytest.mark.parametrize("build", [sysfs.no_driver, machines.mi50])
def test_machine_without_a_card_or_with_a_sound_one_has_nothing_unusable(tmp_path, build):
    assert read_hardware(build(tmp_path)).unusable is None


def test_container_that_hides_all_cards_has_them_unusable_with_the_reason(tmp_path):
    machine = sysfs.two_rx_7900_xt(tmp_path)
    machine.withhold(1)
    machine.withhold(2)
    assert "2 GPU node(s) are hidden" in read_hardware(machine).unusable


@pytest.mark.parametrize(
    ("changed", "integrated"),
    [
        # Mendocino, as Linux before 6.1 and Windows name it: no table has gfx1037, its device id is a processor's
        ({"gfx_target_version": 100307, "device_id": 0x1506, "unique_id": 0}, True),
        ({"gfx_target_version": 130001, "device_id": 0x1FFF, "unique_id": 0}, True),  # newer than every table
        ({"gfx_target_version": 130001, "device_id": 0x1FFF, "unique_id": 77}, False),
        ({"gfx_target_version": 70001, "device_id": 0x67B0, "unique_id": 0}, False),  # Hawaii, before there were ids
        ({"gfx_target_version": 110000, "unique_id": 0}, False),  # known by its name, whatever an old driver leaves out
    ],
)
def test_card_of_no_table_is_a_processors_graphics_by_its_device_or_its_missing_id(tmp_path, changed, integrated):
    machine = sysfs.Machine(tmp_path)
    machine.gpu(1, sysfs.RX_7900_XT | changed, minor=128, gid=992)
    assert read_hardware(machine).cards[0].integrated is integrated
