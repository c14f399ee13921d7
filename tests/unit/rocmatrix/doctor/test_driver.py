"""Checks of the driver, its kernel and the device nodes."""

import shutil
from dataclasses import replace

import pytest

from rocmatrix.doctor import driver, host
from rocmatrix.doctor.host import User
from tests.fixtures import machines, sysfs
from tests.fixtures.cells import CPU, GFX1100, GFX1151
from tests.fixtures.doctor import GIB, LIVE, extra_card, findings_on


def test_cells_rocm_is_held_against_the_drivers_window(tmp_path):
    machine = machines.two_rx_7900_xt(tmp_path)
    assert findings_on(machine, cell=GFX1100)["D102"].status == "ok"
    machine.write("sys/module/amdgpu/version", "6.3.6\n")
    found = findings_on(machine, cell=GFX1100)["D102"]
    assert (found.status, "serves ROCm >=5.6,<6.3; the cell has 6.3" in found.seen) == ("warning", True)
    machine.write("sys/module/amdgpu/version", "9.9.9\n")
    assert findings_on(machine, cell=GFX1100)["D102"].status == "unknown"
    (tmp_path / "sys/module/amdgpu/version").unlink()
    assert findings_on(machine, cell=GFX1100)["D102"].status == "note"


def test_kernel_known_to_be_bad_is_named_for_its_card_alone(tmp_path):
    machine = machines.strix_halo(tmp_path)
    assert findings_on(machine, cell=GFX1151)["D103"].status == "ok"
    machine.write("proc/sys/kernel/osrelease", "6.14.0-24-generic\n")
    found = findings_on(machine)["D103"]
    assert (found.status, "6.14.0-24-generic with gfx1151" in found.seen) == ("warning", True)
    machine.write("proc/sys/kernel/osrelease", "6.14.0-1010-oem\n")
    assert findings_on(machine)["D103"].status == "ok"
    machine.write("proc/sys/kernel/osrelease", "unknown\n")
    assert findings_on(machine)["D103"].status == "unknown"


def test_kernel_is_not_judged_by_the_ranges_of_amds_driver(tmp_path):
    machine = sysfs.Machine(tmp_path)
    machine.amdgpu(kfd_gid=992, dkms="6.14.14")
    machine.gpu(1, sysfs.STRIX_HALO | {"gfx_target_version": 110500}, minor=128, gid=992, memory=GIB)
    assert findings_on(machine)["D103"].status == "warning"
    (tmp_path / "sys/module/amdgpu/version").unlink()
    machine.write("proc/sys/kernel/osrelease", "6.14.14\n")
    assert findings_on(machine)["D103"].status == "ok"


def test_named_cell_for_a_card_makes_its_absence_an_error(tmp_path):
    machine = sysfs.no_driver(tmp_path)
    assert findings_on(machine, cell=GFX1100)["D101"].status == "error"
    assert findings_on(machine, cell=CPU)["D101"].status == "not applicable"


def test_wsl2_is_recognised_and_not_examined(tmp_path):
    found = findings_on(sysfs.wsl2(tmp_path))
    assert (found["D101"].status, "/dev/dxg" in found["D101"].seen) == ("note", True)
    assert found["D104"].status == "not applicable"


def test_container_without_sys_is_given_the_way_to_it_and_no_driver_to_load(tmp_path):
    machine = sysfs.Machine(tmp_path)
    machine.device("dev/kfd", gid=992)
    found = findings_on(machine)
    assert (found["D101"].status, found["D104"].status) == ("unknown", "error")
    assert "--volume=/sys:/sys:ro" in found["D104"].fix


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("modprobe.blacklist=nouveau,amdgpu quiet", "modprobe.blacklist=nouveau,amdgpu"),
        ("module_blacklist=amdgpu", "module_blacklist=amdgpu"),
        ("nomodeset", "nomodeset"),
        ("amdgpu.modeset=0", "amdgpu.modeset=0"),
        ("modprobe.blacklist=radeon amdgpu.dc=1", None),
    ],
)
def test_words_that_keep_the_driver_away_are_named(tmp_path, words, named):
    machine = machines.unserved(tmp_path)
    machine.write("proc/cmdline", f"root=/dev/sda1 {words}\n")
    found = findings_on(machine)
    expected = f"take {named} out of the kernel's command line" if named else "sudo "
    assert found["D101"].fix.startswith(expected)
    assert found["D104"].fix.startswith(expected)


def test_container_without_any_card_is_an_error(tmp_path):
    machine = machines.two_rx_7900_xt(tmp_path)
    machine.withhold(1)
    machine.withhold(2)
    found = findings_on(machine)
    assert (found["D105"].status, found["D104"].status) == ("error", "note")


def test_tree_without_dev_has_no_findings_on_nodes(tmp_path):
    machines.two_rx_7900_xt(tmp_path)
    found = findings_on(sysfs.Files(tmp_path / "sys"), user=None)
    assert (found["D110"].status, found["D111"].status) == ("unknown", "unknown")


def test_root_opens_everything(tmp_path):
    machine = machines.two_rx_7900_xt(tmp_path)
    assert findings_on(machine, user=User(uid=0, groups=frozenset({0})))["D110"].status == "ok"


def test_node_whose_access_list_names_the_user_is_open(tmp_path, monkeypatch):
    monkeypatch.setattr(driver, "is_listed", lambda node, uid: (node.path, uid) == ("/dev/kfd", 1000))
    found = findings_on(machines.two_rx_7900_xt(tmp_path), user=User(uid=1000, groups=frozenset({1000})))
    assert (found["D110"].status, found["D111"].status) == ("ok", "error")


def test_missing_card_next_to_a_present_one_stops_no_run(tmp_path):
    machine = machines.two_rx_7900_xt(tmp_path)
    extra_card(machine)
    assert findings_on(machine)["D104"].status == "warning"


@pytest.mark.parametrize(("cell", "status"), [(None, "note"), (GFX1100, "error")])
def test_card_of_the_radeon_driver_is_named_and_amdgpu_is_not_advised(tmp_path, cell, status):
    found = findings_on(machines.unserved(tmp_path, driver="radeon", device="0x6818"), cell=cell)["D101"]
    assert (found.status, "its driver is radeon" in found.seen) == (status, True)
    assert "modprobe amdgpu" not in (found.fix or "")


def test_card_given_away_next_to_one_that_serves_is_named_with_its_driver_and_the_way_back(tmp_path):
    machine = machines.two_rx_7900_xt(tmp_path)
    extra_card(machine)
    place = tmp_path / "sys/bus/pci/drivers/vfio-pci"
    place.mkdir(parents=True)
    (tmp_path / "sys/bus/pci/devices/0000:0b:00.0/driver").symlink_to(place)
    found = findings_on(machine)["D104"]
    assert found.seen == "0000:0b:00.0 (its driver is vfio-pci) is not in it"
    assert "echo 0000:0b:00.0 | sudo tee /sys/bus/pci/drivers/vfio-pci/unbind" in found.fix


def test_missing_interface_is_the_drivers_where_it_is_not_loaded(tmp_path):
    machine = machines.two_rx_7900_xt(tmp_path)
    (tmp_path / "dev/kfd").unlink()
    assert "--device=/dev/kfd" in findings_on(machine)["D110"].fix
    shutil.rmtree(tmp_path / "sys/module/amdgpu")
    assert findings_on(machine)["D110"].fix == "sudo modprobe amdgpu"


def test_card_given_to_a_virtual_machine_is_an_error_with_the_way_back(tmp_path):
    found = findings_on(machines.unserved(tmp_path, driver="vfio-pci"))["D101"]
    assert found.status == "error"
    assert "drivers/vfio-pci/unbind" in found.fix


def test_tree_without_a_topology_is_not_reported_as_hiding_nothing(tmp_path):
    assert findings_on(machines.unserved(tmp_path))["D105"].status == "unknown"
    assert findings_on(sysfs.no_driver(tmp_path / "none"))["D105"].status == "not applicable"


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, ""), (1, "a"), (4, "a, b, c, d"), (5, "a, b, c, d and 1 more"), (6, "a, b, c, d and 2 more")],
)
def test_list_is_shortened_from_the_fifth_name_on(count, text):
    assert driver.shortened("abcdef"[:count]) == text


def test_inventory_counts_cards_of_a_kind(tmp_path):
    machine = host.read(machines.desktop_with_igpu(tmp_path), **LIVE).hardware
    assert "1 x gfx1036 (integrated)" in driver.inventory(machine)
    twice = replace(machine, cards=(machine.cards[0], machine.cards[0], replace(machine.cards[0], gfx=None)))
    assert driver.inventory(twice).startswith("2 x gfx1036 (integrated)")
    assert "1 x not named by its old kernel" in driver.inventory(twice)


@pytest.fixture
def cards(tmp_path):
    return host.read(machines.two_rx_7900_xt(tmp_path), **LIVE)


@pytest.mark.parametrize(
    ("user", "status"),
    [
        (User(uid=1000, groups=frozenset({992})), "ok"),
        (User(uid=1000, groups=frozenset({991})), "error"),
        (User(uid=0, groups=frozenset()), "ok"),
        (None, "unknown"),
    ],
)
def test_nodes_are_opened_by_their_group_or_root(cards, user, status):
    found = [check(replace(cards, user=user)) for check in (driver.interface, driver.render_nodes)]
    assert [each.status for each in found] == [status, status]
    assert ("getent group 992" in (found[0].fix or "")) == (status == "error")


@pytest.mark.parametrize(
    ("gid", "mode", "status", "words"),
    [
        (992, 0o660, "ok", "--group-add 992"),
        (0, 0o660, "warning", "belongs to root's group"),
        (0, 0o666, "ok", "no group is needed"),
    ],
)
def test_group_that_a_run_is_given_is_never_roots(cards, gid, mode, status, words):
    node = replace(cards.hardware.kfd, gid=gid, mode=mode)
    machine = replace(cards.hardware, kfd=node, cards=())
    found = driver.groups(replace(cards, hardware=machine))
    assert (found.status, words in found.seen) == (status, True)


@pytest.mark.parametrize(
    ("hidden", "missing", "status"), [(2, 1, "note"), (1, 1, "note"), (0, 1, "warning"), (1, 2, "warning")]
)
def test_missing_card_is_explained_by_as_many_hidden_ones(cards, hidden, missing, status):
    devices = (*cards.amd_devices, *(f"0000:{bus:02x}:00.0" for bus in range(0x20, 0x20 + missing)))
    machine = replace(cards.hardware, hidden_nodes=hidden)
    assert driver.listed(replace(cards, hardware=machine, amd_devices=devices)).status == status


def test_function_of_a_listed_card_is_no_missing_one(cards):
    (address, *_) = [card.pci_address for card in cards.hardware.cards]
    assert driver.listed(replace(cards, amd_devices=(*cards.amd_devices, f"{address[:-1]}1"))).status == "ok"


def test_driver_is_loaded_though_no_version_can_be_read(cards):
    assert driver.loaded(cards).status == "ok"
    machine = replace(cards.hardware, driver=None)
    assert driver.loaded(replace(cards, hardware=machine)).status == "unknown"
    unserved = replace(machine, cards=(), devices=())
    found = driver.loaded(replace(cards, hardware=unserved, served=False))
    assert (found.status, found.fix) == ("error", "sudo modprobe amdgpu")


@pytest.mark.parametrize("uid", [0, 1000])  # root of a user namespace is not above the mode of a node without an owner
def test_node_without_an_owner_in_an_unprivileged_container_is_mended_on_its_host(tmp_path, uid):
    machine = machines.two_rx_7900_xt(tmp_path)
    machine.owners = dict.fromkeys(machine.owners, (65534, 65534, 0o660))  # numbers that its namespace has none for
    found = findings_on(machine, user=User(uid=uid, groups=frozenset({uid})))
    assert found["D110"].status == found["D111"].status == "error"
    assert "usermod" not in found["D110"].fix
    assert "devM: /dev/kfd,gid=N" in found["D110"].fix
    assert "devM: /dev/dri/renderD128,gid=N" in found["D111"].fix
