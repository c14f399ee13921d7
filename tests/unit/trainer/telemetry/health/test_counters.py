"""Error counters of a card; what cannot be read is unknown."""

from __future__ import annotations

import struct
from pathlib import Path

from tests.fixtures.health import Card, table
from trainer.telemetry.health import counters


def test_file_that_answers_with_an_error_is_unknown(tmp_path: Path) -> None:
    card = Card(tmp_path)
    (card.folder / "ras/umc_err_count").mkdir(parents=True)  # reading a folder fails, as EINVAL of the driver does
    (card.folder / "gpu_metrics").mkdir()
    assert counters.read(card.folder) == {}


def test_blanks_capitals_and_line_ends_of_other_kernels_change_no_count(tmp_path: Path) -> None:
    card = Card(tmp_path)
    card.write("ras/umc_err_count", "UE: 0 \r\nCE : 4\t\r\n")
    card.write("ras/gpu_vram_bad_pages", "0x0000ABCD : 0x00001000 : R \r\n")
    card.write("aer_dev_fatal", "Undefined 0\nTOTAL_ERR_FATAL  2 \n")
    found = counters.read(card.folder)
    assert {"ras/umc/ue": 0, "ras/umc/ce": 4, "pages/retired": 1}.items() <= found.items()
    assert 2 in found.values()


def test_errors_of_xgmi_that_reading_clears_are_not_read(tmp_path: Path) -> None:
    card = Card(tmp_path).sound()
    card.write("xgmi_error", "1\n")
    assert not any("xgmi_error" in name for name in counters.read(card.folder))


def test_replays_of_the_table_are_a_counter_too(tmp_path: Path) -> None:
    card = Card(tmp_path)
    made = bytearray(table())
    struct.pack_into("<Q", made, 112, 5)
    card.write("gpu_metrics", bytes(made))
    assert counters.read(card.folder) == {"pcie/metrics_replays": 5}
