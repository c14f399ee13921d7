"""The grid says of every square what the rules and the cells say, and nothing else."""

import json

import pytest

from rocmatrix.matrix.resolver.grid import SCHEMA, grid
from rocmatrix.matrix.rule import Rule, verdict_of
from rocmatrix.matrix.statement import Evidence, Selector
from tests.fixtures.cells import MATRIX

GRID = grid(MATRIX)
SQUARES = {(square.architecture, square.release): square for row in GRID.rows for square in row.squares}


def test_grid_has_a_square_for_every_architecture_and_rocm_release():
    releases = [release.name for release in MATRIX.releases if release.rocm]
    assert set(SQUARES) == {(gfx, name) for gfx in MATRIX.architectures for name in releases}
    assert len(SQUARES) == sum(len(row.squares) for row in GRID.rows)


@pytest.mark.parametrize("gfx", MATRIX.architectures)
def test_verdicts_follow_from_rules_lists_and_device_code(gfx):
    for release in GRID.releases:
        square = SQUARES[gfx, release.name]
        deciding = {rule.verdict for rule in MATRIX.rules_on(gfx, release) if rule.decides}
        against = verdict_of(MATRIX.rules_on(gfx, release))
        assert (square.verdict == "broken") == ("broken" in deciding)
        assert (square.verdict == "degraded") == (against == "degraded")
        assert (square.verdict == "untested") == (
            against not in ("broken", "degraded") and release.architectures is None
        )
        if square.verdict == "supported":
            assert square.listed
        if square.verdict in ("supported", "reported", "expected"):
            assert gfx in release.architectures
        assert square.official == bool(square.listed) == MATRIX.support_of(gfx, release.rocm).official


def test_own_records_count_as_measured_and_a_broken_rule_still_wins():
    shown = frozenset({("gfx1100", "rocm7.2-torch2.12.1"), ("gfx906", "rocm7.2-torch2.12.1")})
    squares = {(s.architecture, s.release): s for row in grid(MATRIX, measured=shown).rows for s in row.squares}
    assert squares["gfx1100", "rocm7.2-torch2.12.1"].verdict == "measured"
    assert squares["gfx906", "rocm7.2-torch2.12.1"].verdict == "broken"
    assert [key for key, square in squares.items() if square.verdict == "measured"] == [
        ("gfx1100", "rocm7.2-torch2.12.1")
    ]


def test_cells_are_in_their_squares_with_their_marks():
    shown = {square.cell: square for square in SQUARES.values() if square.cell}
    cells = [cell for cell in MATRIX.cells if cell.architecture]
    assert set(shown) == {cell.name for cell in cells}
    for cell in cells:
        square = shown[cell.name]
        assert square.recommended == cell.recommended
        assert cell.verdict not in ("broken", "degraded") or square.verdict == cell.verdict
        assert square.locked == (cell.unlocked_because is None)


def test_new_rule_changes_the_squares_it_selects_and_no_other():
    evidence = Evidence(sources=["this test"], confidence="measured here", date="2026-11-21")
    selector = Selector(architectures=["gfx1030"], torch="==2.12.1", rocm="==7.2")
    rule = Rule(id="x", when=selector, verdict="broken", reason="so", evidence=evidence, expires="2027-01-01")
    other = grid(MATRIX.model_copy(update={"rules": [*MATRIX.rules, rule]}))
    changed = [s for row in other.rows for s in row.squares if s.verdict != SQUARES[s.architecture, s.release].verdict]
    assert [(s.architecture, s.release) for s in changed] == [("gfx1030", "rocm7.2-torch2.12.1")]


def test_releases_stand_by_rocm_and_then_by_torch_newest_first():
    assert list(GRID.by_rocm)[:2] == ["10.0", "7.14"]
    assert [release for releases in GRID.by_rocm.values() for release in releases] == list(GRID.releases)


def test_programs_get_the_grid_with_its_version():
    described = json.loads(json.dumps(GRID.described()))
    assert described["schema"] == SCHEMA
    row = next(row for row in described["architectures"] if row["architecture"] == "gfx906")
    assert "Instinct MI50" in row["names"]
    assert len(row["squares"]) == len(described["releases"])
    assert row["squares"][0].keys() >= {
        "verdict",
        "because",
        "listed",
        "others",
        "cell",
        "locked",
        "recommended",
        "official",
    }
