"""What a file of bars shows before it is read as a whole."""

from __future__ import annotations

from pathlib import Path

from tests.fixtures.bar_files import HEADER, ROWS, read, write
from trainer.data.features.inspect import inspect_data


def test_spacing_and_price_step_are_found(tmp_path: Path) -> None:
    found = inspect_data(read(write(tmp_path, [HEADER, *ROWS]))[1])
    assert (found.spacing, found.tick, found.vix, found.daily) == (60, 1, False, False)
    quarter = [row.replace(",100", ",100").replace(",10,", ",10.25,") for row in ROWS]
    assert inspect_data(read(write(tmp_path, [HEADER, *quarter]))[1]).tick == 0.25
