"""Snapshots: what needs two, cards that go, partitions, and a recording of eight cards."""

import shutil
import struct
from pathlib import Path

import pytest

from rocmatrix.host import gpu_metrics
from rocmatrix.host.sysfs import Files
from rocmatrix.host.watch import frame, snapshot
from tests.fixtures import machines, sysfs

RECORDED = Path(__file__).parents[6] / "shared/data/kfd/mi210-8x"
CARD = "0000:03:00.0"
FOLDER = f"sys/bus/pci/devices/{CARD}"


class Clock:
    """Seconds that pass when a test lets them."""

    def __init__(self):
        self.at = 0.0

    def __call__(self):
        return self.at


def client(machine, spent, *, pid=7):
    rows = f"drm-driver:\tamdgpu\ndrm-pdev:\t{CARD}\ndrm-client-id:\t1\ndrm-memory-vram:\t1 GiB\n"
    machine.write(f"proc/{pid}/fdinfo/3", rows + f"drm-engine-gfx:\t{spent} ns\n")


def counted(cycles, *causes, version=(1, 7)):
    """Return a table that counts cycles: those in all, then the throttled ones of each cause."""
    table = bytearray(machines.metrics(version=version, size=256))
    struct.pack_into("<6I", table, gpu_metrics.CYCLES[version], cycles, *causes)
    return bytes(table)


@pytest.fixture
def machine(tmp_path):
    return machines.two_rx_7900_xt(tmp_path)


def test_load_of_a_process_takes_two_snapshots(machine):
    clock = Clock()
    watch = snapshot.Watch(machine, clock=clock)
    client(machine, 10**9)
    assert watch.take().processes[0].load_percent is None
    clock.at = 2.0
    client(machine, 2 * 10**9)
    assert watch.take().processes[0].load_percent == 50
    clock.at = 3.0
    client(machine, 10**9)  # another process of the same number
    assert watch.take().processes[0].load_percent is None


def test_load_of_zero_is_unknown_while_a_process_uses_the_card(machine):
    clock = Clock()
    watch = snapshot.Watch(machine, clock=clock)
    client(machine, 0)
    assert watch.take().cards[0].sensors.load_percent == 0
    clock.at = 1.0
    client(machine, 10**9)
    assert [card.sensors.load_percent for card in watch.take().cards] == [None, 0]


def test_load_of_a_compute_process_without_engine_times_is_unknown(machine):
    clock = Clock()
    watch = snapshot.Watch(machine, clock=clock)
    client(machine, 5)
    machine.write("sys/class/kfd/kfd/proc/7/vram_40001", "1024\n")
    watch.take()
    clock.at = 1.0
    assert watch.take().processes[0].load_percent is None


def test_throttling_by_counted_cycles_takes_two_tables(machine, tmp_path):
    (tmp_path / FOLDER / "gpu_metrics").write_bytes(counted(1000, 0, 100, 0, 0, 0))
    watch = snapshot.Watch(machine)
    assert watch.take().cards[0].throttled is None
    (tmp_path / FOLDER / "gpu_metrics").write_bytes(counted(2000, 0, 350, 0, 9, 0))
    assert watch.take().cards[0].throttled == ("power 25%",)
    (tmp_path / FOLDER / "gpu_metrics").write_bytes(counted(3000, 0, 350, 0, 10, 0))
    assert watch.take().cards[0].throttled == ()
    (tmp_path / FOLDER / "gpu_metrics").write_bytes(counted(10, 0, 0, 0, 0, 0))  # the counters began anew
    assert watch.take().cards[0].throttled is None


def test_throttling_by_status_is_known_at_once_and_a_torn_table_is_unknown(machine, tmp_path):
    (tmp_path / FOLDER / "gpu_metrics").write_bytes(machines.metrics(status=1 << 32))
    watch = snapshot.Watch(machine)
    assert [card.throttled for card in watch.take().cards] == [("temperature",), ()]
    (tmp_path / FOLDER / "gpu_metrics").write_bytes(machines.metrics()[:50])
    assert watch.take().cards[0].throttled is None


def test_card_that_vanishes_stays_listed_as_gone(machine, tmp_path):
    watch = snapshot.Watch(machine)
    assert [card.sensors.state for card in watch.take().cards] == ["present", "present"]
    shutil.rmtree((tmp_path / FOLDER).resolve())
    (tmp_path / FOLDER).unlink()
    shutil.rmtree(tmp_path / "sys/class/drm/renderD128")
    shutil.rmtree(tmp_path / sysfs.TOPOLOGY / "1")
    found = watch.take()
    assert [(card.address, card.sensors.state) for card in found.cards] == [
        (CARD, "gone"),
        ("0000:08:00.0", "present"),
    ]
    assert [card.partitions for card in found.cards] == [(0,), (1,)]  # the numbers of before
    assert "(gone)" in "\n".join(frame.lines(found, width=80, source="test"))


def test_card_that_comes_is_added(machine, tmp_path):
    kept = tmp_path / "kept"
    (tmp_path / sysfs.TOPOLOGY / "2").rename(kept)
    (tmp_path / "sys/class/drm/renderD129").rename(tmp_path / "aside")
    watch = snapshot.Watch(machine)
    assert len(watch.take().cards) == 1
    kept.rename(tmp_path / sysfs.TOPOLOGY / "2")
    (tmp_path / "aside").rename(tmp_path / "sys/class/drm/renderD129")
    assert len(watch.take().cards) == 2


def test_partitions_share_one_line(tmp_path):
    found = snapshot.Watch(machines.mi300x_cpx(tmp_path)).take()
    assert [card.name for card in found.cards] == ["0-7 gfx942", "8-15 gfx942"]


@pytest.mark.skipif(not RECORDED.is_dir(), reason="the recorded tree of eight MI210 is not on this machine")
def test_recording_of_eight_cards_without_sensors_is_unknown_throughout():
    found = snapshot.Watch(Files(RECORDED)).take()
    assert [card.name for card in found.cards] == [f"{number} gfx90a" for number in range(8)]
    assert {card.sensors.state for card in found.cards} == {"unknown"}
    assert frame.lines(found, width=80, source="test")[2].split() == [
        "0",
        "gfx90a",
        "(unknown)",
        "?",
        "?",
        "?",
        "?",
        "?",
        "?",
        "?",
    ]
