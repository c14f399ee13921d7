"""Parquet and Arrow files: known by their first bytes, read in order, refused where a column holds no numbers."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from trainer.data.readers import arrow
from trainer.runtime.errors import TrainerError

DATE = [dt.datetime(2026, 1, 5, 9, minute) for minute in range(30)]


def frame(**changes: Any) -> pl.DataFrame:
    prices = {name: [float(n) for n in range(30)] for name in ("open", "high", "low", "close", "volume")}
    return pl.DataFrame({"date": DATE} | prices | changes)


def written(tmp_path: Path, kind: str, **changes: Any) -> Path:
    path = tmp_path / f"bars.{kind}"
    frame(**changes).write_parquet(path) if kind == "parquet" else frame(**changes).write_ipc(path)
    return path


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_file_is_known_by_its_first_bytes_whatever_its_name(tmp_path: Path, kind: str) -> None:
    path = written(tmp_path, kind).rename(tmp_path / "bars.csv")
    assert arrow.is_columnar(path)
    columns, sample = arrow.open_columnar(path)
    assert (columns.place["close"], len(sample)) == (4, 30)


@pytest.mark.parametrize("content", [b"", b"PAR", b"date,open\n", b"ARROW2"])
def test_other_files_are_not_columnar(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.parquet").write_bytes(content)
    assert not arrow.is_columnar(tmp_path / "x.parquet")
    assert not arrow.is_columnar(tmp_path)
    assert not arrow.is_columnar(tmp_path / "absent")


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
@pytest.mark.parametrize("rows", [1, 7, 30, 100])
def test_pieces_of_any_size_hold_every_row_once_in_order(tmp_path: Path, kind: str, rows: int) -> None:
    pieces = list(arrow.read_columnar(written(tmp_path, kind), rows))
    assert pl.concat([piece for _, piece in pieces]).equals(frame())
    firsts = [first for first, _ in pieces]
    assert firsts == [1 + sum(len(piece) for _, piece in pieces[:n]) for n in range(len(pieces))]


@pytest.mark.parametrize(
    ("changes", "advice"),
    [
        ({"close": [[1.0]] * 30}, "--columns close=NAME"),
        ({"close": [b"x"] * 30}, "--columns close=NAME"),
        ({"close": DATE}, "a column of numbers"),
        ({"date": [[1]] * 30}, "a column of times"),
    ],
    ids=["lists", "bytes", "times as a price", "lists as times"],
)
def test_column_of_a_type_that_holds_none_is_refused_by_name(
    tmp_path: Path, changes: dict[str, Any], advice: str
) -> None:
    with pytest.raises(TrainerError, match="RM512") as caught:
        arrow.open_columnar(written(tmp_path, "parquet", **changes))
    assert advice in str(caught.value.next)


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_file_that_was_cut_off_is_damaged_where_it_is_opened_and_read(tmp_path: Path, kind: str) -> None:
    path = written(tmp_path, kind)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(TrainerError, match="RM516"):
        arrow.open_columnar(path)
    with pytest.raises(TrainerError, match="RM516"):
        list(arrow.read_columnar(path, 10))
