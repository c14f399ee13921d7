"""The picture of a machine: places, the nearest way of each pair, text and SVG."""

from pathlib import Path

import pytest

from rocmatrix.host import topology, topology_svg
from rocmatrix.host.hardware import detect
from tests.fixtures import machines, sysfs
from tests.fixtures.topologies import drawn

RECORDED = Path(__file__).resolve().parents[5] / "shared" / "data" / "kfd" / "mi210-8x"


def test_two_cards_over_pcie(tmp_path):
    text = topology.text(drawn(machines.two_rx_7900_xt(tmp_path)))
    assert text.splitlines()[0] == "node 0: 24 cores, 64 GiB"
    assert "  card 0: gfx1100 20 GiB 0000:03:00.0; PCIe, weight 20, 16.0 GB/s; slot x8 of x16" in text
    assert "~PCIe 40" in text
    assert "~ through another node" in text


def test_shortest_of_several_links_is_drawn(tmp_path):
    machine = machines.two_rx_7900_xt(tmp_path)
    machines.link(machine, 1, 2, kind=machines.XGMI, weight=15)
    picture = drawn(machine)
    assert (picture.links[0, 1].kind, picture.links[1, 0].kind) == ("XGMI", "PCIe")


def test_pair_without_a_link_is_named(tmp_path):
    machine = machines.two_rx_7900_xt(tmp_path)
    (tmp_path / sysfs.TOPOLOGY / "1/p2p_links/0/properties").unlink()
    picture = drawn(machine)
    assert topology.mark(picture, *picture.cards) == "none"
    assert 'class="cell-none"' in topology_svg.svg(picture)


def test_missing_card_has_its_reason_and_hidden_ones_are_counted(tmp_path):
    machine = machines.two_rx_7900_xt(tmp_path)
    machine.withhold(1)
    assert "1 card(s) more are hidden by the container" in topology.text(drawn(machine))
    machine.withhold(2)
    assert "no card: 2 GPU node(s) are hidden" in topology.text(drawn(machine))


def test_integrated_card_is_at_home_with_its_processor(tmp_path):
    machine = sysfs.Machine(tmp_path)
    machine.topology(0, sysfs.CPU | {"simd_count": 44, "simd_per_cu": 4}, gpu_id=1234, banks=[])
    (place,) = drawn(machine).places
    assert (place.processor.node, len(place.cards)) == (0, 1)


def test_cards_without_links_have_a_place_of_their_own(tmp_path):
    text = topology.text(drawn(sysfs.two_rx_7900_xt(tmp_path)))
    assert "no NUMA node reported\n  card 0: gfx1100" in text


def test_recorded_machine_has_two_hives_and_their_links():
    if not RECORDED.is_dir():
        pytest.skip(f"the recorded tree is not here: {RECORDED}")
    picture = topology.picture(detect(RECORDED))
    assert [len(place.cards) for place in picture.places] == [4, 4]
    assert len(topology.hives(picture.cards)) == 2
    marks = [[topology.mark(picture, one, two) for two in picture.cards] for one in picture.cards]
    assert marks[0] == ["-", *["XGMI 15"] * 3, *["~PCIe 72"] * 4]


def test_partitions_are_named_and_their_table_has_one_row_a_card(tmp_path):
    text = topology.text(drawn(machines.mi300x_cpx(tmp_path, cards=3)))
    lines = text.splitlines()
    assert lines[0] == "24 partitions of 3 card(s), 1 NUMA node(s)"
    assert "partition 7" in text
    assert "kind and the kernel's distance; 3 of 24, the first partition of each card" in text
    assert sum("XGMI 15" in line and not line.startswith("  card") for line in lines) == 3
    assert max(map(len, lines)) < 160
