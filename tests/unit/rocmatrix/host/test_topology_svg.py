"""The picture of a machine's links."""

import subprocess
from xml.etree import ElementTree

import pytest

from rocmatrix.host import topology, topology_svg
from tests.fixtures import browser, machines, sysfs
from tests.fixtures.topologies import drawn

SVG = "{http://www.w3.org/2000/svg}"


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


def test_browser_shows_the_picture(tmp_path):
    picture = drawn(machines.mi300x_cpx(tmp_path / "machine"))
    file, shot = tmp_path / "picture.svg", tmp_path / "picture.png"
    file.write_text(topology_svg.svg(picture))
    argv = [browser.chromium(), "--headless", "--disable-gpu", "--no-sandbox", f"--user-data-dir={tmp_path}/profile"]
    argv += [f"--screenshot={shot}", "--window-size=900,1400", file.as_uri()]
    subprocess.run(argv, capture_output=True, check=True, timeout=60)
    assert shot.stat().st_size > 20_000  # an empty page of this size is below 10 kB


def test_table_of_more_cards_than_it_has_room_for_states_what_is_left_out(tmp_path):
    machine = sysfs.Machine(tmp_path)
    for number in range(1, 21):
        machine.gpu(number, sysfs.MI50, minor=127 + number, gid=992, unique_id=number)
    picture = drawn(machine)
    assert "16 of 20, the first" in topology.text(picture)
    assert topology_svg.svg(picture).count('class="cell-self"') == 16
