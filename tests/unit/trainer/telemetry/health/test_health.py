"""Error counters before and after. SYNTHETIC trees: shaped after the kernel's sources, recorded on no real card."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixtures.health import AER, BDF, EVENTS, PORT, SWITCH, Card, table
from trainer.telemetry.health.watch import HealthWatch


def watch(root: Path) -> HealthWatch:
    return HealthWatch(root=root, devices=root / "dev")


def test_sound_card_reports_its_counters_and_none_moved(tmp_path: Path) -> None:
    Card(tmp_path).sound()
    report = watch(tmp_path).report()
    assert report is not None
    assert (report["moved"], report["unknown"], report["what"]) == ([], [], "")
    assert report["cards"][BDF]["known"] == 14


@pytest.mark.parametrize(("given", "seen"), [("renderD131", True), ("renderD128", True), ("renderD140", False)])
def test_card_is_watched_by_a_container_that_was_given_any_of_its_partitions(
    tmp_path: Path, given: str, seen: bool
) -> None:
    card = Card(tmp_path).sound()
    card.write("current_compute_partition", "CPX\n")
    (card.folder / "drm/renderD128").mkdir(parents=True)
    nodes = [(128, 0x0300), (131, 0x0300 | 3 << 28), (140, 0x0400)]
    for number, (minor, location) in enumerate(nodes):
        node = tmp_path / f"class/kfd/kfd/topology/nodes/{number}"
        node.mkdir(parents=True)
        (node / "properties").write_text(f"drm_render_minor {minor}\nlocation_id {location}\ndomain 0\n")
    (tmp_path / "dev/dri").mkdir(parents=True)
    (tmp_path / "dev/dri" / given).touch()
    assert (watch(tmp_path).report() is not None) is seen


FAULTS = {
    "uncorrectable error": ("ras/umc_err_count", "ue: 1\nce: 3\n", "ras/umc/ue rose from 0 to 1"),
    "one more correctable error": ("ras/umc_err_count", "ue: 0\nce: 4\n", "ras/umc/ce rose from 3 to 4"),
    "XGMI error": ("ras/xgmi_wafl_err_count", "ue: 0\nce: 1\n", "ras/xgmi_wafl/ce rose from 0 to 1"),
    "retired page": ("ras/gpu_vram_bad_pages", "0x0000a1b2 : 0x00001000 : R \n", "pages/retired rose from 0 to 1"),
    "poison that was read": ("ras/event_state", EVENTS.format(1), "ras/event/poison consumption rose from 0 to 1"),
    "replay": ("pcie_replay_count", "1\n", "pcie/replays rose from 0 to 1"),
    "link error of the card": ("aer_dev_correctable", AER.format(3), f"aer/{BDF}/correctable rose from 2 to 3"),
    "link error of the switch": ("../aer_dev_correctable", AER.format(3), f"aer/{SWITCH}/correctable rose"),
    "fatal error at the port": ("../../aer_dev_fatal", "TOTAL_ERR_FATAL 1\n", f"aer/{PORT}/fatal rose from 0 to 1"),
    "error signalled to the port": (
        "../../aer_rootport_total_err_cor",
        "5\n",
        f"aer/{PORT}/signalled correctable rose from 4 to 5",
    ),
    "reset": ("ras/umc_err_count", "ue: 0\nce: 0\n", "ras/umc/ce fell from 3 to 0: it started anew"),
}


def test_errors_signalled_by_other_devices_below_a_port_are_not_the_cards(tmp_path: Path) -> None:
    card = Card(tmp_path).sound()
    (card.folder.resolve().parent.parent / "0000:09:00.0").mkdir()
    begun = watch(tmp_path)
    card.write("../../aer_rootport_total_err_cor", "5\n")
    report = begun.report()
    assert report is not None
    assert report["moved"] == []


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


@pytest.mark.parametrize("ones", [2**32 - 1, 2**63 - 1, 2**64 - 1])
def test_number_of_ones_is_unknown_and_no_rise(tmp_path: Path, ones: int) -> None:
    card = Card(tmp_path).sound()
    begun = watch(tmp_path)
    card.write("pcie_replay_count", f"{ones}\n")
    card.write("aer_dev_correctable", f"RxErr {ones}\nTOTAL_ERR_COR {ones}\n")
    report = begun.report()
    assert report is not None
    assert report["moved"] == []
    card.write("ras/umc_err_count", f"ue: {ones}\nce: {ones}\n")
    report = begun.report()
    assert report is not None
    assert "rose" not in report["what"]
    assert report["cards"][BDF]["lost"] == ["ras/umc/ue", "ras/umc/ce"]


def test_counters_of_a_recording_with_other_line_ends_are_read(tmp_path: Path) -> None:
    card = Card(tmp_path)
    card.write("ras/umc_err_count", "ue: 0\r\nce: 3\r\n")
    begun = watch(tmp_path)
    card.write("ras/umc_err_count", "ue: 1\r\nce: 3\r\n")
    report = begun.report()
    assert report is not None
    assert report["cards"][BDF]["rose"] == {"ras/umc/ue": [0, 1]}


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


def test_energy_is_unknown_where_a_driver_that_was_loaded_anew_counts_in_another_layout(tmp_path: Path) -> None:
    card = Card(tmp_path)
    card.write("gpu_metrics", table(kind=(1, 3), energy=1 << 24))
    begun = watch(tmp_path)
    card.write("gpu_metrics", table(kind=(1, 7), energy=1 << 25))
    report = begun.report()
    assert report is not None
    assert report["cards"][BDF]["energy_j"] is None


@pytest.mark.parametrize(("kind", "joules"), [((1, 3), None), ((1, 7), 10.0)])
def test_energy_of_a_long_run_is_unknown_where_its_counter_may_have_started_anew(
    tmp_path: Path, kind: tuple[int, int], joules: float | None
) -> None:
    card = Card(tmp_path)
    card.write("gpu_metrics", table(kind=kind, energy=1 << 16))
    begun = watch(tmp_path)
    begun.began -= 3600
    card.write("gpu_metrics", table(kind=kind, energy=11 << 16))
    report = begun.report()
    assert report is not None
    assert report["cards"][BDF]["energy_j"] == joules


def test_limits_that_held_on_a_processors_graphics_are_reported_by_their_cycles(tmp_path: Path) -> None:
    card = Card(tmp_path).sound()
    card.write("gpu_metrics", table(kind=(3, 0), limits=(0, 5, 10, 0, 0, 0, 0)))
    begun = watch(tmp_path)
    card.write("gpu_metrics", table(kind=(3, 0), limits=(0, 5, 30, 0, 0, 1, 0)))
    report = begun.report()
    assert report is not None
    assert report["cards"][BDF]["limited"] == {"fast power": 20, "graphics temperature": 1}
    assert (report["cards"][BDF]["throttled"], report["moved"]) == ({}, [])


@pytest.mark.parametrize("content", ["Query currently inaccessible\n", "", None])
def test_counters_of_a_card_that_the_driver_withholds_after_a_run_are_reported_as_lost(
    tmp_path: Path, content: str | None
) -> None:
    card = Card(tmp_path).sound()
    begun = watch(tmp_path)
    if content is None:
        (card.folder / "ras/umc_err_count").unlink()
    else:
        card.write("ras/umc_err_count", content)
    report = begun.report()
    assert report is not None
    assert report["moved"] == [BDF]
    assert report["what"] == f"card {BDF}: ras/umc/ue, ras/umc/ce can no longer be read"


def test_counters_that_were_withheld_before_a_run_are_unknown(tmp_path: Path) -> None:
    card = Card(tmp_path).sound()
    card.write("ras/umc_err_count", "Query currently inaccessible\n")
    begun = watch(tmp_path)
    card.write("ras/umc_err_count", "ue: 9\nce: 9\n")
    report = begun.report()
    assert report is not None
    assert report["moved"] == []
