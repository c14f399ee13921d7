"""New tables by the metadata of a run: what is missing is what the run took for missing; all SYNTHETIC."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest

from tests.fixtures.table_tasks import columns, task_of
from trainer.analysis.table_inputs import recorded_inputs
from trainer.runtime.errors import TrainerError

STRANDS = "+-."


def table(path: Path, strands: str, rows: int = 120) -> Path:
    lines = [f"{row},{strands[row % len(strands)]},{'+-'[row * 7 % 3 > 1]}" for row in range(rows)]
    path.write_text("\n".join(["x,strand,y", *lines]) + "\n")
    return path


def test_minus_next_to_a_plus_is_a_category_and_a_class(tmp_path: Path) -> None:
    task = task_of(table(tmp_path / "table.csv", STRANDS))
    assert columns(task)["strand"]["categories"] == ["+", "-"]
    assert (task.labels, task.made["dropped_rows"]) == (("+", "-"), {})


def test_minus_stays_a_category_in_new_rows_without_a_plus(tmp_path: Path) -> None:
    task = task_of(table(tmp_path / "table.csv", STRANDS))
    _, inputs = recorded_inputs(task.made, table(tmp_path / "new.csv", "-", rows=4))
    assert inputs[:, 1].tolist() == [2.0] * 4


def test_words_that_an_earlier_run_took_for_categories_are_categories_of_new_rows(tmp_path: Path) -> None:
    made = copy.deepcopy(task_of(table(tmp_path / "table.csv", STRANDS)).made)
    made["missing"]["words"] = ["", "na"]
    made["columns"][1]["categories"] = ["+", "-", "."]
    _, inputs = recorded_inputs(made, table(tmp_path / "new.csv", STRANDS, rows=3))
    assert np.array_equal(inputs[:, 1], [1.0, 2.0, 3.0])


def numbers(path: Path, cells: list[str], separator: str = ",") -> Path:
    lines = [f"{cell}{separator}{'ab'[row % 2]}{separator}{row % 7}" for row, cell in enumerate(cells)]
    path.write_text("\n".join([separator.join(("x", "word", "y")), *lines]) + "\n")
    return path


POINTS = [f"{2600 + row * 0.37:.2f}" for row in range(90)]


def test_new_numbers_with_a_comma_for_the_point_are_those_of_the_training(tmp_path: Path, capsys) -> None:
    made = task_of(numbers(tmp_path / "t.csv", POINTS)).made
    _, plain = recorded_inputs(made, tmp_path / "t.csv")
    _, german = recorded_inputs(
        made, numbers(tmp_path / "n.csv", [each.replace(".", ",") for each in POINTS], separator=";")
    )
    assert np.array_equal(plain, german)
    assert "read by their own marks: x" in capsys.readouterr().err


def test_new_numbers_with_points_after_a_training_with_commas_are_not_a_hundredfold(tmp_path: Path) -> None:
    commas = numbers(tmp_path / "t.csv", [each.replace(".", ",") for each in POINTS], separator=";")
    made = task_of(commas).made
    _, inputs = recorded_inputs(made, numbers(tmp_path / "n.csv", POINTS))
    assert inputs[0, 0] == 2600.0 and inputs[1, 0] == 2600.37
    _, grouped = recorded_inputs(made, numbers(tmp_path / "g.csv", ["2.600", "2.601"], separator=";"))
    assert grouped[:, 0].tolist() == [2600.0, 2601.0]


def test_rows_without_any_value_have_no_forecast_and_missing_columns_are_named(tmp_path: Path, capsys) -> None:
    made = task_of(numbers(tmp_path / "t.csv", POINTS)).made
    (new := tmp_path / "n.csv").write_text("x,word,y\n2600.5,a,1\n,b,1\n,,\n")
    _, inputs = recorded_inputs(made, new)
    assert np.isfinite(inputs).all(axis=1).tolist() == [True, True, False]
    stderr = capsys.readouterr().err
    assert "1 rows have no forecast: none of the model's columns has a value there" in stderr
    assert "RM519 values are missing where the training had all, and are filled in: x (50%)" in stderr


def test_columns_that_a_new_table_lacks_are_named_at_once(tmp_path: Path) -> None:
    made = task_of(numbers(tmp_path / "t.csv", POINTS)).made
    (new := tmp_path / "n.csv").write_text("z\n1\n")
    with pytest.raises(TrainerError) as caught:
        recorded_inputs(made, new)
    assert caught.value.what == "2 of 2 columns of the training are missing: 'x', 'word'"
    new.write_text("2600.5,a\n2601.5,b\n")
    with pytest.raises(TrainerError) as caught:
        recorded_inputs(made, new)
    assert caught.value.next.startswith("The first line looks like a row")


def test_name_in_other_case_is_proposed(tmp_path: Path) -> None:
    made = task_of(numbers(tmp_path / "t.csv", POINTS)).made
    (new := tmp_path / "n.csv").write_text("X,word\n2600.5,a\n")
    with pytest.raises(TrainerError, match="did you mean X"):
        recorded_inputs(made, new)


def test_column_of_mostly_new_words_is_named(tmp_path: Path, capsys) -> None:
    made = task_of(numbers(tmp_path / "t.csv", POINTS)).made
    (new := tmp_path / "n.csv").write_text("x,word\n2600.5,0\n2601.5,1\n2602.5,a\n")
    recorded_inputs(made, new)
    assert "RM519 67% of the cells of 'word' are words that training never met" in capsys.readouterr().err


def test_column_of_the_training_that_stands_twice_in_new_rows_is_refused(tmp_path: Path) -> None:
    made = task_of(numbers(tmp_path / "t.csv", POINTS)).made
    (tmp_path / "n.csv").write_text("x,word,x\n1,a,2\n")
    with pytest.raises(TrainerError, match=r"(?s)RM580.*several columns are called 'x'"):
        recorded_inputs(made, tmp_path / "n.csv")


def test_new_rows_need_no_column_that_the_training_left_out(tmp_path: Path) -> None:
    made = task_of(numbers(tmp_path / "t.csv", POINTS)).made
    text = (tmp_path / "t.csv").read_text()
    (tmp_path / "n.csv").write_text(
        "\n".join(f"{line},{'name' if not row else f'n {row}'}" for row, line in enumerate(text.split()))
    )
    named = task_of(tmp_path / "n.csv").made
    assert named["ignored"] == ["name"] and named["columns"] == made["columns"]
    found = [recorded_inputs(named, tmp_path / name)[1] for name in ("t.csv", "n.csv")]
    assert np.array_equal(*found)
