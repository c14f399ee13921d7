"""A frame's lines: both widths, what is unknown, and more processes than a screen takes."""

import pytest

from rocmatrix.host.watch import frame, snapshot
from tests.fixtures import machines

CARD = "0000:03:00.0"
BUSY = {
    "hwmon/hwmon4/power1_average": 301_000_000,
    "hwmon/hwmon4/power1_cap": 315_000_000,
    "hwmon/hwmon4/freq1_input": 2_394_000_000,
    "hwmon/hwmon4/freq2_input": 1_249_000_000,
    "mem_info_vram_used": 19 << 30,
}


def client(machine, *, pid=7, size="1 GiB"):
    rows = f"drm-driver:\tamdgpu\ndrm-pdev:\t{CARD}\ndrm-client-id:\t{pid}\ndrm-memory-vram:\t{size}\n"
    machine.write(f"proc/{pid}/fdinfo/3", rows)


@pytest.fixture
def machine(tmp_path):
    return machines.two_rx_7900_xt(tmp_path)


def lines(machine, *, width=80):
    return frame.lines(snapshot.Watch(machine).take(), width=width, source="test")


def test_frame_of_two_busy_cards_fits_eighty_columns_as_a_table(machine):
    for address in (CARD, "0000:08:00.0"):
        for name, value in BUSY.items():
            machine.write(f"sys/bus/pci/devices/{address}/{name}", f"{value}\n")
    client(machine)
    found = lines(machine)
    assert max(map(len, found)) <= 80
    assert "0 gfx1100  0       19.0/20.0  60/108  301/315  2394/1249  x8 16.0  no" in found


def test_frame_fits_forty_columns(machine):
    client(machine)
    found = lines(machine, width=40)
    assert max(map(len, found)) <= 40
    assert "0 gfx1100" in found


def test_figures_that_are_unknown_are_question_marks(machine):
    assert "0 gfx1100  0       ?/20.0  60/108  ?  ?    x8 16.0  no" in lines(machine)


def test_memory_of_an_integrated_card_is_what_it_shares_where_that_is_more(tmp_path):
    machine = machines.strix_halo(tmp_path)
    figures = {"vram_total": 1 << 29, "vram_used": 1 << 28, "gtt_total": 96 << 30, "gtt_used": 12 << 30}
    for name, size in figures.items():
        machine.write(f"sys/bus/pci/devices/{CARD}/mem_info_{name}", f"{size}\n")
    assert "12.0/96.0" in "\n".join(lines(machine))


def test_processes_beyond_ten_are_counted_and_the_largest_come_first(machine):
    for pid in range(100, 113):
        client(machine, pid=pid, size=f"{pid} MiB")
    found = lines(machine)
    assert "and 3 more" in found
    first = [line.split()[0] for line in found if line.strip()]
    assert [word for word in first if word in map(str, range(100, 113))] == [str(pid) for pid in range(112, 102, -1)]


def test_machine_without_a_process_is_named_so(machine):
    assert "no process on a card is seen" in lines(machine)
