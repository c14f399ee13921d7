"""The table of right answers is what the benchmark measured, to the whole percent."""

import json

import pytest

from rocmatrix.diagnosis.pages import measured
from tests.unit.rocmatrix.diagnosis.known import ROOT


def written(tmp_path, **percents):
    folder = tmp_path / measured.RESULTS
    folder.mkdir(parents=True)
    row = {"cases": 7, "right_first_percent": 0.0, "first_three_percent": 0.0, "wrong_first_percent": 0.0, **percents}
    for name in (measured.LATEST, measured.FROZEN):
        rows = [{"set": one, **row} for file, one, _ in measured.SETS if file == name]
        (folder / name).write_text(json.dumps({"rows": rows}))
    return tmp_path


def test_set_is_a_row_with_its_cases():
    rows = measured.table(ROOT).splitlines()
    assert len(rows) == len(measured.SETS)
    assert all(about in row for row, (_, _, about) in zip(rows, measured.SETS, strict=True))
    frozen = json.loads((ROOT / measured.RESULTS / measured.FROZEN).read_text())["rows"]
    blind = next(row for row in frozen if row["set"] == "fresh43 to fresh48")
    assert any(row.startswith(f"| {blind['cases']} ") and "| 51 % | 65 % | 2 % |" in row for row in rows)


def test_halves_are_rounded_up(tmp_path):
    root = written(tmp_path, right_first_percent=95.5, first_three_percent=97.4, wrong_first_percent=0.5)
    assert all(row.endswith("| 96 % | 97 % | 1 % |") for row in measured.table(root).splitlines())


def test_sets_measured_together_stand_as_their_sum():
    frozen = {row["set"]: row for row in json.loads((ROOT / measured.RESULTS / measured.FROZEN).read_text())["rows"]}
    for first, last in ((43, 48), (51, 55), (56, 59), (60, 63)):
        whole, numbers = f"fresh{first} to fresh{last}", range(first, last + 1)
        parts = [frozen[f"fresh{number}"] for number in numbers]
        assert frozen[whole]["cases"] == sum(row["cases"] for row in parts)
        for key in ("right_first_percent", "first_three_percent", "wrong_first_percent"):
            mean = sum(row["cases"] * row[key] for row in parts) / frozen[whole]["cases"]
            assert abs(mean - frozen[whole][key]) < 0.1


def test_set_without_figures_is_an_error(tmp_path):
    root = written(tmp_path)
    (root / measured.RESULTS / measured.FROZEN).write_text('{"rows": []}')
    with pytest.raises(KeyError, match="fresh"):
        measured.table(root)
