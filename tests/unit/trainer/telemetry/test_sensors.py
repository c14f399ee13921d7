"""The files are SYNTHETIC: shaped after the kernel's documentation of amdgpu, recorded on no real card."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from trainer.telemetry import sensors
from trainer.telemetry.sensors import hwmon, pci_address, read_hwmon, sensor, utilization

FILES = {
    "temp1_input": "54000",
    "temp1_label": "edge",
    "temp1_crit": "100000",
    "temp2_input": "71000",
    "temp2_label": "junction",
    "temp2_crit": "110000",
    "temp3_input": "80000",
    "temp3_label": "mem",
    "freq1_input": "2394000000",
    "power1_average": "287000000",
    "power1_cap": "315000000",
}


def card(root: Path, address: str = "0000:03:00.0", number: int = 3, **changes: str | None) -> Path:
    folder = root / "bus/pci/drivers/amdgpu" / address / f"hwmon/hwmon{number}"
    folder.mkdir(parents=True)
    for name, text in (FILES | changes).items():
        if text is not None:
            (folder / name).write_text(text + "\n")
    return folder


def test_units_and_the_junction_temperature(tmp_path: Path) -> None:
    assert read_hwmon(card(tmp_path)).figures() == {
        "temperature_c": 71.0,
        "limit_c": 110.0,
        "clock_mhz": 2394.0,
        "power_w": 287.0,
        "power_cap_w": 315.0,
    }


def test_older_card_has_an_edge_sensor_and_instant_power_only(tmp_path: Path) -> None:
    absent = {name: None for name in FILES if name.startswith(("temp2", "temp3", "power1_average", "power1_cap"))}
    reading = read_hwmon(card(tmp_path, power1_input="15000000", **absent))
    assert reading.figures() == {"temperature_c": 54.0, "limit_c": 100.0, "clock_mhz": 2394.0, "power_w": 15.0}


@pytest.mark.parametrize("crit", ["0", "-273150"])
def test_critical_temperature_that_the_driver_has_no_value_for_is_unknown(tmp_path: Path, crit: str) -> None:
    assert read_hwmon(card(tmp_path, temp2_crit=crit)).limit_c is None


@pytest.mark.parametrize("reading", ["65535000", "511000", "0"])
def test_sensor_without_a_temperature_leaves_the_next_one_with_its_limit(tmp_path: Path, reading: str) -> None:
    found = read_hwmon(card(tmp_path, temp2_input=reading, temp1_input="101000"))
    assert (found.temperature_c, found.limit_c) == (101.0, 100.0)
    alone = read_hwmon(card(tmp_path / "alone", temp1_input=reading, temp2_input=reading, temp3_input=None))
    assert alone.temperature_c is None


def test_temperature_beyond_the_limit_is_read(tmp_path: Path) -> None:
    assert read_hwmon(card(tmp_path, temp2_input="118000")).temperature_c == 118.0


def test_files_that_cannot_be_read_are_silence(tmp_path: Path) -> None:
    folder = card(tmp_path, freq1_input="", temp2_input="N/A", power1_average=None)
    (folder / "power1_cap").unlink()
    (folder / "power1_cap").mkdir()
    assert read_hwmon(folder).figures() == {"temperature_c": 54.0, "limit_c": 100.0}


def test_card_is_found_by_its_address_and_never_guessed(tmp_path: Path) -> None:
    first, second = card(tmp_path), card(tmp_path, "0000:83:00.0", number=5)
    assert hwmon(tmp_path, "0000:83:00.0") == second
    assert hwmon(tmp_path, "0000:99:00.0") is None
    assert hwmon(tmp_path, None) is None
    assert hwmon(tmp_path / "empty", None) is None
    assert first.exists()


def test_single_card_is_taken_where_torch_reports_no_address(tmp_path: Path) -> None:
    assert hwmon(tmp_path, None) is None
    assert card(tmp_path) == hwmon(tmp_path, None)


def test_cpu_has_no_sensor(tmp_path: Path) -> None:
    card(tmp_path)
    assert sensor("cpu", tmp_path) is None


@pytest.mark.parametrize(
    ("properties", "address"),
    [
        ({"pci_domain_id": 0, "pci_bus_id": 3, "pci_device_id": 0}, "0000:03:00.0"),
        ({"pci_domain_id": 1, "pci_bus_id": 0xC1, "pci_device_id": 2}, "0001:c1:02.0"),
        ({}, None),
    ],
)
def test_address_is_written_as_sysfs_writes_it(monkeypatch, properties: dict[str, int], address: str | None) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: SimpleNamespace(**properties))
    assert pci_address("cuda:0") == address


def test_torch_is_queried_where_there_are_no_files(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: SimpleNamespace())
    monkeypatch.setattr(torch.cuda, "temperature", lambda device: 66)
    monkeypatch.setattr(torch.cuda, "power_draw", lambda device: 250_000)
    found = sensor("cuda:0", tmp_path)
    assert found is not None
    assert found().figures() == {"temperature_c": 66, "power_w": 250.0}


def test_sensor_without_files_and_libraries_is_absent(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: SimpleNamespace())
    assert sensor("cuda:0", tmp_path) is None


def busy(root: Path, address: str, text: str) -> None:
    folder = root / "bus/pci/devices" / address
    folder.mkdir(parents=True)
    (folder / "gpu_busy_percent").write_text(text + "\n")


def test_utilization_is_read_of_each_card_by_its_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    addresses = {"cuda:0": "0000:03:00.0", "cuda:1": "0000:83:00.0"}
    monkeypatch.setattr(sensors, "pci_address", addresses.get)
    busy(tmp_path, addresses["cuda:0"], "97")
    busy(tmp_path, addresses["cuda:1"], "4")
    read = utilization(("cuda:0", "cuda:1"), tmp_path)
    assert read is not None
    assert read() == {"cuda:0": 97.0, "cuda:1": 4.0}
    (tmp_path / "bus/pci/devices" / addresses["cuda:1"] / "gpu_busy_percent").unlink()
    assert read() == {"cuda:0": 97.0}


def test_utilization_without_the_kernels_file_is_what_torch_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sensors, "pci_address", lambda _: None)
    monkeypatch.setattr(torch.cuda, "utilization", lambda device: 55)
    read = utilization(["cuda:0"], tmp_path)
    assert read is not None
    assert read() == {"cuda:0": 55.0}


def test_utilization_of_a_cpu_and_of_a_card_that_shows_none_is_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: object) -> int:
        raise ModuleNotFoundError("amdsmi")

    monkeypatch.setattr(sensors, "pci_address", lambda _: None)
    monkeypatch.setattr(torch.cuda, "utilization", refused)
    assert utilization(["cuda:0"], tmp_path) is None
    assert utilization(["cpu"], tmp_path) is None
