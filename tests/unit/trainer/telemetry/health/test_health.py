"""Error counters before and after. SYNTHETIC trees: shaped after the kernel's sources, recorded on no real card."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from trainer.telemetry.health import counters, metrics_table
from trainer.telemetry.health.watch import HealthWatch

BDF, SWITCH, PORT = "0000:03:00.0", "0000:02:00.0", "0000:00:01.1"
AER = "RxErr 0\nBadTLP 1\nTOTAL_ERR_COR {}\n"


class Card:
    """A card behind a switch, as its driver's folder links to it."""

    def __init__(self, root: Path, address: str = BDF) -> None:
        self.root = root
        self.folder = root / f"devices/pci0000:00/{PORT}/{SWITCH}/{address}"
        self.folder.mkdir(parents=True)
        driver = root / "bus/pci/drivers/amdgpu"
        driver.mkdir(parents=True, exist_ok=True)
        (driver / address).symlink_to(self.folder)

    def write(self, name: str, content: str | bytes) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def sound(self) -> Card:
        self.write("ras/umc_err_count", "ue: 0\nce: 3\n")
        self.write("ras/xgmi_wafl_err_count", "ue: 0\nce: 0\n")
        self.write("ras/gpu_vram_bad_pages", "")
        self.write("pcie_replay_count", "0\n")
        for place in (self.folder, self.folder.parent, self.folder.parent.parent):
            (place / "aer_dev_correctable").write_text(AER.format(2))
            (place / "aer_dev_fatal").write_text("Undefined 0\nTOTAL_ERR_FATAL 0\n")
        return self


def watch(root: Path) -> HealthWatch:
    return HealthWatch(root=root, devices=root / "dev")


def table(*, kind: tuple[int, int] = (1, 7), energy: int = 0, cycles: tuple[int, ...] = (), size: int = 200) -> bytes:
    made = bytearray(size)
    struct.pack_into("<HBB", made, 0, size, *kind)
    struct.pack_into("<Q", made, {(1, 3): 24, (1, 6): 16, (1, 7): 24}.get(kind, 24), energy)
    if cycles:
        struct.pack_into(f"<{len(cycles)}I", made, {(1, 6): 32, (1, 7): 40}[kind], *cycles)
    return bytes(made)


def test_sound_card_reports_its_counters_and_none_moved(tmp_path: Path) -> None:
    Card(tmp_path).sound()
    report = watch(tmp_path).report()
    assert report is not None
    assert (report["moved"], report["unknown"], report["what"]) == ([], [], "")
    assert report["cards"][BDF]["known"] == 10


FAULTS = {
    "uncorrectable error": ("ras/umc_err_count", "ue: 1\nce: 3\n", "ras/umc/ue rose from 0 to 1"),
    "one more correctable error": ("ras/umc_err_count", "ue: 0\nce: 4\n", "ras/umc/ce rose from 3 to 4"),
    "XGMI error": ("ras/xgmi_wafl_err_count", "ue: 0\nce: 1\n", "ras/xgmi_wafl/ce rose from 0 to 1"),
    "retired page": ("ras/gpu_vram_bad_pages", "0x0000a1b2 : 0x00001000 : R \n", "pages/retired rose from 0 to 1"),
    "replay": ("pcie_replay_count", "1\n", "pcie/replays rose from 0 to 1"),
    "link error of the card": ("aer_dev_correctable", AER.format(3), f"aer/{BDF}/correctable rose from 2 to 3"),
    "link error of the switch": ("../aer_dev_correctable", AER.format(3), f"aer/{SWITCH}/correctable rose"),
    "fatal error at the port": ("../../aer_dev_fatal", "TOTAL_ERR_FATAL 1\n", f"aer/{PORT}/fatal rose from 0 to 1"),
    "reset": ("ras/umc_err_count", "ue: 0\nce: 0\n", "ras/umc/ce fell from 3 to 0: it started anew"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_counter_that_moved_by_one_is_reported_with_its_card(tmp_path: Path, fault: str) -> None:
    name, content, words = FAULTS[fault]
    card = Card(tmp_path).sound()
    begun = watch(tmp_path)
    card.write(name, content)
    report = begun.report()
    assert report is not None
    assert report["moved"] == [BDF]
    assert words in report["what"]


def test_card_that_is_gone_at_the_end_has_moved(tmp_path: Path) -> None:
    Card(tmp_path).sound()
    begun = watch(tmp_path)
    (tmp_path / "bus/pci/drivers/amdgpu" / BDF).unlink()
    report = begun.report()
    assert report is not None
    assert "no longer there" in report["what"]


BROKEN = {
    "absent": {},
    "empty": {"ras/umc_err_count": "", "pcie_replay_count": ""},
    "words": {"ras/umc_err_count": "not supported\n", "pcie_replay_count": "N/A\n"},
    "constant zero replays": {"pcie_replay_count": "0\n"},
    "huge": {"pcie_replay_count": "9" * 30},
    "binary": {"ras/umc_err_count": bytes(range(128, 256)), "gpu_metrics": b"\xff" * 200},
    "cut table": {"gpu_metrics": table()[:40]},
}


@pytest.mark.parametrize("broken", BROKEN)
def test_file_that_holds_nothing_known_is_unknown_and_never_zero(tmp_path: Path, broken: str) -> None:
    card = Card(tmp_path)
    for name, content in BROKEN[broken].items():
        card.write(name, content)
    begun = watch(tmp_path)
    report = begun.report()
    assert report is not None
    assert (report["unknown"], report["moved"]) == ([BDF], [])
    assert (report["cards"][BDF]["known"], report["cards"][BDF]["energy_j"]) == (0, None)


def test_file_that_answers_with_an_error_is_unknown(tmp_path: Path) -> None:
    card = Card(tmp_path)
    (card.folder / "ras/umc_err_count").mkdir(parents=True)  # reading a folder fails, as EINVAL of the driver does
    (card.folder / "gpu_metrics").mkdir()
    assert counters.read(card.folder) == {}


LATER = {
    "ras": {"ras/umc_err_count": "ue: 7\nce: 9\n"},
    "pages": {"ras/gpu_vram_bad_pages": "0x00000001 : 0x00001000 : R\n"},
    "pcie": {"pcie_replay_count": "12\n"},
    "all": {"ras/gpu_vram_bad_pages": "0x00000001 : 0x00001000 : P\n", "pcie_replay_count": "3\n"},
}


@pytest.mark.parametrize("files", LATER)
@pytest.mark.parametrize("asleep", [False, True], ids=["absent", "asleep"])
def test_counter_that_appears_later_is_not_taken_for_a_rise(tmp_path: Path, files: str, asleep: bool) -> None:
    card = Card(tmp_path)
    for name in LATER[files] if asleep else ():
        (card.folder / name).mkdir(parents=True)  # reading a folder fails, as EINVAL of the driver does
    begun = watch(tmp_path)
    for name, content in LATER[files].items():
        if asleep:
            (card.folder / name).rmdir()
        card.write(name, content)
    report = begun.report()
    assert report is not None
    assert report["moved"] == []


@pytest.mark.parametrize("files", ["pages", "pcie", "all"])
def test_first_entry_of_a_list_that_was_read_empty_is_a_rise(tmp_path: Path, files: str) -> None:
    card = Card(tmp_path).sound()
    begun = watch(tmp_path)
    for name, content in LATER[files].items():
        card.write(name, content)
    report = begun.report()
    assert report is not None
    assert report["moved"] == [BDF]
    assert len(report["cards"][BDF]["rose"]) == len(LATER[files])


def test_errors_of_xgmi_that_reading_clears_are_not_read(tmp_path: Path) -> None:
    card = Card(tmp_path).sound()
    card.write("xgmi_error", "1\n")
    assert not any("xgmi_error" in name for name in counters.read(card.folder))


def test_card_of_another_container_is_left_out(tmp_path: Path) -> None:
    card = Card(tmp_path).sound()
    card.write("drm/renderD129/dev", "226:129\n")
    assert watch(tmp_path).report() is None
    (tmp_path / "dev/dri").mkdir(parents=True)
    (tmp_path / "dev/dri/renderD129").touch()
    assert watch(tmp_path).report() is not None


def test_machine_without_a_card_reports_nothing(tmp_path: Path) -> None:
    assert watch(tmp_path).report() is None


def test_energy_and_throttled_shares_come_from_two_tables(tmp_path: Path) -> None:
    card = Card(tmp_path)
    card.write("gpu_metrics", table(energy=1 << 16, cycles=(100, 0, 10, 0, 0, 0)))
    begun = watch(tmp_path)
    card.write("gpu_metrics", table(energy=11 << 16, cycles=(1100, 0, 260, 0, 0, 0)))
    report = begun.report()
    assert report is not None
    found = report["cards"][BDF]
    assert (found["energy_j"], found["throttled"]["power"], found["throttled"]["prochot"]) == (10.0, 0.25, 0.0)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((100, 0, 10, 0, 0, 0), (100, 0, 10, 0, 0, 0)),  # no cycle passed
        ((100, 0, 10, 0, 0, 0), (50, 0, 2, 0, 0, 0)),  # the counters started anew
        ((100, 0, 10, 0, 0, 0), (200, 0, 500, 0, 0, 0)),  # more throttled cycles than cycles: another layout
        ((0xFFFFFFFF,) * 6, (0xFFFFFFFF,) * 6),  # not reported
    ],
)
def test_residencies_that_cannot_be_are_unknown(before: tuple[int, ...], after: tuple[int, ...]) -> None:
    first, second = (metrics_table.cycles(table(cycles=cycles)) for cycles in (before, after))
    assert metrics_table.throttled(first, second) == {}


@pytest.mark.parametrize(
    ("kind", "joules"), [((1, 3), 2.0), ((1, 6), 2.0), ((1, 7), 2.0), ((2, 4), None), ((9, 9), None)]
)
def test_energy_is_read_from_layouts_that_have_one(kind: tuple[int, int], joules: float | None) -> None:
    assert metrics_table.energy(table(kind=kind, energy=2 << 16)) == joules


def test_energy_that_is_not_reported_is_none() -> None:
    assert metrics_table.energy(table(energy=(1 << 64) - 1)) is None


def test_replays_of_the_table_are_a_counter_too(tmp_path: Path) -> None:
    card = Card(tmp_path)
    made = bytearray(table())
    struct.pack_into("<Q", made, 112, 5)
    card.write("gpu_metrics", bytes(made))
    assert counters.read(card.folder) == {"pcie/metrics_replays": 5}
