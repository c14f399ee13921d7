"""What the tasks print: data on standard output, words for a person on standard error."""

import contextlib
import errno
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rocmatrix.cli.commands import evidence, matrix
from rocmatrix.cli.commands.matrix import Cells, Explain, Grid, Outdated
from rocmatrix.host.hardware import read_hardware
from rocmatrix.matrix.resolver import freshness, html
from rocmatrix.matrix.resolver.grid import grid
from rocmatrix.matrix.resolver.text import symbol
from tests.fixtures import machines, sysfs
from tests.fixtures.cells import MATRIX

ROOT = Path(__file__).resolve().parents[5]
BROKEN = {"gpu": "MI50", "rocm": "7.2"}


def test_explanation_for_programs_is_json_and_nothing_else(capsys):
    matrix.explain(Explain(**BROKEN, json=True))
    document = json.loads(capsys.readouterr().out)
    assert document["verdict"] == "broken"
    assert document["refusal"]["where"] == "rule gfx906-rocblas-from-6.4"


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


@pytest.fixture
def short_page(monkeypatch):
    """Let the page be a line: what is tested is how it is written."""
    monkeypatch.setattr(html, "page", lambda *_, **__: "<!doctype html>")


@pytest.mark.usefixtures("short_page")
@pytest.mark.parametrize("place", ["", ".", "/", "no/such/folder/page.html"])
def test_page_that_cannot_be_written_is_rm206(tmp_path, capsys, place):
    with pytest.raises(SystemExit, match="2"):
        matrix.matrix(Grid(html=str(tmp_path / place)))
    assert capsys.readouterr().err.startswith("RM206")


def test_outdated_lists_versions_without_a_network(capsys):
    matrix.outdated(Outdated(json=True))
    assert json.loads(capsys.readouterr().out)["indexes"] == []


@pytest.mark.parametrize(
    ("failing", "code"), [(("one", "other"), "RM115"), (("one",), None)], ids=["no answer", "one answer"]
)
def test_outdated_of_indexes_of_which_none_answers_ends_as_an_error_after_its_list(monkeypatch, capsys, failing, code):
    def query(known, index):
        return freshness.Answer(index=index, unheard_because="no route" if index in failing else None)

    monkeypatch.setattr(freshness, "indexes", lambda known: ("one", "other"))
    monkeypatch.setattr(freshness, "query", query)
    with pytest.raises(SystemExit) if code else contextlib.nullcontext():
        matrix.outdated(Outdated(json=True, online=True))
    out, err = capsys.readouterr()
    assert len(json.loads(out)["indexes"]) == 2
    assert err.startswith(code or "") and ("no route" in err) is (code is not None)


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
    document = {cell["name"]: cell for cell in json.loads(capsys.readouterr().out)["cells"]}
    w6800 = document["rocm7.2-torch2.12.1-gfx1030"]
    assert (w6800["verdict"], w6800["other_cards"]) == ("supported", "expected")
    assert w6800["holds_for"] == ["Radeon Pro W6800", "Radeon Pro V620"]
    assert all(cell["because"] for cell in document.values())


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


@pytest.fixture(autouse=True)
def written_cells_alone(monkeypatch):
    """What was built or only looked at in this checkout is no written cell."""
    monkeypatch.setattr(evidence, "on_request", lambda *_: [])


@pytest.fixture
def terminal(monkeypatch):
    """Return the function that makes standard output a terminal of some columns."""

    def of(columns):
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)

    return of


def shown(capsys):
    return re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out).splitlines()


@pytest.mark.parametrize("columns", [40, 80, 120, 200])
def test_cells_on_a_terminal_fit_it_and_keep_their_names(terminal, capsys, columns):
    terminal(columns)
    matrix.cells(Cells())
    lines = shown(capsys)
    names = {cell.name for cell in MATRIX.cells}
    assert max(map(len, lines)) <= columns
    assert {line.split()[0] for line in lines if line.strip()} >= names


def test_cells_begin_with_a_summary_then_with_what_this_machine_takes(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(matrix, "hardware_here", lambda: read_hardware(sysfs.two_rx_7900_xt(tmp_path)))
    monkeypatch.setenv("ROCMATRIX_EVIDENCE", str(tmp_path / "evidence.db"))
    matrix.cells(Cells())
    count, machine, blank, head, first, *_ = shown(capsys)
    assert count.startswith(f"{len(MATRIX.cells)} cells for ")
    assert "this machine has gfx1100: rocm7.2-torch2.12.1-gfx1100 comes first" in machine
    assert (blank, head.split()[0], first.split()[0]) == ("", "CELL", "rocm7.2-torch2.12.1-gfx1100")


def test_cells_of_a_machine_without_a_card_begin_with_the_cpu(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(matrix, "hardware_here", lambda: read_hardware(sysfs.no_driver(tmp_path)))
    monkeypatch.setenv("ROCMATRIX_EVIDENCE", str(tmp_path / "evidence.db"))
    matrix.cells(Cells())
    assert shown(capsys)[4].split()[0] == "cpu-torch2.13.0"


@pytest.mark.parametrize("shows", [lambda: matrix.cells(Cells()), lambda: matrix.matrix(Grid())])
def test_card_that_cannot_be_used_is_named_and_no_machine_without_one_is_reported(capsys, monkeypatch, tmp_path, shows):
    machine = read_hardware(machines.unserved(tmp_path, driver="vfio-pci"))
    monkeypatch.setattr(matrix, "hardware_here", lambda: machine)
    monkeypatch.setenv("ROCMATRIX_EVIDENCE", str(tmp_path / "evidence.db"))
    shows()
    printed = " ".join(" ".join(shown(capsys)).split())
    assert "1 AMD card(s) are there and cannot be used (0000:03:00.0" in printed
    assert "no AMD GPU" not in printed


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_grid_on_a_terminal_fits_it_and_has_every_square(terminal, capsys, columns):
    terminal(columns)
    matrix.matrix(Grid())
    lines = shown(capsys)
    assert max(map(len, lines)) <= columns
    whole = grid(MATRIX)
    for row in whole.rows:
        marks = [mark for line in lines if line.startswith(f"{row.architecture} ") for mark in line.split()[1:]]
        assert "".join(marks) == "".join(symbol(square).strip() for square in row.squares)


@pytest.mark.parametrize("columns", [40, 80, 160])
def test_outdated_begins_with_its_summary_and_has_a_row_for_each_architecture(terminal, capsys, columns):
    terminal(columns)
    matrix.outdated(Outdated())
    lines = shown(capsys)
    assert "rules" in lines[0]
    assert "statements expired by" in " ".join(lines[:2])
    assert len([line for line in lines if line.startswith("gfx")]) == len(
        {cell.architecture for cell in MATRIX.cells if cell.recommended and cell.architecture}
    )


@pytest.mark.usefixtures("short_page")
def test_page_on_a_full_disk_leaves_no_file_and_names_its_flag(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(os, "fsync", raising(errno.ENOSPC))
    with pytest.raises(SystemExit, match="2"):
        matrix.matrix(Grid(html=str(tmp_path / "page.html")))
    stderr = capsys.readouterr().err
    assert stderr.startswith("RM205")
    assert "--html" in stderr
    assert "docker" not in stderr
    assert [*tmp_path.iterdir()] == []


def raising(number):
    def fails(*_):
        raise OSError(number, "No space left on device")

    return fails
