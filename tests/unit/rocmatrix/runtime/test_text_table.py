"""Tables fit any width, and no name in them is cut."""

import pytest

from rocmatrix.runtime import text_table
from rocmatrix.runtime.text_table import lines

HEAD = ("CELL", "GPU", "WHY")
ROWS = [("rocm7.2-torch2.12.1-gfx1100", "gfx1100", "a reason of some length " * 5), ("short", "-", "b")]


@pytest.mark.parametrize("width", [40, 60, 80, 100, 160, 400])
def test_table_of_any_width_fits_and_keeps_names_whole(width):
    made = lines(HEAD, ROWS, width=width)
    assert max(map(len, made)) <= width
    assert [line.split()[0] for line in made if line.startswith(("rocm", "short"))] == [row[0] for row in ROWS]
    assert " ".join(" ".join(made).split()).count("length") == 5


def test_table_that_fits_has_one_line_a_row_below_its_head():
    assert lines(HEAD, ROWS, width=400)[0].split() == [*HEAD]
    assert len(lines(HEAD, ROWS, width=400)) == 3


def test_narrow_table_is_a_paragraph_a_row_without_empty_cells():
    made = lines(HEAD, ROWS, width=40)
    assert made[:2] == ["rocm7.2-torch2.12.1-gfx1100", "  gpu gfx1100"]
    assert made[-2:] == ["short", "  why b"]


def test_name_longer_than_the_terminal_stays_whole():
    assert lines(("NAME", "X"), [("n" * 60, "y")], width=40)[0] == "n" * 60


def test_table_without_rows_is_its_head():
    assert lines(HEAD, [], width=80) == ["CELL  GPU  WHY"]


@pytest.mark.parametrize(
    ("terminal", "expected"),
    [
        (False, ["  cause: a word and others", "", "end"]),
        (True, ["  cause: a", "       word and", "       others", "", "end"]),
    ],
)
def test_lines_are_folded_on_a_terminal_alone(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, expected: list[str]
) -> None:
    monkeypatch.setattr(text_table.sys.stdout, "isatty", lambda: terminal)
    monkeypatch.setattr(text_table, "width", lambda: 17)
    assert text_table.folded(["  cause: a word and others", "", "end"]) == expected
