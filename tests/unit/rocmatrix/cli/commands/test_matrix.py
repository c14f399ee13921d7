"""What the tasks print: data on standard output, words for a person on standard error."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from rocmatrix.cli.commands import matrix
from rocmatrix.cli.commands.matrix import Cells, Explain, Grid, Outdated

ROOT = Path(__file__).resolve().parents[5]
BROKEN = {"gpu": "MI50", "rocm": "7.2"}


def test_explanation_for_programs_is_json_and_nothing_else(capsys):
    matrix.explain(Explain(**BROKEN, json=True))
    told = json.loads(capsys.readouterr().out)
    assert told["verdict"] == "broken"
    assert told["refusal"]["where"] == "rule gfx906-rocblas-from-6.4"


def test_refusal_is_an_explanation_and_no_failure(capsys):
    matrix.explain(Explain(**BROKEN))
    assert "gfx906-rocblas-from-6.4" in capsys.readouterr().out


def test_unknown_card_ends_with_2(capsys):
    with pytest.raises(SystemExit, match="2"):
        matrix.explain(Explain(gpu="RX 7900 XTT", json=True))
    assert capsys.readouterr().err.startswith("RM010")


def test_grid_for_programs_is_json_and_nothing_else(capsys):
    matrix.matrix(Grid(json=True))
    assert json.loads(capsys.readouterr().out)["schema"] == 2


def test_page_is_written_and_its_size_reported(tmp_path, capsys):
    matrix.matrix(Grid(html=str(tmp_path / "matrix.html")))
    assert (tmp_path / "matrix.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "squares" in captured.err


@pytest.mark.parametrize("place", ["", "no/such/folder/page.html"])
def test_page_that_cannot_be_written_is_rm206(tmp_path, capsys, place):
    with pytest.raises(SystemExit, match="2"):
        matrix.matrix(Grid(html=str(tmp_path / place)))
    assert capsys.readouterr().err.startswith("RM206")


def test_outdated_lists_versions_without_a_network(capsys):
    matrix.outdated(Outdated(json=True))
    assert json.loads(capsys.readouterr().out)["indexes"] == []


def test_reader_that_has_enough_is_no_defect():
    program = "from rocmatrix.cli.commands import matrix; matrix.matrix(matrix.Grid(json=True))"
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 141


def test_cells_for_programs_have_a_headline_and_its_reason(capsys):
    matrix.cells(Cells(json=True))
    told = {cell["name"]: cell for cell in json.loads(capsys.readouterr().out)["cells"]}
    w6800 = told["rocm7.2-torch2.12.1-gfx1030"]
    assert (w6800["verdict"], w6800["other_cards"]) == ("supported", "expected")
    assert w6800["holds_for"] == ["Radeon Pro W6800", "Radeon Pro V620"]
    assert all(cell["because"] for cell in told.values())


def test_statements_are_listed_with_their_sources_and_age(capsys):
    matrix.outdated(Outdated(json=True, statements=True))
    found = json.loads(capsys.readouterr().out)["statements"]
    assert len(found) > 300
    assert all(entry["sources"] and entry["age_days"] >= 0 and entry["expires"] for entry in found)
    matrix.outdated(Outdated(statements=True))
    assert "statements, " in capsys.readouterr().err


def test_python_that_is_no_version_ends_with_2(capsys):
    with pytest.raises(SystemExit, match="2"):
        matrix.explain(Explain(gpu="gfx1100", python="three", json=True))
    assert capsys.readouterr().err.startswith("RM404")
