"""Lines of another number of cells than the header: refused with the option, or left out and counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainer.config.choices import BadRowPolicy
from trainer.data.tables.ragged import LEFT_OUT
from trainer.data.tables.reader import read_cells
from trainer.runtime.errors import TrainerError


def written(folder: Path, text: str) -> Path:
    (path := folder / "t.csv").write_text(text)
    return path


RAGGED = "a,b,c\n1,2,3\n4,5\n6,7,8,9\n1,2,\n"


@pytest.mark.parametrize("policy", ["drop", "repair"])
def test_ragged_lines_are_left_out_and_counted_under_drop_and_repair(tmp_path: Path, policy: BadRowPolicy) -> None:
    for chunk in (1, 50_000):
        cells = read_cells(written(tmp_path, RAGGED), chunk, on_bad_row=policy)
        assert cells.ragged == (3, 4)
        assert cells.line.tolist() == [2, 5]
        assert cells.column("c").to_list() == ["3", ""]


@pytest.mark.parametrize(("policy", "advised"), [(None, False), ("error", True)])
def test_ragged_line_is_refused_with_the_option_where_there_is_one(
    tmp_path: Path, policy: BadRowPolicy | None, advised: bool
) -> None:
    with pytest.raises(TrainerError, match="2 cells where the header has 3") as caught:
        read_cells(written(tmp_path, RAGGED), on_bad_row=policy)
    assert (LEFT_OUT in caught.value.next) is advised


def test_table_of_ragged_lines_alone_is_refused_with_the_first_one(tmp_path: Path) -> None:
    with pytest.raises(TrainerError, match="3 cells where the header has 2") as caught:
        read_cells(written(tmp_path, "a,b\nx,1,2\ny,3,4\n"), on_bad_row="drop")
    assert "name for it" in caught.value.next
