"""What a person reads of an argument, compared with files that were looked at."""

import io
from typing import get_args

import pytest
from rich.console import Console

from rocmatrix.matrix.resolver import text as terminal
from rocmatrix.matrix.resolver.explanation import explain
from rocmatrix.matrix.resolver.grid import grid
from rocmatrix.matrix.resolver.judgement import Judgement
from rocmatrix.matrix.resolver.resolve import Request
from tests.fixtures.cells import MATRIX
from tests.fixtures.golden import assert_golden


def printed(renderable, *, colour=False, width=terminal.PROSE_WIDTH):
    out = io.StringIO()
    Console(file=out, width=width, force_terminal=colour, highlight=False).print(renderable)
    return "".join(line.rstrip() + "\n" for line in out.getvalue().splitlines())


@pytest.mark.parametrize(
    ("name", "request_", "today"),
    [
        ("rx-7900-xt", Request(rocm="6.2", torch="2.5.1", gpu="gfx1100"), "2026-11-21"),
        ("mi50-on-7.2", Request(rocm="7.2", gpu="MI50"), "2026-11-21"),
        ("rx-6600-unlocked", Request(gpu="RX 6600"), "2027-12-01"),
        ("never-built", Request(rocm="6.3", torch="2.5.1"), "2026-11-21"),
        ("mi50-on-6.2", Request(gpu="MI50", rocm="6.2"), "2026-11-21"),
    ],
)
def test_explanation_equals_the_reviewed_text(name, request_, today):
    text = printed(terminal.explanation(explain(MATRIX, request_, today=today)))
    assert "\x1b" not in text
    assert_golden(f"explain/{name}.txt", text)


def test_terminal_gets_colour_and_the_text_stays():
    argued = explain(MATRIX, Request(rocm="7.2", gpu="MI50"), today="2026-11-21")
    text = printed(terminal.explanation(argued), colour=True)
    assert "\x1b[31m✗ broken" in text


def test_expired_rule_is_marked():
    argued = explain(MATRIX, Request(gpu="gfx1100"), today="2030-01-01")
    assert "EXPIRED" in printed(terminal.explanation(argued))


def test_verdicts_have_a_symbol_of_their_own():
    assert set(terminal.SYMBOLS) == set(get_args(Judgement))
    assert len(set(terminal.SYMBOLS.values())) == len(terminal.SYMBOLS)
    assert set(terminal.STYLES) == set(terminal.SYMBOLS) | {"works"}


def test_grid_has_a_line_for_every_architecture_and_states_what_its_symbols_mean():
    whole = grid(MATRIX)
    text = printed(terminal.grid(whole), width=terminal.GRID_WIDTH)
    lines = {line.split()[0]: line for line in text.splitlines() if line.startswith("gfx")}
    assert set(lines) == set(MATRIX.architectures)
    for row in whole.rows:
        assert "".join(lines[row.architecture].split()[1:]) == "".join(terminal.symbol(s).strip() for s in row.squares)
    assert all(meaning in text for meaning in [*terminal.SYMBOLS, *terminal.CELLS.values()])
    assert max(map(len, text.splitlines())) <= terminal.GRID_WIDTH


@pytest.mark.parametrize("width", [40, 80, 110])
def test_source_longer_than_a_line_is_folded_and_never_shortened(width):
    argued = explain(MATRIX, Request(gpu="gfx1100"), today="2026-11-21")
    text = printed(terminal.explanation(argued), width=width)
    together = "".join(text.split())
    sources = [point.evidence.summary for section in argued.sections for point in section.points]
    assert max(len(word) for source in sources for word in source.split()) > 40
    assert [source for source in sources if "".join(source.split()) not in together] == []
    assert max(map(len, text.splitlines())) <= width


def test_grid_begins_with_how_much_there_is_and_the_cell_of_this_machine():
    whole = grid(MATRIX)
    first, second = printed(terminal.grid(whole, here=("gfx1201",)), width=80).splitlines()[:2]
    assert first.startswith(f"{len(whole.rows)} architectures with {len(whole.releases)} releases")
    best = [s.cell for row in whole.rows if row.architecture == "gfx1201" for s in row.squares if s.recommended]
    assert second == f"this machine has gfx1201: {best[0]}"
    assert "no AMD GPU" in printed(terminal.grid(whole), width=80).splitlines()[1]
    for here in ((), ("gfx1201",)):
        text = printed(terminal.grid(whole, here=here, unusable="1 AMD card(s) cannot be used"), width=80)
        assert ("1 AMD card(s) cannot be used" in text, "no AMD GPU" in text) == (True, False)


def test_grid_lists_this_machine_first_and_then_the_newest_architectures():
    named = list(MATRIX.architectures)
    lines = printed(terminal.grid(grid(MATRIX), here=(named[2],)), width=terminal.GRID_WIDTH).splitlines()
    order = [line.split()[0] for line in lines if line.startswith("gfx")]
    assert order == [named[2], *(name for name in reversed(named) if name != named[2])]


def test_versions_of_a_release_continue_below_each_other_on_a_narrow_terminal():
    lines = printed(terminal.grid(grid(MATRIX), width=40), width=40).splitlines()
    begin = next(at for at, line in enumerate(lines) if line.startswith("The torch versions"))
    listed = [line for line in lines[begin:] if line.startswith("  ")]
    assert [line for line in listed if line.startswith(" " * 9)] != []
    assert max(map(len, lines)) <= 40


@pytest.mark.parametrize(
    ("cards", "unusable", "reason"),
    [((), "1 AMD card is there: no driver", "1 AMD card is there"), (("gfx1010",), None, "gfx1010 has no locked cell")],
)
@pytest.mark.parametrize("gpu", [None, "auto"])
def test_card_that_serves_no_run_is_named_and_never_reported_as_absent(gpu, cards, unusable, reason):
    argued = explain(MATRIX, Request(gpu=gpu), today="2026-11-29", cards=cards, unusable=unusable)
    text = printed(terminal.explanation(argued), width=400)
    assert f"NO CARD IS USED: {unusable or 'this machine'}" in text
    assert reason in argued.choice.why
    assert argued.described()["cell"]["unserved"] == argued.choice.unserved
    assert "no AMD card was found" not in text
