"""Arrow files written batch by batch hold what polars' own writer would write, byte for byte."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from trainer.storage.arrow_file import BATCH, ArrowFile


def frame(rows: int) -> pl.DataFrame:
    numbers = np.arange(rows)
    time = pl.Series(numbers).cast(pl.Datetime("ms"))
    return pl.DataFrame({"time": time, "close": numbers / 2, "a": numbers.astype(np.float32)})


@pytest.mark.parametrize("sizes", [[], [5], [BATCH], [BATCH + 1, 7], [3, 2 * BATCH, 5, BATCH]])
def test_arrow_file_of_several_frames_has_the_bytes_of_one_call(tmp_path: Path, sizes: list[int]) -> None:
    whole, done = frame(sum(sizes)), 0
    file = ArrowFile(tmp_path / "parts.arrow", whole.schema)
    for size in sizes:
        file.write(whole[done : done + size])
        done += size
    file.finish()
    whole.write_ipc(tmp_path / "whole.arrow", record_batch_size=BATCH)
    assert pl.scan_ipc(tmp_path / "parts.arrow").collect().equals(whole)
    assert (tmp_path / "parts.arrow").read_bytes() == (tmp_path / "whole.arrow").read_bytes()


def test_arrow_file_on_a_full_disk_names_the_cause() -> None:
    file = ArrowFile(Path("/dev/full"), frame(1).schema)
    file.write(frame(1))
    with pytest.raises((OSError, pl.exceptions.PolarsError), match=r"os error 28|No space left"):
        file.finish()
