"""Look after look: what needs two, cards that go, partitions, and a recording of eight cards."""

import shutil
import struct
from pathlib import Path

import pytest

from rocmatrix.host import gpu_metrics
from rocmatrix.host.sysfs import Files
from rocmatrix.host.watch import described, frame, look
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


def test_load_of_a_process_takes_two_looks(machine):
    clock = Clock()
    watch = look.Watch(machine, clock=clock)
    client(machine, 10**9)
    assert watch.look().processes[0].load_percent is None
    clock.at = 2.0
    client(machine, 2 * 10**9)
    assert watch.look().processes[0].load_percent == 50
    clock.at = 3.0
    client(machine, 10**9)  # another process of the same number
    assert watch.look().processes[0].load_percent is None


def test_load_of_zero_is_unknown_while_a_process_uses_the_card(machine):
    clock = Clock()
    watch = look.Watch(machine, clock=clock)
    client(machine, 0)
    assert watch.look().cards[0].sensors.load_percent == 0
    clock.at = 1.0
    client(machine, 10**9)
    assert [card.sensors.load_percent for card in watch.look().cards] == [None, 0]


def test_load_of_a_compute_process_without_engine_times_is_unknown(machine):
    clock = Clock()
    watch = look.Watch(machine, clock=clock)
    client(machine, 5)
    machine.write("sys/class/kfd/kfd/proc/7/vram_40001", "1024\n")
    watch.look()
    clock.at = 1.0
    assert watch.look().processes[0].load_percent is None


def test_throttling_by_counted_cycles_takes_two_tables(machine, tmp_path):
    (tmp_path / FOLDER / "gpu_metrics").write_bytes(counted(1000, 0, 100, 0, 0, 0))
    watch = look.Watch(machine)
    assert watch.look().cards[0].throttled is None
    (tmp_path / FOLDER / "gpu_metrics").write_bytes(counted(2000, 0, 350, 0, 9, 0))
    assert watch.look().cards[0].throttled == ("power 25%",)
    (tmp_path / FOLDER / "gpu_metrics").write_bytes(counted(3000, 0, 350, 0, 10, 0))
    assert watch.look().cards[0].throttled == ()
    (tmp_path / FOLDER / "gpu_metrics").write_bytes(counted(10, 0, 0, 0, 0, 0))  # the counters began anew
    assert watch.look().cards[0].throttled is None


def test_throttling_by_status_is_known_at_once_and_a_torn_table_is_unknown(machine, tmp_path):
    (tmp_path / FOLDER / "gpu_metrics").write_bytes(machines.metrics(status=1 << 32))
    watch = look.Watch(machine)
    assert [card.throttled for card in watch.look().cards] == [("temperature",), ()]
    (tmp_path / FOLDER / "gpu_metrics").write_bytes(machines.metrics()[:50])
    assert watch.look().cards[0].throttled is None


def test_card_that_vanishes_stays_listed_as_gone(machine, tmp_path):
    watch = look.Watch(machine)
    assert [card.sensors.state for card in watch.look().cards] == ["present", "present"]
    shutil.rmtree((tmp_path / FOLDER).resolve())
    (tmp_path / FOLDER).unlink()
    shutil.rmtree(tmp_path / "sys/class/drm/renderD128")
    shutil.rmtree(tmp_path / sysfs.TOPOLOGY / "1")
    found = watch.look()
    assert [(card.address, card.sensors.state) for card in found.cards] == [
        (CARD, "gone"),
        ("0000:08:00.0", "present"),
    ]
    assert "(gone)" in "\n".join(frame.lines(found, width=80, source="test"))


def test_card_that_comes_is_added(machine, tmp_path):
    kept = tmp_path / "kept"
    (tmp_path / sysfs.TOPOLOGY / "2").rename(kept)
    (tmp_path / "sys/class/drm/renderD129").rename(tmp_path / "aside")
    watch = look.Watch(machine)
    assert len(watch.look().cards) == 1
    kept.rename(tmp_path / sysfs.TOPOLOGY / "2")
    (tmp_path / "aside").rename(tmp_path / "sys/class/drm/renderD129")
    assert len(watch.look().cards) == 2


def test_partitions_share_one_line(tmp_path):
    found = look.Watch(machines.mi300x_cpx(tmp_path)).look()
    assert [card.name for card in found.cards] == ["0-7 gfx942", "8-15 gfx942"]


def test_memory_of_an_integrated_card_is_what_it_shares_where_that_is_more(tmp_path):
    machine = machines.strix_halo(tmp_path)
    folder = "sys/bus/pci/devices/0000:03:00.0"
    figures = {"vram_total": 1 << 29, "vram_used": 1 << 28, "gtt_total": 96 << 30, "gtt_used": 12 << 30}
    for name, size in figures.items():
        machine.write(f"{folder}/mem_info_{name}", f"{size}\n")
    assert "12.0/96.0" in "\n".join(frame.lines(look.Watch(machine).look(), width=80, source="test"))


def test_frame_of_two_busy_cards_fits_eighty_columns_as_a_table(machine):
    for address in (CARD, "0000:08:00.0"):
        for name, value in {
            "power1_average": 301e6,
            "power1_cap": 315e6,
            "freq1_input": 2394e6,
            "freq2_input": 1249e6,
        }.items():
            machine.write(f"sys/bus/pci/devices/{address}/hwmon/hwmon4/{name}", f"{value:.0f}\n")
        machine.write(f"sys/bus/pci/devices/{address}/mem_info_vram_used", f"{19 << 30}\n")
    client(machine, 0)
    lines = frame.lines(look.Watch(machine).look(), width=80, source="this machine")
    assert max(map(len, lines)) <= 80
    assert "0 gfx1100  0       19.0/20.0  60/108  301/315  2394/1249  x8 16.0  no" in lines


def test_frame_fits_forty_columns(machine):
    client(machine, 0)
    lines = frame.lines(look.Watch(machine).look(), width=40, source="this machine")
    assert max(map(len, lines)) <= 40
    assert "0 gfx1100" in lines


def test_unknown_figures_are_question_marks_and_null(machine):
    found = look.Watch(machine).look()
    assert "0 gfx1100  0       ?/20.0  60/108  ?  ?    x8 16.0  no" in frame.lines(found, width=80, source="test")
    card = described.described(found, source="test")["cards"][0]
    assert (card["power_w"], card["core_mhz"], card["memory_bytes"]) == (None, None, {"used": None, "total": 20 << 30})


@pytest.mark.skipif(not RECORDED.is_dir(), reason="the recorded tree of eight MI210 is not on this machine")
def test_recording_of_eight_cards_without_sensors_is_unknown_throughout():
    found = look.Watch(Files(RECORDED)).look()
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
