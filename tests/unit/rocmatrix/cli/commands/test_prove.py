"""Whole proofs of folders with SYNTHETIC code: what a person and a program read of them."""

import json

import pytest

from rocmatrix.cli.commands import prove as command
from rocmatrix.cli.commands.prove import Prove
from tests.fixtures.device_code import wheel_tree
from tests.fixtures.trees import write

CELL = "rocm7.2-torch2.12.1-gfx1100"


def run(capsys, folder, *, only="", as_json=False):
    try:
        command.prove(Prove(cell=CELL, tree=str(folder), only=only, json=as_json))
        status = 0
    except SystemExit as end:
        status = end.code
    out = capsys.readouterr()
    return status, out.out, out.err


def test_folder_with_the_cells_code_is_proven_and_lists_what_was_not_checked(tmp_path, capsys):
    write(tmp_path, wheel_tree("gfx1100"))
    status, out, err = run(capsys, tmp_path)
    assert status == 0, err
    assert out.count("not checked") == 9
    assert "nothing was run on a card" in err


def test_json_holds_the_whole_proof(tmp_path, capsys):
    write(tmp_path, wheel_tree("gfx1100", "gfx906"))
    status, out, err = run(capsys, tmp_path, as_json=True)
    proven = json.loads(out)
    assert (status, proven["proven"], proven["cell"]) == (2, False, CELL)
    found = [finding["code"] for check in proven["checks"] for finding in check["findings"]]
    assert found == ["RM213"]
    assert err.startswith("RM210 ")
    assert "RM213 Device code of other architectures left behind" in err


@pytest.mark.parametrize(
    ("only", "code"), [("rocBLAS", 0), ("rocBLAS,hipBLASLt", 2), ("rocblas", 2)], ids=["there", "missing", "unknown"]
)
def test_proof_with_only_names_the_libraries_that_must_be_there(tmp_path, capsys, only, code):
    files = {path: data for path, data in wheel_tree("gfx1100").items() if "/rocblas/" in path}
    write(tmp_path, files)
    status, _, err = run(capsys, tmp_path, only=only)
    assert status == code, err
    if only == "rocblas":
        assert "RM404" in err and "rocBLAS" in err


def test_missing_folder_is_a_users_mistake(tmp_path, capsys):
    status, _, err = run(capsys, tmp_path / "gone")
    assert (status, err.splitlines()[0]) == (2, "RM221 There was nothing to look into")


def test_empty_folder_is_not_proven(tmp_path, capsys):
    status, _, err = run(capsys, tmp_path)
    assert status == 2
    assert "RM211" in err and "RM214" in err


def test_proof_needs_a_cell(capsys):
    with pytest.raises(SystemExit) as end:
        command.prove(Prove())
    assert end.value.code == 2
    assert capsys.readouterr().err.startswith("RM404 ")
