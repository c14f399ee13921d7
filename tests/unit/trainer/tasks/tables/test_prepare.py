from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.fixtures.configs import rows_config
from tests.fixtures.table_tasks import columns, refused, task_of
from tests.fixtures.tables import hours, mixed, written
from trainer.data.dataset import Dataset
from trainer.data.loading import chunks
from trainer.data.tables.encoding import Column
from trainer.data.tables.reader import read_cells
from trainer.data.tables.split import Parts
from trainer.runtime.errors import TrainerError
from trainer.tasks.bars import prepare
from trainer.tasks.tables.prepare import (
    codes_of,
    described,
    require_columns,
    require_trained,
    require_varied,
    scalers,
    time_column,
)
from trainer.tasks.tables.row_policy import Reading


def test_kinds_policies_and_split_are_stated(table: Path) -> None:
    task = task_of(table)
    assert {name: each["kind"] for name, each in columns(task).items()} == {
        **{"colour": "category", "x": "number", "m": "number"},
        **{"noise": "number", "z": "number"},
    }
    assert columns(task)["colour"]["categories"] == ["blue", "green", "red"]
    assert task.made["missing"]["cells"].keys() == {"m"}
    assert task.split_how == {"by": "seed", "seed": 0, "stratified": True}
    assert task.labels == ("no", "yes")
    assert task.made["task_why"] == "the target holds words"


def test_codes_are_not_scaled_and_numbers_are_by_training_rows(table: Path) -> None:
    task = task_of(table)
    (embedding,) = task.embeddings
    place = embedding["column"]
    assert (task.inputs.mean[place], task.inputs.std[place]) == (0, 1)
    others = [each for each in range(len(task.features)) if each != place]
    scaled = task.inputs.scale(task.split.train.features)[:, others]
    assert np.allclose(scaled.mean(axis=0), 0, atol=1e-12)
    assert np.allclose(scaled.std(axis=0), 1)


def test_rows_outside_training_decide_no_input(tmp_path: Path) -> None:
    """Nothing of validation and test leaks: their cells change, and scaling, medians and categories do not."""
    first = mixed()
    one = task_of(written(first, tmp_path, "one.csv"))
    held = np.ones(len(first), np.bool_)
    held[one.split.train.date - 2] = False  # lines of the file, the header is the first
    other = first.with_columns(
        pl.when(pl.Series(held)).then(pl.lit("new")).otherwise(pl.col("colour")).alias("colour"),
        pl.when(pl.Series(held)).then(pl.col("x") * 1000).otherwise(pl.col("x")).alias("x"),
    )
    two = task_of(written(other, tmp_path, "two.csv"))
    assert np.array_equal(one.split.train.features, two.split.train.features)
    assert np.array_equal(one.inputs.mean, two.inputs.mean)
    assert columns(one) == columns(two)
    assert not np.array_equal(one.split.test.features, two.split.test.features)


def test_parts_with_a_time_column_follow_one_another(tmp_path: Path) -> None:
    table = mixed().with_columns(pl.Series("timestamp", hours(300)))
    shuffled = table.sample(fraction=1, shuffle=True, seed=1)
    ordered, mixed_up = (task_of(written(each, tmp_path)) for each in (table, shuffled))
    assert ordered.made["time"] == "timestamp"
    assert ordered.split.train.date[-1] < ordered.split.validation.date[0] < ordered.split.test.date[0]
    assert np.array_equal(ordered.split.test.features, mixed_up.split.test.features)
    assert "timestamp" not in columns(ordered)
    assert task_of(written(table, tmp_path), time_column="none", ignore=("timestamp",)).split_how["by"] == "seed"


def test_numbers_are_a_time_only_where_named(tmp_path: Path) -> None:
    table = mixed().with_columns(pl.Series("index", range(1_600_000_000, 1_600_000_300)))
    assert task_of(written(table, tmp_path)).made["time"] is None
    assert task_of(written(table, tmp_path), time_column="index").split_how["by"] == "time"


def test_balanced_weights_give_classes_equal_weight(table: Path) -> None:
    task = task_of(table, class_weights="balanced")
    assert task.class_weights is not None
    counts = np.bincount(task.split.train.target.astype(int))
    assert np.allclose(counts * task.class_weights, len(task.split.train) / 2)


def test_weights_of_classes_of_a_number_are_reported_as_without_effect(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(mixed().with_columns(pl.Series("y", np.arange(300) / 8)), tmp_path)
    task_of(path, class_weights="balanced")
    assert "--class-weights has no effect: the target is a number" in capsys.readouterr().err


def test_missing_values_are_refused_dropped_or_filled(table: Path) -> None:
    gaps = sum(line.split(",")[2] == '""' for line in table.read_text().splitlines()[1:])
    assert f"{gaps} missing values" in refused(table, "RM581", missing="error").what
    dropped = task_of(table, missing="drop")
    assert dropped.made["dropped_rows"] == {"m is missing": gaps}
    assert len(dropped.dates) == 300 - gaps
    filled = task_of(table)
    assert len(filled.dates) == 300
    assert "m is missing" in [feature["name"] for feature in filled.features]


def test_word_among_numbers_is_refused_dropped_or_repaired(tmp_path: Path) -> None:
    lines = written(mixed(), tmp_path).read_text().splitlines()
    cells = lines[7].split(",")
    lines[7] = ",".join([cells[0], "oops", *cells[2:]])
    path = tmp_path / "table.csv"
    path.write_text("\n".join(lines) + "\n")
    error = refused(path, "RM580", on_bad_row="error")
    assert "'oops' in column 'x'" in error.what
    assert error.where.endswith("line 8")
    assert task_of(path).made["missing"]["cells"]["x"] == 1
    assert task_of(path, on_bad_row="drop").made["dropped_rows"] == {"x is no number": 1}
    assert task_of(path, on_bad_row="repair").made["missing"]["cells"]["x"] == 1


def test_row_without_a_target_is_dropped_and_counted(tmp_path: Path) -> None:
    table = mixed().with_columns(pl.when(pl.int_range(300) < 5).then(pl.lit("")).otherwise(pl.col("y")).alias("y"))
    assert task_of(written(table, tmp_path)).made["dropped_rows"] == {"y, the target, is missing": 5}


def test_class_that_comes_only_later_is_refused(tmp_path: Path) -> None:
    table = mixed().with_columns(
        pl.Series("timestamp", hours(300)),
        pl.when(pl.int_range(300) > 280).then(pl.lit("new")).otherwise(pl.col("y")).alias("y"),
    )
    refused(written(table, tmp_path), "RM583")


def test_names_that_are_no_column_are_reported_with_the_nearest(table: Path) -> None:
    assert "did you mean colour?" in refused(table, "RM580", ignore=("color",)).what
    assert "no column 'why'" in refused(table, "RM580", target="why").what


def test_constant_target_is_refused(tmp_path: Path) -> None:
    refused(written(mixed().with_columns(pl.lit("yes").alias("y")), tmp_path), "RM518")


def test_share_of_the_rows_is_a_seeded_draw(table: Path) -> None:
    tenth, again = (task_of(table, data_fraction=0.4) for _ in range(2))
    assert len(tenth.dates) == 120
    assert tenth.dates.tolist() == again.dates.tolist() != list(range(2, 122))
    other = task_of(table, data_fraction=0.4, split_seed=1)
    assert other.dates.tolist() != tenth.dates.tolist()


def test_bar_target_of_a_name_nearly_right_is_a_column(table: Path) -> None:
    assert "no column 'volatilty'" in refused(table, "RM580", target="volatilty").what
    with pytest.raises(TrainerError, match="did you mean volatility"):
        prepare(rows_config(target="volatilty", features="daily"))


def numbers(tmp_path: Path, **cells: str) -> Path:
    """A table of 300 rows with a cell of `x` or `z` on line 102 changed."""
    table = mixed(gaps=False).drop("y")
    for name, cell in cells.items():
        words = [cell if row == 100 else str(value) for row, value in enumerate(table[name])]
        table = table.with_columns(pl.Series(name, words))
    return written(table, tmp_path)


@pytest.mark.parametrize("name", ["x", "z"])
@pytest.mark.parametrize("cell", ["1e300", "-1e39", "1e308", "inf", "oops"])
def test_cell_that_no_network_can_hold_is_named_with_its_line(tmp_path: Path, name: str, cell: str) -> None:
    path = numbers(tmp_path, **{name: cell})
    error = refused(path, "RM580", target="z", on_bad_row="error")
    assert error.what.startswith(f"{cell!r} in column {name!r} ") and error.where == f"{path}, line 102"
    assert ("32 bits" in error.what) == (cell[-1].isdigit())
    assert ("--task classification" in error.next) == (name == "z")
    assert sum(task_of(path, target="z", on_bad_row="drop").made["dropped_rows"].values()) == 1
    assert task_of(path, target="z", on_bad_row="repair").labels is None


def test_numbers_within_32_bits_train(tmp_path: Path) -> None:
    assert task_of(numbers(tmp_path, x="3e38"), target="z").labels is None


def test_value_too_far_from_the_training_rows_is_named(tmp_path: Path) -> None:
    table = mixed(gaps=False).with_columns(time=pl.Series(hours(300)))
    for name in ("x", "z"):
        far = [1e25 if row == 299 else value for row, value in enumerate(table[name])]
        path = written(table.with_columns(pl.Series(name, far)), tmp_path)
        error = refused(path, "RM580", target="z")
        assert repr(name) in error.what and error.where == f"{path}, line 301"


@pytest.mark.parametrize("feed", ["device", "mapped"])
def test_first_column_and_first_row_that_are_too_far_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, feed: str
) -> None:
    monkeypatch.setattr(chunks, "PIECE", 16)
    table = mixed().with_columns(at=pl.Series(hours(300)))
    cells = {name: table[name].to_list() for name in table.columns}
    cells["noise"][290] = 1e37
    cells["x"][295], cells["x"][280] = 1e37, 1e37
    error = refused(written(pl.DataFrame(cells), tmp_path), "RM580", time_column="at", feed=feed, output=tmp_path / "r")
    assert "column 'x'" in error.what
    assert error.where.endswith("line 282")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("feed", ["device", "mapped"])
def test_name_that_polars_takes_for_a_pattern_is_a_name(tmp_path: Path, kind: str, feed: str) -> None:
    table = mixed(gaps=False).rename({"x": "^a$", "colour": "^.*$", "z": "^t$"})
    path = tmp_path / f"t.{kind}"
    table.write_parquet(path) if kind == "parquet" else table.write_csv(path)
    task = task_of(path, target="^t$", feed=feed, output=tmp_path / "runs")
    assert {name: each["kind"] for name, each in columns(task).items()} == {
        **{"^.*$": "category", "^a$": "number", "m": "number"},
        **{"noise": "number", "y": "category"},
    }
    timed = task_of(written(table.with_columns(pl.Series("^w$", hours(300))), tmp_path, "w.csv"), time_column="^w$")
    assert timed.split_how["by"] == "time"


@pytest.mark.parametrize("word", ["inf", "-Infinity", "1e300"])
@pytest.mark.parametrize("every", [3, 100])
def test_infinite_or_huge_value_is_named_with_row_and_column(tmp_path: Path, word: str, every: int) -> None:
    values = [word if row % every == 2 else str(row / 7) for row in range(300)]
    error = refused(written(mixed().with_columns(pl.Series("size", values)), tmp_path), "RM580")
    assert f"{word!r} in column 'size'" in error.what
    assert ":4" in error.where or "line 4" in error.where
    task = task_of(written(mixed().with_columns(pl.Series("size", values)), tmp_path), on_bad_row="repair")
    assert columns(task)["size"]["kind"] == "number"


def test_hour_that_no_clock_showed_is_reported_with_the_zone(tmp_path: Path) -> None:
    times = ["2020-03-08 01:00:00", "2020-03-08 02:30:00"] * 150
    path = written(mixed().with_columns(pl.Series("when", times)), tmp_path)
    error = refused(path, "RM580", time_column="when")
    assert "clocks in America/New_York" in error.what
    assert "--time-zone UTC" in error.next
    assert task_of(path, time_column="when", time_zone="UTC").split_how["by"] == "time"


@pytest.mark.parametrize(
    ("labels", "text"),
    [
        (None, "'y' is a number"),
        (("a", "b"), "'y' is one of 2 classes (a, b)"),
        (tuple("abcde"), "'y' is one of 5 classes (a, b, c, d, e)"),
        (tuple("abcdef"), "'y' is one of 6 classes (a, b, c, d, e and 1 more)"),
    ],
)
def test_target_is_described_by_its_first_classes(labels: tuple[str, ...] | None, text: str) -> None:
    assert described("y", labels) == text


def test_code_of_a_category_stands_at_the_place_of_its_input() -> None:
    columns = [
        Column(name="n", kind="number", why="", indicator=True),  # two inputs
        Column(name="c", kind="category", why="", categories=("a", "b", "c")),
        Column(name="m", kind="number", why=""),
        Column(name="d", kind="category", why="", categories=()),
    ]
    found = codes_of(columns)
    assert {place: each["values"] for place, each in found.items()} == {2: 4, 4: 1}
    assert all(each["column"] == place and each["width"] >= 1 for place, each in found.items())


@pytest.mark.parametrize("labels", [None, ("a", "b")])
def test_codes_and_classes_are_not_scaled(labels: tuple[str, ...] | None) -> None:
    features = np.array([[1.0, 5.0], [2.0, 7.0]])
    rows = Dataset(date=np.arange(2), features=features, target=np.array([1.0, 3.0]), persistence=np.zeros(2))
    inputs, target = scalers(rows, {0: {}}, labels)
    assert (inputs.mean.tolist(), inputs.std.tolist()) == ([0.0, 6.0], [1.0, 1.0])
    assert (float(target.mean), float(target.std)) == ((0.0, 1.0) if labels else (2.0, 1.0))


@pytest.mark.parametrize(("values", "labels"), [([2.0, 2.0], None), ([1.0, 1.0, 1.0], ("no", "yes"))])
def test_target_that_never_changes_is_refused(table: Path, values: list[float], labels: tuple[str, ...] | None) -> None:
    cells = read_cells(table)
    reading = Reading(cells=cells, held=(), kept=np.ones(len(cells.line), np.bool_), dropped={"kind is missing": 7})
    require_varied(np.array([*values, 0.0]), labels, reading)
    with pytest.raises(TrainerError, match="RM518") as caught:
        require_varied(np.array(values), labels, reading)
    assert caught.value.why == "7 rows dropped: kind is missing"  # as None was, which may be a class
    assert f"all {len(values)} training targets are {'2' if labels is None else repr('yes')}" == caught.value.what


@pytest.mark.parametrize("later", ["validation", "test"])
def test_class_that_only_later_rows_have_is_refused(later: str) -> None:
    rows = {"train": np.array([0, 1]), "validation": np.array([0]), "test": np.array([1])}
    classes = np.array([0.0, 1.0, 2.0])
    require_trained(classes, Parts(**rows, how={}))
    with pytest.raises(TrainerError, match="RM583") as caught:
        require_trained(classes, Parts(**(rows | {later: np.array([2])}), how={}))
    assert str(caught.value.what).startswith("1 of the classes")


def test_name_that_is_no_column_is_refused_with_the_nearest(table: Path) -> None:
    cells = read_cells(table)
    require_columns(cells, ["y", "colour"])
    with pytest.raises(TrainerError, match="RM580") as caught:
        require_columns(cells, ["y", "color"])
    assert "no column 'color'; did you mean colour" in str(caught.value.what)


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({}, "timestamp"),
        ({"time_column": "none"}, None),
        ({"time_column": "noise"}, "noise"),
        ({"ignore": ("timestamp",)}, None),
        ({"categories": ("timestamp",)}, None),
        ({"target": "timestamp"}, None),
    ],
)
def test_column_that_orders_rows_is_named_or_found(
    tmp_path: Path, settings: dict[str, object], found: str | None
) -> None:
    path = written(mixed(20).with_columns(pl.Series("timestamp", hours(20))), tmp_path)
    config = rows_config(data=path, **({"target": "y"} | settings))
    assert time_column(read_cells(path), config) == found


def test_column_called_like_a_time_that_holds_none_orders_nothing(tmp_path: Path) -> None:
    path = written(mixed(20).with_columns(pl.Series("timestamp", ["soon"] * 20)), tmp_path)
    assert time_column(read_cells(path), rows_config(data=path, target="y")) is None


@pytest.mark.parametrize(
    "cells", [("1,5", "2,25"), ("$1,200", "-$7"), ("12 %", "7.5%"), ("1.200,50", "3"), ("1 200", "5")]
)
def test_numbers_with_commas_or_signs_become_no_words(tmp_path: Path, cells: tuple[str, str]) -> None:
    written_so = pl.Series([*cells] * 150)
    path = written(mixed().with_columns(x=written_so, m=written_so), tmp_path)
    assert columns(task_of(path))["x"]["kind"] == "number"
    assert columns(task_of(path, categories=("x", "m")))["x"]["kind"] == "category"


def test_numbers_of_both_decimal_marks_are_named_before_they_become_words(tmp_path: Path) -> None:
    written_so = pl.Series(["1.200,50", "1,200.50"] * 150)
    path = written(mixed().with_columns(x=written_so, m=written_so), tmp_path)
    error = refused(path, "RM580")
    assert "'x' ('1.200,50'), 'm' ('1.200,50')" in error.what and "--categories x,m" in error.next


@pytest.mark.parametrize("cells", [("3,4,5", "a"), ("12:30", "2024-01-02"), ("A 5", "1.2.3"), ("10.0.0.1", "7")])
def test_words_that_have_digits_stay_words(tmp_path: Path, cells: tuple[str, str]) -> None:
    path = written(mixed().with_columns(x=pl.Series([*cells] * 150)), tmp_path)
    assert columns(task_of(path))["x"]["kind"] == "category"


def test_column_without_any_value_is_left_out_and_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = mixed().with_columns(empty=pl.Series([None] * 300, dtype=pl.Float64), blank=pl.Series(["NA"] * 300))
    path = tmp_path / "t.parquet"
    table.write_parquet(path)
    task = task_of(path)
    assert "table   left out, without any value: empty, blank" in capsys.readouterr().err
    assert {"empty", "blank"} <= {*task.made["ignored"]}
    assert not {"empty", "blank"} & {column["name"] for column in task.made["columns"]}


def test_table_whose_inputs_have_no_value_is_refused(tmp_path: Path) -> None:
    path = written(pl.DataFrame({"y": range(300), "a": [""] * 300, "b": ["NA"] * 300}), tmp_path)
    assert "no column has a value" in refused(path, "RM580").what


def test_ragged_lines_are_counted_among_the_dropped_rows(tmp_path: Path) -> None:
    lines = ["x,y", *[f"{row % 7},{row}" for row in range(100)]]
    lines[50] += ",oops"
    (path := tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    assert task_of(path, on_bad_row="drop").made["dropped_rows"] == {"another number of cells than the header has": 1}
