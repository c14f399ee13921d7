from __future__ import annotations

from decimal import Decimal

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.data.tables import encoding
from trainer.data.tables.encoding import Column, are_dated, encode, features_of, fit_column, kind_of, parse_cells
from trainer.runtime.errors import TrainerError


def column(*cells: object, dtype: pl.DataType | None = None) -> pl.Series:
    return pl.Series("c", cells, dtype=dtype, strict=False)


@pytest.mark.parametrize(
    ("cells", "named", "kind"),
    [
        (column("1", "2.5", "", "1e3", "-4", "NA"), (), "number"),
        (column("a", "b", "a", "", "b", "c"), (), "category"),
        (column("1", "2", "1", "2", "1", "2"), ("c",), "category"),
        (column(True, False, None, True, True, False), (), "category"),
        (column(1, 2, None, 3, 4, 5), (), "number"),
    ],
)
def test_kinds(cells: pl.Series, named: tuple[str, ...], kind: str) -> None:
    assert kind_of("c", parse_cells(cells), named)[0] == kind


def test_nearly_all_numbers_is_a_column_of_numbers_with_a_mistake() -> None:
    parsed = parse_cells(column(*(["1.5"] * 19), "oops"))
    assert kind_of("c", parsed, ())[0] == "number"
    assert parsed.wrong.tolist() == [False] * 19 + [True]


@pytest.mark.parametrize(
    "word",
    [
        *("", " ", "NA", "n/a", "NaN", "nan", "NULL", "None", "?", "-", "n.a.", ".", "#N/A", "#DIV/0!"),
        *("\u2014", "..", "\\N", "k.A."),
    ],
)
def test_spellings_of_a_missing_value_are_recognised(word: str) -> None:
    assert parse_cells(column("1", word)).missing.tolist() == [False, True]


def test_typed_whole_numbers_are_one_category_whatever_their_type() -> None:
    whole, real = (parse_cells(column(3, 10, None, dtype=kind)).text.to_list() for kind in (pl.Int64(), pl.Float64()))
    assert whole == real == ["3", "10", None]


@given(st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6)), min_size=6, max_size=6), st.data())
def test_column_is_fitted_to_training_rows_alone(cells: list[float | None], data: st.DataObject) -> None:
    train = np.array([0, 1, 2])
    cells[0] = 1.0
    other = [*cells[:3], *data.draw(st.lists(st.floats(-1e9, 1e9), min_size=3, max_size=3))]
    one, two = (
        fit_column("c", "number", "", parse_cells(column(*each, dtype=pl.Float64())), train) for each in (cells, other)
    )
    assert one == two


def test_categories_are_those_of_training_and_others_have_code_0() -> None:
    parsed = parse_cells(column("b", "a", "b", "a", "z", ""))
    fitted = fit_column("c", "category", "", parsed, np.arange(4))
    (codes,), new = encode(fitted, parsed)
    assert fitted.categories == ("a", "b")
    assert codes.tolist() == [2, 1, 2, 1, 0, 0]
    assert new.tolist() == [False] * 4 + [True, False]


def test_missing_number_becomes_the_training_median_and_reports_it() -> None:
    parsed = parse_cells(column("1", "", "3", "8", "", "100"))
    fitted = fit_column("c", "number", "", parsed, np.arange(4))
    values, flag = encode(fitted, parsed)[0]
    assert values.tolist() == [1, 3, 3, 8, 3, 100]
    assert flag.tolist() == [0, 1, 0, 0, 1, 0]
    assert [each["name"] for each in features_of(fitted)] == ["c", "c is missing"]


def test_flag_for_gaps_is_absent_without_a_gap_in_training() -> None:
    parsed = parse_cells(column("1", "2", "3", ""))
    fitted = fit_column("c", "number", "", parsed, np.arange(3))
    assert len(encode(fitted, parsed)[0]) == len(features_of(fitted)) == 1


def test_named_column_of_more_words_than_categories_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "MOST_CATEGORIES", 99)
    fit_column("c", "category", encoding.NAMED, parse_cells(pl.Series([f"id-{n}" for n in range(99)])), np.arange(99))
    with pytest.raises(TrainerError, match="RM582") as caught:
        parsed = parse_cells(pl.Series([f"id-{n}" for n in range(100)]))
        fit_column("my c", "category", encoding.NAMED, parsed, np.arange(100))
    assert "--ignore 'my c', or make at most 99 words" in caught.value.next


def test_decimals_of_a_typed_file_are_numbers_and_classes() -> None:
    cells = parse_cells(pl.Series([Decimal("1.50"), None, Decimal("3.00")], dtype=pl.Decimal(10, 2)))
    assert cells.number.tolist()[::2] == [1.5, 3.0]
    assert cells.text.to_list() == ["1.5", None, "3"]


def test_column_of_plain_numbers_is_read_in_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "_stripped", lambda column: pytest.fail("read as words"))
    assert parse_cells(column("1", "-2.5", "3e2")).number.tolist() == [1, -2.5, 300]
    monkeypatch.undo()
    for odd in ("inf", "nan", "1e39", " 4", ""):
        cells = parse_cells(column("1", odd))
        assert cells.missing.tolist() == [False, odd in ("nan", "")]
        assert cells.wrong.tolist() == [False, odd in ("inf", "1e39")]


def test_column_is_the_same_after_json() -> None:
    made = Column(name="c", kind="category", why="words", categories=("a", "b"))
    assert Column.from_dict(made.as_dict()) == made


@pytest.mark.parametrize(
    ("cells", "missing"),
    [
        (["None", "Mild", "Severe", ""], [False, False, False, True]),
        (["none", "none", "7", "Mild", "Severe"], [False] * 5),
        (["None", "1", "2.5", "3"], [True, False, False, False]),
        (["None", "", "NA"], [True, True, True]),
    ],
)
def test_cell_of_none_is_a_word_among_words(cells: list[str], missing: list[bool]) -> None:
    assert parse_cells(pl.Series(cells)).missing.tolist() == missing


@pytest.mark.parametrize(("words", "dated"), [(["3/4/2014", "2014-04-03"], True), (["red", "3/4/2014", "1-4"], False)])
def test_words_that_look_like_dates(words: list[str], dated: bool) -> None:
    assert are_dated(pl.Series(words)) is dated
