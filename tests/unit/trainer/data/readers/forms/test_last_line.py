"""Last lines without a line end: whole where they end as the lines before them."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainer.data.bar import joined
from trainer.data.readers.bars import Reading, open_source
from trainer.data.readers.forms.last_line import is_whole
from trainer.runtime.errors import TrainerError

HEADER = "date,open,volume"


@pytest.mark.parametrize(
    ("lines", "whole"),
    [
        ([HEADER, "2024-03-04,1.25,5", "2024-03-05,1.25,7"], True),
        ([HEADER, "2024-03-04,1.25,5", "2024-03-05,1.25"], False),
        ([HEADER, "2024-03-04,5,1.25", "2024-03-05,5,1.2"], False),  # a digit was lost
        ([HEADER, "2024-03-04,5,1.25", "2024-03-04,5,1.5", "2024-03-05,5,1.2"], True),  # numbers of any length
        ([HEADER, '2024-03-04,"5","1%"', '2024-03-05,"5","2%"'], True),
        ([HEADER, '2024-03-04,"5","1%"', '2024-03-05,"5","2%'], False),
        ([HEADER, "2024-03-04,5,12K", "2024-03-05,5,12"], False),
        ([HEADER, '2024-03-04,"1,000",5\r', '2024-03-05,"1,000",6'], True),
        ([HEADER, "2024-03-04,1.25,5"], False),  # the header alone shows nothing
        (["2024-03-05,1.25,7"], False),
        ([HEADER, "2024-03-04,1,", "2024-03-05,1,"], True),
    ],
)
def test_last_line_is_whole_where_it_ends_as_those_before_it(lines: list[str], whole: bool) -> None:
    assert is_whole(lines, ",", 3) is whole


@pytest.mark.parametrize("chunk_size", [1, 2, 100])
def test_whole_last_line_is_a_bar_under_every_policy_and_chunk_size(tmp_path: Path, chunk_size: int) -> None:
    rows = [f"2024-03-{day:02d},1,2,1,2,{day}" for day in range(1, 6)]
    (path := tmp_path / "bars.csv").write_text("\n".join(["date,open,high,low,close,volume", *rows]))
    for policy in ("few", "error", "drop", "repair"):
        source = open_source(path, Reading(chunk_size=chunk_size, on_bad_row=policy))
        assert joined(list(source.chunks())).volume.tolist() == [1, 2, 3, 4, 5]
        assert (source.bad.dropped, source.bad.repaired) == ({}, {"open_end": 1})
    path.write_text(path.read_text()[:-4])
    with pytest.raises(TrainerError, match="RM516"):
        list(open_source(path, Reading(chunk_size=chunk_size)).chunks())
