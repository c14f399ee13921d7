"""Sensors of one card: sound figures, and files that are absent, unreadable, constant or garbage."""

import errno

import pytest

from rocmatrix.host.watch import sensors
from tests.fixtures import machines

FOLDER = "sys/bus/pci/devices/0000:03:00.0"
FIGURES = {
    "gpu_busy_percent": ("97", "load_percent", 97),
    "mem_busy_percent": ("40", "memory_load_percent", 40),
    "mem_info_vram_used": ("1073741824", "memory_used", 1 << 30),
    "hwmon/hwmon4/power1_average": ("301000000", "power_w", 301.0),
    "hwmon/hwmon4/power1_cap": ("315000000", "power_limit_w", 315.0),
    "hwmon/hwmon4/freq1_input": ("2394000000", "core_mhz", 2394.0),
    "hwmon/hwmon4/freq2_input": ("1249000000", "memory_mhz", 1249.0),
}


@pytest.fixture
def busy(tmp_path):
    machine = machines.two_rx_7900_xt(tmp_path)
    for name, (text, _, _) in FIGURES.items():
        machine.write(f"{FOLDER}/{name}", f"{text}\n")
    return machine


def test_sensors_of_a_busy_card_have_their_units(busy):
    found = sensors.read(busy, FOLDER)
    assert {name: getattr(found, name) for _, name, _ in FIGURES.values()} == {
        name: value for _, name, value in FIGURES.values()
    }
    assert (found.state, found.link.width, found.link.speed) == ("present", 8, 16.0)
    assert found.hottest.label == "mem"  # 48 below its limit; the junction, at 52, is 58 below


@pytest.mark.parametrize("text", ["", "-1", "N/A", "0x10", "99999999999999999999999", "\0\0", "1e9", "65535000000000"])
@pytest.mark.parametrize("name", FIGURES)
def test_sensor_with_garbage_is_unknown_and_costs_no_other(busy, name, text):
    busy.write(f"{FOLDER}/{name}", text)
    found = sensors.read(busy, FOLDER)
    field = FIGURES[name][1]
    assert getattr(found, field) is None
    others = [(other, value) for _, other, value in FIGURES.values() if other != field]
    assert [(other, getattr(found, other)) for other, _ in others] == others


@pytest.mark.parametrize("name", sorted(set(FIGURES) - {"gpu_busy_percent", "mem_busy_percent"}))
def test_sensor_with_a_constant_zero_is_unknown(busy, name):
    busy.write(f"{FOLDER}/{name}", "0\n")
    assert getattr(sensors.read(busy, FOLDER), FIGURES[name][1]) is None


def test_files_that_answer_einval_are_unknown(busy, monkeypatch):
    card = busy.real(FOLDER)

    def refused(path):
        raise OSError(errno.EINVAL, "Invalid argument", path)

    class Refusing(type(busy)):
        def _bytes(self, path):
            try:
                return refused(path) if path.startswith(card) else super()._bytes(path)
            except OSError:
                return None

    monkeypatch.setattr(busy, "__class__", Refusing)
    found = sensors.read(busy, FOLDER)
    known = {name for name, value in vars(found).items() if value not in (None, ())}
    assert known == {"state", "link"}
    assert (found.link.width, found.link.speed) == (8, 16.0)  # the switch still answers


def test_card_without_any_file_is_known_to_be_there_alone(tmp_path):
    machine = machines.two_rx_7900_xt(tmp_path)
    (tmp_path / "sys/lonely").mkdir()
    found = sensors.read(machine, "sys/lonely")
    assert found.state == "present"
    assert found.hottest is None
    assert found.load_percent is None


def test_card_that_sleeps_is_not_read(busy):
    busy.write(f"{FOLDER}/power/runtime_status", "suspended\n")
    assert sensors.read(busy, FOLDER) == sensors.Sensors(state="asleep")


def test_card_without_a_folder_is_unknown_and_one_that_went_is_gone(busy):
    assert sensors.read(busy, None).state == "unknown"
    assert sensors.read(busy, "sys/bus/pci/devices/0000:99:00.0").state == "gone"


def test_used_memory_above_the_total_is_unknown(busy):
    busy.write(f"{FOLDER}/mem_info_vram_used", str(1 << 40))
    found = sensors.read(busy, FOLDER)
    assert (found.memory_used, found.memory_total) == (None, 20 << 30)
