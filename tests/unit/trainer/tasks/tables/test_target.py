"""The target of a table: a number or classes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.fixtures.configs import rows_config
from tests.fixtures.table_tasks import refused, task_of
from tests.fixtures.tables import mixed, written
from trainer.data.tables.reader import read_cells
from trainer.runtime.errors import TrainerError
from trainer.tasks.tables.row_policy import Reading
from trainer.tasks.tables.target import MOST_CLASSES, ROWS_A_CLASS, classes_of, target_values


def test_target_decides_between_classes_and_a_number(tmp_path: Path) -> None:
    table = mixed().with_columns(pl.Series("few", [n % 3 for n in range(300)]), pl.Series("many", range(300)))
    path = written(table, tmp_path)
    assert task_of(path, target="few").labels == ("0", "1", "2")
    assert task_of(path, target="few", task="regression").labels is None
    assert task_of(path, target="many").labels is task_of(path, target="z").labels is None
    assert refused(path, "RM580", task="regression").what == "the target 'no' is no number"


def test_target_with_decimal_commas_is_no_classes(tmp_path: Path) -> None:
    table = mixed(gaps=False)
    path = tmp_path / "comma.csv"
    table.with_columns(table["z"].cast(pl.String).str.replace(".", ",", literal=True)).write_csv(path, separator=";")
    task = task_of(path, target="z")
    assert task.labels is None
    assert np.allclose(task.split.test.target, table["z"].to_numpy()[task.split.test.date - 2])  # by lines of the file


def test_classes_may_be_numbers_and_a_word(tmp_path: Path) -> None:
    grades = [("1", "2", "3", "none given")[(row % 50 == 0) * 3 or row % 3] for row in range(300)]
    task = task_of(written(mixed().with_columns(y=pl.Series(grades)), tmp_path))
    assert task.labels == ("1", "2", "3", "none given")


@pytest.mark.parametrize("flag", ["ignore", "categories"])
def test_target_is_not_left_out_too(table: Path, flag: str) -> None:
    error = refused(table, "RM500", **{flag: ("y",)})
    assert f"--{flag}" in error.what and "--target" in error.what


def reading_of(folder: Path, values: list[object], **settings: object) -> tuple[Reading, object]:
    path = written(pl.DataFrame({"y": [str(value) for value in values], "x": range(len(values))}), folder)
    cells = read_cells(path)
    reading = Reading(cells=cells, held=["y"], kept=np.ones(len(cells.line), np.bool_))
    return reading, rows_config(data=path, target="y", **settings)


@pytest.mark.parametrize(
    ("rows", "different", "classes"),
    [
        (MOST_CLASSES * ROWS_A_CLASS, MOST_CLASSES, True),
        (MOST_CLASSES * ROWS_A_CLASS - 1, MOST_CLASSES, False),
        (1000, MOST_CLASSES + 1, False),
        (20, 2, True),
        (19, 2, False),
    ],
)
def test_whole_numbers_are_classes_where_each_has_rows_enough(
    tmp_path: Path, rows: int, different: int, classes: bool
) -> None:
    labels, why = classes_of(*reading_of(tmp_path, [row % different for row in range(rows)]))
    assert (labels is not None) is classes
    assert why == f"the target holds {different} different whole numbers"
    if labels:
        assert labels == tuple(str(each) for each in range(different))  # by their value, not as words


@pytest.mark.parametrize(("different", "rarest", "classes"), [(11, 2, False), (11, 3, True), (10, 1, True)])
def test_counts_of_which_some_are_rare_are_a_number(tmp_path: Path, different: int, rarest: int, classes: bool) -> None:
    values = [row % (different - 1) for row in range(300)] + [different - 1] * rarest
    labels, _ = classes_of(*reading_of(tmp_path, values))
    assert (labels is not None) is classes


def test_number_written_in_two_ways_is_one_class(tmp_path: Path) -> None:
    reading, config = reading_of(tmp_path, [("0", "1", "1.0")[row % 3] for row in range(90)])
    labels, _ = classes_of(reading, config)
    assert labels == ("0", "1")
    assert target_values(reading, config, labels)[:3].tolist() == [0, 1, 1]
    once, _ = classes_of(*reading_of(tmp_path, [("0.0", "1.0")[row % 2] for row in range(90)]))
    assert once == ("0.0", "1.0")  # as they are written


def test_numbers_that_are_not_whole_are_no_classes(tmp_path: Path) -> None:
    values = [(row % 2) + 0.5 for row in range(100)]
    assert classes_of(*reading_of(tmp_path, values)) == (None, "the target holds 2 different numbers")
    labels, why = classes_of(*reading_of(tmp_path, values, task="classification"))
    assert (labels, why) == (("0.5", "1.5"), "--task classification")


def test_row_without_a_target_is_dropped_or_refused(tmp_path: Path) -> None:
    values = [*(["", "a", "b"] * 30)]
    reading, config = reading_of(tmp_path, values)
    assert classes_of(reading, config)[0] == ("a", "b")
    assert reading.dropped == {"y, the target, is missing": 30}
    reading, config = reading_of(tmp_path, values, missing="error")
    with pytest.raises(TrainerError, match="RM581"):
        classes_of(reading, config)


def test_numbers_come_before_words_among_classes(tmp_path: Path) -> None:
    labels, why = classes_of(*reading_of(tmp_path, ["b", "10", "9", "a", "-1"] * 10))
    assert (labels, why) == (("-1", "9", "10", "a", "b"), "the target holds words")


def test_value_of_a_class_is_its_place_and_of_none_is_missing(tmp_path: Path) -> None:
    reading, config = reading_of(tmp_path, ["b", "a", "c", "b"])
    found = target_values(reading, config, ("a", "b"))
    assert np.array_equal(found, [1.0, 0.0, np.nan, 1.0], equal_nan=True)
    reading, config = reading_of(tmp_path, ["2.5", "", "-1"])
    assert np.array_equal(target_values(reading, config, None), [2.5, np.nan, -1.0], equal_nan=True)


@pytest.mark.parametrize(
    ("values", "code", "words"),
    [
        ([f"{n / 7:.1f}%" for n in range(1, 100)], "RM580", "a number with a sign"),
        ([f"${n}" for n in range(1, 100)], "RM580", "a number with a sign"),
        ([f"text {n}" for n in range(99)], "RM582", "99 different words in 99 rows"),
    ],
)
def test_target_of_marked_numbers_or_text_is_no_classes(
    tmp_path: Path, values: list[object], code: str, words: str
) -> None:
    with pytest.raises(TrainerError, match=code) as caught:
        classes_of(*reading_of(tmp_path, values))
    assert words in caught.value.what and "'y'" in caught.value.what


def test_words_that_stand_in_several_rows_each_are_classes(tmp_path: Path) -> None:
    values: list[object] = [f"word {n % 40}" for n in range(120)]
    assert len(classes_of(*reading_of(tmp_path, values))[0] or ()) == 40


@pytest.mark.parametrize(("rare", "left_out"), [(2, True), (3, False)])
def test_class_of_few_rows_is_left_out_with_its_rows(tmp_path: Path, rare: int, left_out: bool) -> None:
    kinds = pl.Series(["odd" if row < rare else "ab"[row % 2] for row in range(300)])
    task = task_of(written(mixed().with_columns(y=kinds), tmp_path))
    dropped = {"y is of a class with less than 3 rows, 'odd'": rare} if left_out else {}
    assert (task.labels, task.made["dropped_rows"]) == (("a", "b") if left_out else ("a", "b", "odd"), dropped)


@pytest.mark.parametrize("rare", [7, 8])
def test_classes_of_few_rows_are_refused_where_they_are_many(tmp_path: Path, rare: int) -> None:
    kinds = [f"odd {row // 2}" if row < 2 * rare else "ab"[row % 2] for row in range(300)]
    path = written(mixed().with_columns(y=pl.Series(kinds)), tmp_path)
    if 2 * rare > 15:  # 5 % of the rows
        assert refused(path, "RM583").what.startswith(f"{rare} of {rare + 2} classes")
    else:
        assert task_of(path).labels == ("a", "b")


def test_single_class_with_enough_rows_is_no_classification(tmp_path: Path) -> None:
    kinds = pl.Series(["odd" if row == 1 else "a" for row in range(300)])
    refused(written(mixed().with_columns(y=kinds), tmp_path), "RM583")
