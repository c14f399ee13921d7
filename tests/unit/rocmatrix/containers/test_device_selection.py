"""A run gets the cards its cell is built for, and only nodes that its user can open."""

from dataclasses import replace

import pytest

from rocmatrix.containers.device_selection import (
    cards_of_shell,
    choose_cards,
    listing,
    usable_nodes,
    visible_devices,
    visible_natively,
)
from rocmatrix.host.hardware import read_hardware
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures import cells, machines, sysfs


def test_cpu_cell_gets_no_card(tmp_path):
    assert choose_cards(cells.CPU, read_hardware(sysfs.two_rx_7900_xt(tmp_path))) == ()


def test_default_is_every_card_of_the_architecture(tmp_path):
    hardware = read_hardware(sysfs.two_rx_7900_xt(tmp_path))
    assert choose_cards(cells.GFX1100, hardware) == hardware.cards
    assert visible_devices(hardware, hardware.cards) is None


def test_integrated_card_next_to_is_left_out_and_hidden(tmp_path):
    hardware = read_hardware(sysfs.desktop_with_igpu(tmp_path))
    chosen = choose_cards(cells.GFX1100, hardware)
    assert [card.gfx for card in chosen] == ["gfx1100"]
    assert visible_devices(hardware, chosen) == "GPU-13a10000000000a2"


def test_card_without_an_id_is_counted_among_those_passed_in(tmp_path):
    hardware = read_hardware(sysfs.desktop_with_igpu(tmp_path))
    assert visible_devices(hardware, hardware.cards[:1]) == "0"
    swapped = replace(hardware, cards=hardware.cards[::-1])
    assert visible_devices(swapped, swapped.cards[1:]) == "0"


def test_integrated_card_that_the_cell_is_built_for_is_taken(tmp_path):
    hardware = read_hardware(sysfs.strix_halo(tmp_path))
    assert choose_cards(cells.GFX1151, hardware) == hardware.cards


def test_cards_are_chosen_by_number_in_any_order_and_named_by_uuid(tmp_path):
    hardware = read_hardware(sysfs.two_rx_7900_xt(tmp_path))
    chosen = choose_cards(cells.GFX1100, hardware, [1, 1])
    assert [card.index for card in chosen] == [1]
    assert visible_devices(hardware, chosen) == "GPU-13a10000000000a2"


def test_partitions_that_share_a_unique_id_are_counted(tmp_path):
    cards = tuple(replace(card, unique_id=7) for card in read_hardware(sysfs.twelve_nodes(tmp_path)).cards)
    hardware = replace(read_hardware(sysfs.no_driver(tmp_path)), cards=cards)
    assert visible_devices(hardware, cards[3:6]) == "0,1,2"


def of_two_kinds(tmp_path, *, unique_id):
    """An RX 580, with which newer ROCm does not start (ROCm/rocm-systems#6883), before a card that trains."""
    machine = sysfs.Machine(tmp_path)
    machine.amdgpu(kfd_gid=992)
    machine.cpu(0)
    polaris = sysfs.RX_7900_XT | {"gfx_target_version": 80003, "device_id": 0x67DF}
    machine.gpu(1, polaris, minor=128, gid=992, memory=8 * sysfs.GIB, unique_id=0)
    for node in (2, 3):
        own = unique_id and unique_id + node
        machine.gpu(node, sysfs.RX_7900_XT, minor=127 + node, gid=992, memory=20 * sysfs.GIB, unique_id=own)
    return read_hardware(machine)


@pytest.mark.parametrize(
    ("unique_id", "indices", "shown"),
    [
        (0xA0, (), "GPU-00000000000000a2,GPU-00000000000000a3"),
        (0xA0, (2,), "GPU-00000000000000a3"),
        (0, (), "1,2"),
        (0, (2,), "2"),
    ],
)
def test_cards_of_another_architecture_are_hidden_natively_by_their_numbers_among_all(
    tmp_path, unique_id, indices, shown
):
    hardware = of_two_kinds(tmp_path, unique_id=unique_id)
    assert visible_natively(cells.GFX1100, hardware, indices, {}) == {"ROCR_VISIBLE_DEVICES": shown}


def test_partition_is_chosen_natively_by_its_number_among_all(tmp_path):
    cards = tuple(replace(card, unique_id=7) for card in read_hardware(sysfs.twelve_nodes(tmp_path)).cards)
    hardware = replace(read_hardware(sysfs.no_driver(tmp_path)), cards=cards)
    assert visible_natively(cells.GFX906, hardware, (8, 9), {}) == {"ROCR_VISIBLE_DEVICES": "8,9"}


def test_choice_of_the_shell_is_kept_natively_unless_cards_are_named(tmp_path):
    hardware = of_two_kinds(tmp_path, unique_id=0)
    assert visible_natively(cells.GFX1100, hardware, (), {"HIP_VISIBLE_DEVICES": "1"}) == {}
    assert visible_natively(cells.GFX1100, hardware, (1,), {"HIP_VISIBLE_DEVICES": "1"}) != {}


def test_choice_for_opencl_alone_hides_nothing_from_hip_and_is_no_choice(tmp_path):
    hardware, opencl = of_two_kinds(tmp_path, unique_id=0), {"GPU_DEVICE_ORDINAL": "0"}
    for cell in (cells.GFX1100, cells.GFX906):
        assert visible_natively(cell, hardware, (), opencl) == visible_natively(cell, hardware, (), {})
    assert visible_natively(cells.GFX1100, hardware, (), opencl) != {}


def test_run_on_no_card_of_the_cell_hides_the_processors_graphics_alone(tmp_path):
    hardware = read_hardware(sysfs.desktop_with_igpu(tmp_path))
    shown = {"ROCR_VISIBLE_DEVICES": "GPU-13a10000000000a2"}
    assert visible_natively(cells.GFX906, hardware, (), {}) == shown
    assert visible_natively(cells.CPU, hardware, (), {}) == shown


def test_card_unnamed_by_an_old_kernel_is_taken_on_trust(tmp_path):
    hardware = read_hardware(sysfs.old_kernel(tmp_path))
    assert choose_cards(cells.GFX906, hardware) == hardware.cards
    assert listing(hardware.cards) == "card 0 is not named by its old kernel"


def test_missing_card_is_refused_with_the_reason(tmp_path):
    with pytest.raises(RocmatrixError, match=r"RM301(?s:.*)driver is not loaded"):
        choose_cards(cells.GFX1100, read_hardware(sysfs.no_driver(tmp_path)))


@pytest.mark.parametrize(("cell", "indices", "words"), [(cells.GFX906, None, "gfx906"), (cells.GFX1100, [2], "card 2")])
def test_card_that_is_not_there_is_refused_with_those_that_are(tmp_path, cell, indices, words):
    hardware = read_hardware(sysfs.desktop_with_igpu(tmp_path))
    with pytest.raises(RocmatrixError, match="RM303") as refusal:
        choose_cards(cell, hardware, indices)
    assert words in refusal.value.what
    assert refusal.value.where == "card 0 is gfx1036 (integrated), card 1 is gfx1100"


def test_card_that_the_release_has_no_code_for_is_refused_with_the_numbers_that_fit(tmp_path):
    hardware = read_hardware(sysfs.desktop_with_igpu(tmp_path))
    for indices in ([0], [0, 1]):
        with pytest.raises(RocmatrixError, match="RM303") as refusal:
            choose_cards(cells.GFX1100, hardware, indices)
        assert "no code for card 0, which is gfx1036" in refusal.value.what
        assert "--cards 1" in refusal.value.next
    assert [card.index for card in choose_cards(cells.GFX1100, hardware, [1])] == [1]


@pytest.mark.parametrize(
    ("gfx", "environment"),
    [
        ("gfx1101", ()),
        (None, ()),
        ("gfx1036", ("HSA_OVERRIDE_GFX_VERSION",)),
        ("gfx1036", ("HSA_OVERRIDE_GFX_VERSION_0",)),
    ],
)
def test_unlike_card_is_taken_where_the_release_holds_its_code_or_it_is_taken_for_another(tmp_path, gfx, environment):
    hardware = read_hardware(sysfs.desktop_with_igpu(tmp_path))
    unlike = replace(hardware, cards=(replace(hardware.cards[0], gfx=gfx), *hardware.cards[1:]))
    chosen = choose_cards(cells.GFX1100, unlike, [0, 1], environment=environment)
    assert [card.index for card in chosen] == [0, 1]


def test_selection_has_the_nodes_of_the_chosen_cards_only(tmp_path):
    hardware = read_hardware(sysfs.two_rx_7900_xt(tmp_path))
    nodes = usable_nodes(hardware, hardware.cards[1:], user="1000:1000")
    assert [node.path for node in nodes] == ["/dev/kfd", "/dev/dri/renderD129"]
    assert usable_nodes(hardware, (), user="1000:1000") == ()


@pytest.mark.parametrize("missing", ["dev/kfd", "dev/dri/renderD128"])
def test_missing_node_is_named(tmp_path, missing):
    machine = sysfs.two_rx_7900_xt(tmp_path)
    (tmp_path / missing).unlink()
    hardware = read_hardware(machine)
    with pytest.raises(RocmatrixError, match=f"RM302(?s:.*)/{missing} is not there"):
        usable_nodes(hardware, hardware.cards, user="1000:1000")


@pytest.mark.parametrize(
    ("owner", "user", "opens"),
    [
        ((0, 0, 0o600), "1000:1000", False),
        ((0, 0, 0o660), "1000:1000", False),  # the group is root's, and that one is never given
        ((0, 992, 0o640), "1000:1000", False),
        ((0, 0, 0o600), "0:0", True),
        ((0, 992, 0o660), "1000:1000", True),
        ((0, 0, 0o666), "1000:1000", True),
    ],
)
def test_node_that_stays_closed_to_the_user_is_refused(tmp_path, owner, user, opens):
    machine = sysfs.two_rx_7900_xt(tmp_path)
    machine.owners["dev/kfd"] = owner
    hardware = read_hardware(machine)
    if opens:
        assert usable_nodes(hardware, hardware.cards, user=user)
    else:
        with pytest.raises(RocmatrixError, match=r"RM302(?s:.*)/dev/kfd cannot be opened by user 1000:1000"):
            usable_nodes(hardware, hardware.cards, user=user)


def test_integrated_card_among_cards_that_an_old_kernel_does_not_name_is_not_taken(tmp_path):
    hardware = read_hardware(sysfs.desktop_with_igpu(tmp_path))
    unnamed = replace(hardware, cards=tuple(replace(card, gfx=None) for card in hardware.cards))
    assert [card.integrated for card in unnamed.cards].count(True) == 1
    assert [card.integrated for card in choose_cards(cells.GFX1100, unnamed)] == [False]
    alone = replace(unnamed, cards=tuple(card for card in unnamed.cards if card.integrated))
    with pytest.raises(RocmatrixError, match="RM303"):
        choose_cards(cells.GFX1100, alone)


@pytest.mark.parametrize("machine", [sysfs.two_rx_7900_xt, sysfs.no_driver])
def test_cards_named_for_a_cpu_cell_are_refused_and_not_left_out(tmp_path, machine):
    hardware = read_hardware(machine(tmp_path))
    with pytest.raises(RocmatrixError, match="RM404" if hardware.cards else "RM301") as caught:
        choose_cards(cells.CPU, hardware, [0])
    assert "--cards 0 names cards" in caught.value.what


@pytest.mark.parametrize(
    ("variables", "cards"),
    [
        ({}, ()),
        ({"HIP_VISIBLE_DEVICES": ""}, ()),
        ({"HIP_VISIBLE_DEVICES": "1"}, (1,)),
        ({"ROCR_VISIBLE_DEVICES": "1,0"}, (0, 1)),
        ({"ROCR_VISIBLE_DEVICES": "GPU-13a10000000000a2"}, (1,)),
        ({"ROCR_VISIBLE_DEVICES": "1", "HIP_VISIBLE_DEVICES": "0"}, (1,)),
        ({"CUDA_VISIBLE_DEVICES": "0"}, (0,)),
        ({"HIP_VISIBLE_DEVICES": " 1 , 1", "CUDA_VISIBLE_DEVICES": "0"}, (1,)),
    ],
)
def test_cards_of_a_shell_are_counted_as_rocr_and_hip_count_them(tmp_path, variables, cards):
    found, shown = cards_of_shell(read_hardware(sysfs.two_rx_7900_xt(tmp_path)), variables)
    assert found == cards
    assert bool(shown) == bool(cards)


@pytest.mark.parametrize("text", ["7", "-1", "GPU-0", "0;1", "one"])
def test_variable_of_a_shell_that_names_no_card_is_refused_by_its_name(tmp_path, text):
    with pytest.raises(RocmatrixError, match=r"RM303[\s\S]*HIP_VISIBLE_DEVICES"):
        cards_of_shell(read_hardware(sysfs.two_rx_7900_xt(tmp_path)), {"HIP_VISIBLE_DEVICES": text})


def test_refusal_names_the_card_that_is_there_and_serves_no_run(tmp_path):
    machine = read_hardware(machines.unserved(tmp_path, driver="vfio-pci"))
    with pytest.raises(RocmatrixError, match="RM301") as caught:
        choose_cards(cells.GFX1100, machine)
    assert "1 AMD card(s) are there and cannot be used (0000:03:00.0, PCI device 0x744c, gfx1100)" in str(caught.value)
