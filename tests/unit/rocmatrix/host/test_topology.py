"""The picture of a machine: places, the nearest way of each pair, text and SVG."""

import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from rocmatrix.host import topology, topology_svg
from rocmatrix.host.hardware import detect, survey
from tests.fixtures import browser, machines, sysfs

RECORDED = Path(__file__).resolve().parents[5] / "shared" / "data" / "kfd" / "mi210-8x"
SVG = "{http://www.w3.org/2000/svg}"


def drawn(machine):
    return topology.picture(survey(machine))


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


@pytest.mark.parametrize(
    "build",
    [machines.two_rx_7900_xt, machines.strix_halo, machines.mi300x_cpx, machines.desktop_with_igpu, sysfs.no_driver],
)
def test_picture_is_well_formed_holds_every_card_and_no_script(tmp_path, build):
    picture = drawn(build(tmp_path))
    root = ElementTree.fromstring(topology_svg.svg(picture))
    boxes = [box for box in root.iter(f"{SVG}rect") if (box.get("class") or "").startswith("card")]
    assert len(boxes) == len(picture.cards)
    assert not list(root.iter(f"{SVG}script"))
    width, height = (float(root.get(side)) for side in ("width", "height"))
    for box in [*boxes, *root.iter(f"{SVG}text")]:
        x, y = float(box.get("x")), float(box.get("y"))
        assert 0 <= x <= width - float(box.get("width") or 0)
        assert 0 <= y <= height - float(box.get("height") or 0)


def test_names_from_the_machine_are_text_and_never_markup(tmp_path):
    machine = machines.two_rx_7900_xt(tmp_path)
    machine.write("sys/bus/pci/devices/0000:01:00.0/current_link_speed", "16.0 GT/s <script>&\n")
    assert "<script>" not in topology_svg.svg(drawn(machine))


def test_recorded_machine_has_two_hives_and_their_links():
    if not RECORDED.is_dir():
        pytest.skip(f"the recorded tree is not here: {RECORDED}")
    picture = topology.picture(detect(RECORDED))
    assert [len(place.cards) for place in picture.places] == [4, 4]
    assert len(topology.hives(picture.cards)) == 2
    marks = [[topology.mark(picture, one, two) for two in picture.cards] for one in picture.cards]
    assert marks[0] == ["-", *["XGMI 15"] * 3, *["~PCIe 72"] * 4]


def test_browser_shows_the_picture(tmp_path):
    picture = drawn(machines.mi300x_cpx(tmp_path / "machine"))
    file, shot = tmp_path / "picture.svg", tmp_path / "picture.png"
    file.write_text(topology_svg.svg(picture))
    argv = [browser.chromium(), "--headless", "--disable-gpu", "--no-sandbox", f"--user-data-dir={tmp_path}/profile"]
    argv += [f"--screenshot={shot}", "--window-size=900,1400", file.as_uri()]
    subprocess.run(argv, capture_output=True, check=True, timeout=60)
    assert shot.stat().st_size > 20_000  # an empty page of this size is below 10 kB


def test_partitions_are_named_and_their_table_has_one_row_a_card(tmp_path):
    text = topology.text(drawn(machines.mi300x_cpx(tmp_path, cards=3)))
    lines = text.splitlines()
    assert lines[0] == "24 partitions of 3 card(s), 1 NUMA node(s)"
    assert "partition 7" in text
    assert "kind and the kernel's distance; 3 of 24, the first partition of each card" in text
    assert sum("XGMI 15" in line and not line.startswith("  card") for line in lines) == 3
    assert max(map(len, lines)) < 160


def test_table_of_more_cards_than_it_has_room_for_states_what_is_left_out(tmp_path):
    machine = sysfs.Machine(tmp_path)
    for number in range(1, 21):
        machine.gpu(number, sysfs.MI50, minor=127 + number, gid=992, unique_id=number)
    picture = drawn(machine)
    assert "16 of 20, the first" in topology.text(picture)
    assert topology_svg.svg(picture).count('class="cell-self"') == 16
