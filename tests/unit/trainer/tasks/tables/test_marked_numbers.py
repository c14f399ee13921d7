"""Tables whose numbers are written as people write them, from file to task; all SYNTHETIC."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.fixtures.configs import rows_config
from tests.fixtures.table_tasks import columns, refused, task_of
from trainer.analysis.table_inputs import recorded_inputs
from trainer.config.sections.table import TableConfig
from trainer.data.tables.number_marks import MINUS
from trainer.data.tables.reader import read_cells
from trainer.runtime.errors import TrainerError
from trainer.tasks.tables.marked_numbers import settle_marks
from trainer.tasks.tables.prepare import opened

ROWS = 120


def german(value: float) -> str:
    return f"{value:,.2f}".translate(str.maketrans(",.", ".,"))


def table(folder: Path, separator: str = ";", **made: Any) -> Path:
    draw = random.Random(1)
    lines = [separator.join(made)]
    lines += [separator.join(str(make(draw, row)) for make in made.values()) for row in range(ROWS)]
    (path := folder / "table.csv").write_text("\n".join(lines) + "\n")
    return path


def number(draw: random.Random, _: int) -> float:
    return round(draw.uniform(0, 10), 3)


WRITTEN = {
    "German": (";", lambda d, _: german(d.uniform(20, 9e5)), ","),
    "French": (";", lambda d, _: f"{d.uniform(1e3, 9e5):,.2f} €".replace(",", "\u202f").replace(".", ","), ","),
    "Swiss": (";", lambda d, _: f"{d.uniform(1e3, 9e5):,.2f}".replace(",", "'"), "."),
    "dollars": (",", lambda d, _: f'"${d.uniform(1e3, 9e5):,.2f}"', "."),
    "groups alone": (",", lambda d, _: f'"{d.randint(1000, 9000):,}"', "."),
    "dollars between semicolons": (";", lambda d, _: f"${d.randint(1000, 9000):,}", "."),
    "per cent": (",", lambda d, _: f"{d.uniform(0, 100):.1f} %", "."),
    "lakhs": (",", lambda d, _: f'"{d.randint(1, 99)},{d.randint(10, 99)},{d.randint(100, 999)}.50"', "."),
    "francs": (",", lambda d, _: f"CHF {d.uniform(1e3, 9e5):,.2f}".replace(",", "'"), "."),
    "euros by code": (";", lambda d, _: f"{german(d.uniform(20, 9e5))} EUR", ","),
    "a minus of typesetting": (",", lambda d, n: MINUS * (n % 3 == 0) + f"{d.uniform(0, 10):.2f}", "."),
    "a minus behind": (",", lambda d, n: f"{d.uniform(0, 10):.2f}{'-' * (n % 9 == 0)}", "."),
    "losses": (",", lambda d, n: f'"{d.randint(1000, 9000):,}"' if n % 3 else f'"({d.randint(1000, 9000):,})"', "."),
}


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("target", ["x", "y"])
def test_marked_numbers_are_numbers_as_input_and_as_target(
    name: str, target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    separator, make, mark = WRITTEN[name]
    task = task_of(table(tmp_path, separator, x=make, z=number, y=number if target == "x" else make), target="y")
    assert task.labels is None
    assert columns(task)["x"]["kind"] == "number" and columns(task)["x"]["decimal"] == mark
    assert "decimal" not in columns(task)["z"]
    assert "read as numbers" in capsys.readouterr().err


def test_groups_of_a_german_table_are_no_fractions(tmp_path: Path) -> None:
    def people(draw: random.Random, _: int) -> str:
        return f"{draw.randint(1, 900)}.{draw.randint(100, 999)}"

    path = table(tmp_path, people=people, share=lambda d, _: german(d.random()), y=number)
    task = task_of(path)
    place = [feature["name"] for feature in task.features].index("people")
    assert task.split.train.features[:, place].min() >= 1000


def test_signs_without_a_mark_decide_no_other_column(tmp_path: Path) -> None:
    def people(draw: random.Random, _: int) -> str:
        return f"{draw.randint(1, 900)}.{draw.randint(100, 999)}"

    path = table(
        tmp_path, people=people, rate=lambda d, _: f"{d.randint(1, 99)} %", x=lambda d, _: german(d.random()), y=number
    )
    made = columns(task_of(path))
    assert [made[name].get("decimal") for name in ("people", "rate", "x")] == [",", ",", ","]
    path = table(
        tmp_path,
        x=lambda d, n: f"{n % 9 + 1},{d.randint(100, 999)}",
        rate=lambda d, _: f"{d.randint(1, 99)} %",
        y=number,
    )
    assert "'x' ('" in str(refused(path, "RM580"))


@pytest.mark.parametrize("missing", [".", "n.a."])
def test_words_for_missing_values_have_no_decimal_mark(missing: str, tmp_path: Path) -> None:
    def people(draw: random.Random, row: int) -> str:
        return f"{draw.randint(1, 900)}.{draw.randint(100, 999)}" if row % 5 else missing

    path = table(
        tmp_path,
        people=people,
        rate=lambda d, n: f"{d.randint(1, 99)} %" if n % 5 else missing,
        x=lambda d, _: german(d.random()),
        y=number,
    )
    assert [columns(task_of(path))[name].get("decimal") for name in ("people", "rate")] == [",", ","]


def test_fractions_below_one_are_no_groups(tmp_path: Path) -> None:
    path = table(tmp_path, ",", x=lambda d, _: f'"0,{d.randint(100, 999)}"', z=number, y=number)
    task = task_of(path)
    place = [feature["name"] for feature in task.features].index("x")
    assert task.split.train.features[:, place].max() < 1


def test_groups_that_nothing_decides_are_refused(tmp_path: Path) -> None:
    path = table(tmp_path, x=lambda d, _: f"{d.randint(1, 9)},{d.randint(100, 999)}", y=number)
    assert "'x' ('" in str(refused(path, "RM580"))


def test_column_of_both_marks_is_refused(tmp_path: Path) -> None:
    path = table(tmp_path, x=lambda d, n: "1.234,5" if n % 2 else f"1,23{n % 9}.5", y=number)
    assert "'x' ('" in str(refused(path, "RM580"))


def test_named_categories_and_classes_keep_their_words(tmp_path: Path) -> None:
    path = table(tmp_path, x=lambda _, n: f"{n % 3},5", z=number, y=lambda _, n: f"{n % 2},5")
    task = task_of(path, categories=["x"], task="classification")
    assert (columns(task)["x"]["kind"], task.labels) == ("category", ("0,5", "1,5"))


def test_rows_of_a_new_table_are_read_by_the_recorded_mark(tmp_path: Path) -> None:
    path = table(tmp_path, x=lambda d, _: german(d.uniform(20, 9e5)), z=number, y=number)
    task = task_of(path)
    _, inputs = recorded_inputs(task.made, path)
    rows = np.searchsorted(read_cells(path).line, task.split.test.date)
    assert np.array_equal(inputs[rows], task.split.test.features)


def test_table_of_plain_numbers_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task_of(table(tmp_path, x=number, y=number))
    assert "read as numbers" not in capsys.readouterr().err


def test_marks_are_recorded_for_the_columns_that_have_them(tmp_path: Path) -> None:
    path = table(tmp_path, x=lambda d, _: german(d.random()), z=number, y=number)
    config = rows_config(data=path, target="y")
    assert isinstance(config, TableConfig)
    reading, names, _ = opened(config, None)
    assert (names, reading.decimals) == (["x", "z"], {"x": ","})
    settle_marks(reading, ["z"], config)
    assert reading.decimals == {"x": ","}


@pytest.mark.parametrize(("write", "mark"), [("{:.1f} kg", "."), ("${:,.1f}B", "."), ("{:.0f} months", ".")])
@pytest.mark.parametrize("target", ["x", "y"])
def test_numbers_with_one_unit_are_numbers_and_the_unit_is_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], write: str, mark: str, target: str
) -> None:
    def measured(draw: random.Random, _: int) -> str:
        return f'"{write.format(draw.uniform(100, 9000))}"'

    path = table(tmp_path, ",", x=measured, z=number, y=measured)
    task = task_of(path, target=target)
    other = columns(task)["y" if target == "x" else "x"]
    assert task.labels is None
    assert (other["kind"], other["decimal"], other["unit"]) == ("number", mark, write.split("}")[1].strip())
    assert "read as numbers, without the unit behind them: " in capsys.readouterr().err
    _, matrix = recorded_inputs(task.made, path)
    assert np.isfinite(matrix).all() and matrix.max() > 1000


def test_another_unit_than_that_of_the_training_is_refused_in_a_new_table(tmp_path: Path) -> None:
    made = task_of(table(tmp_path, ",", x=lambda d, _: f"{d.uniform(50, 90):.1f} kg", y=number)).made
    path = table(tmp_path, ",", x=lambda d, _: f"{d.uniform(50, 90):.1f} lb", y=number)
    with pytest.raises(TrainerError) as caught:
        recorded_inputs(made, path)
    assert caught.value.code == "RM580" and "lb' in column 'x'" in caught.value.what


def test_few_words_with_numbers_in_front_stay_categories(tmp_path: Path) -> None:
    made = columns(task_of(table(tmp_path, ",", doors=lambda _, n: f"{n % 10} doors", y=number)))
    assert made["doors"]["kind"] == "category" and "unit" not in made["doors"]


@pytest.mark.parametrize(("signs", "named"), [("€$", True), ("$$", False)])
def test_amounts_in_several_currencies_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], signs: str, named: bool
) -> None:
    task_of(table(tmp_path, ",", price=lambda d, n: f"{signs[n % 2]}{d.uniform(1, 90):.2f}", y=number))
    found = "column 'price' has amounts in several currencies, as '$' and '€' state" in capsys.readouterr().err
    assert found is named
