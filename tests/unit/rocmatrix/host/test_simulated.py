"""A simulated machine is worked on under names of its own, and all that comes of it is marked."""

import pytest

from rocmatrix.containers.runspec import Chosen, run_spec
from rocmatrix.containers.settings import Device, Mount
from rocmatrix.evidence import from_events
from rocmatrix.host import simulated
from rocmatrix.images import build, labels
from rocmatrix.nightly import bake
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures import cells, sysfs


def test_real_machine_has_no_mark_and_the_tags_that_people_use(monkeypatch):
    monkeypatch.delenv(simulated.VARIABLE, raising=False)
    assert not simulated.here().simulated
    assert build.tag(cells.CPU) == f"rocmatrix:{cells.CPU.name}"
    assert labels.SIMULATED not in labels.written(inputs="a" * 64)
    assert "simulated" not in from_events.marks_of(cells.CPU, labels={})


def test_simulated_machine_gives_its_own_nodes_and_marks_all_that_is_made(tmp_path, monkeypatch):
    sysfs.two_rx_7900_xt(tmp_path)
    monkeypatch.setenv(simulated.VARIABLE, str(tmp_path))
    host = simulated.here()
    assert (host.simulated, host.architectures) == (True, ("gfx1100", "gfx1100"))
    for node in tmp_path.glob("dev/**/*"):
        node.chmod(0o666)
    spec = run_spec(
        cells.GFX1100, simulated.here(), Chosen(image="i", command=["smoke"], run_folder=tmp_path, user="1:1")
    )
    assert [(d.host, d.container) for d in spec.of(Device)] == [
        (f"{tmp_path}/dev/{name}", f"/dev/{name}") for name in ("kfd", "dri/renderD128", "dri/renderD129")
    ]
    volumes = [mount.origin for mount in spec.of(Mount) if mount.kind == "volume"]
    assert volumes == [f"rocmatrix-cache-simulated-{cells.GFX1100.name}-1"]
    assert build.tag(cells.CPU) == f"rocmatrix:simulated-{cells.CPU.name}"
    assert bake.candidate(cells.CPU) == f"rocmatrix:night-simulated-{cells.CPU.name}"
    assert labels.written(inputs="a" * 64)[labels.SIMULATED] == "yes"
    assert from_events.marks_of(cells.CPU, labels={}) == ("simulated",)


def test_image_of_a_simulation_is_marked_on_a_real_machine_and_the_other_way(tmp_path, monkeypatch):
    monkeypatch.delenv(simulated.VARIABLE, raising=False)
    assert from_events.marks_of(cells.CPU, labels={labels.SIMULATED: "yes"}) == ("simulated",)
    monkeypatch.setenv(simulated.VARIABLE, str(tmp_path))
    host = simulated.here()
    monkeypatch.delenv(simulated.VARIABLE)
    assert from_events.marks_of(cells.CPU, labels={}, host=host) == ("simulated",)


def test_folder_that_is_not_there_is_no_machine_without_a_card(monkeypatch, tmp_path):
    monkeypatch.setenv(simulated.VARIABLE, str(tmp_path / "absent"))
    with pytest.raises(RocmatrixError, match="no such folder") as refused:
        simulated.here()
    assert (refused.value.code, simulated.VARIABLE in str(refused.value.where)) == ("RM310", True)
