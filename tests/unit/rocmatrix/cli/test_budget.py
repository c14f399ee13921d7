"""Counts of old findings per room: one that grows fails, one that is stale fails, and shrinking never raises one."""

import json

import pytest

from rocmatrix.cli import budget, wording


def place(room):
    return wording.Place(path=f"{room}/module.py", line=1, term="told", better="report")


@pytest.mark.parametrize(
    ("allowed", "message"),
    [
        ({"trainer/engine": 1}, "trainer/engine: 2 banned terms, budget 1"),
        ({}, "trainer/engine: 2 banned terms, budget 0"),
        ({"trainer/engine": 3}, "trainer/engine: budget 3 is stale, 2 found"),
        ({"trainer/engine": 2, "trainer/gone": 1}, "trainer/gone: budget 1 is stale, 0 found"),
    ],
)
def test_budget_that_is_exceeded_or_stale_is_reported(allowed, message):
    assert any(line.startswith(message) for line in judged(allowed))


def test_budget_that_fits_is_accepted():
    assert judged({"trainer/engine": 2}) == []


@pytest.mark.parametrize(
    ("allowed", "expected"),
    [({"trainer/engine": 3, "trainer/gone": 1}, {"trainer/engine": 2}), ({"trainer/engine": 1}, {"trainer/engine": 1})],
)
def test_shrink_lowers_counts_and_never_raises_one(allowed, expected):
    assert budget.shrunk([place("trainer/engine")] * 2, allowed) == expected


def test_shrink_adds_no_room():
    assert budget.shrunk([place("trainer/engine")], {}) == {}


def judged(allowed):
    return budget.judge([place("trainer/engine")] * 2, allowed, what="banned terms", command="check")


@pytest.mark.parametrize(
    ("path", "room"),
    [("trainer/engine/steps/compile.py", "trainer/engine"), ("docs/training.md", "docs"), ("README.md", "README.md")],
)
def test_room_of_a_path_is_its_first_folders_or_the_file_itself(path, room):
    assert budget.room_of(path) == room


def test_check_with_shrink_writes_the_lowered_budget(tmp_path, capsys):
    file = tmp_path / "budget.json"
    file.write_text('{"trainer/engine": 3}')
    given = {"what": "banned terms", "command": "check"}
    assert budget.check([place("trainer/engine")], file, shrink=False, **given) == 1
    assert "budget 3 is stale, 1 found; run check --shrink" in capsys.readouterr().err
    assert budget.check([place("trainer/engine")], file, shrink=True, **given) == 0
    assert json.loads(file.read_text()) == {"trainer/engine": 1}
