"""Tables and targets that cannot be learned from are refused with a remedy that fits what was seen."""

from datetime import time, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from trainer.data.tables.encoding import parse_cells
from trainer.data.tables.reader import read_cells
from trainer.runtime.errors import TrainerError
from trainer.tasks.tables.requirements import is_nested, require_columns, require_flat, require_rows, require_single


def cells(path: Path, text: str):
    (file := path / "table.csv").write_text(text)
    return read_cells(file)


@pytest.mark.parametrize(
    ("text", "name", "remedy"),
    [
        ("x t\n1 2\n", "t", "between one of , ; tab or |"),
        ("x,a,b\n1,2,3\n", "a,b", "One column is learned at a time"),
        ("5.1,3.5,setosa\n4.9,3,setosa\n", "species", "The first line looks like a row"),
        ("x,a\n1,2\n", "b", "Correct the file at the named place"),
    ],
)
def test_column_that_is_not_there_has_a_remedy_that_fits(tmp_path, text, name, remedy):
    with pytest.raises(TrainerError, match="RM580") as caught:
        require_columns(cells(tmp_path, text), [name])
    assert remedy in str(caught.value)


KINDS = {
    "a list": pl.Series([[1], [2]]),
    "a record": pl.Series([{"a": 1}, {"a": 2}]),
    "an array": pl.Series([[1], [2]], dtype=pl.Array(pl.Int64, 1)),
    "bytes": pl.Series([b"\xff", b"\x00"]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_target_that_is_neither_number_nor_word_is_refused_by_its_name(tmp_path, kind):
    pl.DataFrame({"x": [1, 2], "odd": KINDS[kind]}).write_parquet(tmp_path / "t.parquet")
    with pytest.raises(TrainerError, match="RM580") as caught:
        require_flat(read_cells(tmp_path / "t.parquet"), "odd")
    assert "--target" in caught.value.next and "'odd'" in caught.value.what
    assert is_nested(read_cells(tmp_path / "t.parquet").types["odd"])


def test_columns_of_numbers_words_and_times_are_flat(tmp_path):
    table = {"x": [1, 2], "word": ["a", "b"], "day": pl.Series([1, 2]).cast(pl.Date), "is": [True, False]}
    pl.DataFrame(table).write_parquet(tmp_path / "t.parquet")
    for name in table:
        require_flat(read_cells(tmp_path / "t.parquet"), name)


def test_column_that_is_used_and_stands_twice_is_refused(tmp_path):
    (tmp_path / "t.csv").write_text("x,y,x,z,z\n1,2,3,4,5\n")
    cells = read_cells(tmp_path / "t.csv")
    require_single(cells, ["y", "z", "z (2)"])
    for names in (["x"], ["y", "x", "z"]):
        with pytest.raises(TrainerError, match="RM580") as caught:
            require_single(cells, names)
        assert caught.value.what == f"several columns are called {', '.join(map(repr, sorted({*names} - {'y'})))}"


def test_spans_of_time_are_seconds():
    assert parse_cells(pl.Series([timedelta(minutes=1), None])).number[0] == 60
    assert parse_cells(pl.Series([time(1, 0, 0, 500_000)])).number.tolist() == [3600.5]


def test_class_with_fewer_rows_than_parts_is_named_with_its_count():
    classes = np.array([0.0] * 9 + [1.0] * 2 + [2.0] * 3)
    with pytest.raises(TrainerError, match="RM583") as caught:
        require_rows(classes, ["a", "b", "c"], "kind")
    assert caught.value.what == "1 of 3 classes of 'kind' have too few rows: 'b' 2"
    assert "regression" not in caught.value.next
    require_rows(np.array([0.0] * 3 + [1.0] * 3), ["a", "b"], "kind")
    with pytest.raises(TrainerError) as of_numbers:
        require_rows(classes, ["1", "2", "3.0"], "kind")
    assert of_numbers.value.next.startswith("If the target is a number, give --task regression.")
