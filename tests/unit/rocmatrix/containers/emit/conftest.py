"""Hosts and their run specs for the emitters."""

from pathlib import Path

import pytest

from rocmatrix.containers.runspec import Chosen, run_spec
from rocmatrix.host.hardware import read_hardware
from tests.fixtures import cells, sysfs


@pytest.fixture
def two_cards(tmp_path):
    """Return a function: the render group of a host with two RX 7900 XT, to its hardware and a spec on it."""

    def two_cards(gid=992, **choices):
        hardware = read_hardware(sysfs.two_rx_7900_xt(tmp_path / str(gid), render_gid=gid))
        plan = {"command": ["smoke"], "run_folder": Path("/srv/training"), "user": "1000:1000"} | choices
        return hardware, run_spec(cells.GFX1100, hardware, Chosen(image=f"rocmatrix:{cells.GFX1100.name}", **plan))

    return two_cards
