"""Whole proofs of folders with SYNTHETIC code: what a person and a program read of them."""

import json
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from rocmatrix.cli.commands import prove as command
from rocmatrix.cli.commands.prove import Prove
from rocmatrix.containers import engine
from rocmatrix.evidence import baseline
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.verify import proof, rebuild
from rocmatrix.verify.finding import Check, Finding
from rocmatrix.verify.proof import Proof
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
    assert err.splitlines()[1].startswith("RM210 ")  # after the cell
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
    assert (status, err.splitlines()[1]) == (2, "RM221 There was nothing to look into")


def test_empty_folder_is_not_proven(tmp_path, capsys):
    status, _, err = run(capsys, tmp_path)
    assert status == 2
    assert "RM211" in err and "RM214" in err


@pytest.mark.parametrize("request_", [{"gpu": "RX 7900 XT", "rocm": "7.2"}, {"cell": CELL}], ids=["axes", "cell"])
def test_proof_takes_a_request_as_build_does(tmp_path, capsys, request_):
    write(tmp_path, wheel_tree("gfx1100"))
    command.prove(Prove(**request_, tree=str(tmp_path), json=True))
    assert json.loads(capsys.readouterr().out)["cell"] == CELL


def test_proof_of_an_unknown_card_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit) as end:
        command.prove(Prove(gpu="gfx9999", tree=str(tmp_path)))
    assert end.value.code == 2
    assert capsys.readouterr().err.startswith("RM010 ")


class Engine:
    def close(self):
        pass


@pytest.fixture
def recorded(monkeypatch):
    """An image whose files are in order, on a stand-in of an engine; what is kept of its proof."""
    kept = []
    passed = Proof(subject="", cell=CELL, architecture="gfx1100", checks=(Check(name="files", summary="3 files"),))
    monkeypatch.setattr(engine, "connect", Engine)
    monkeypatch.setattr(engine, "image", lambda client, name: SimpleNamespace(id="sha256:1"))
    monkeypatch.setattr(command.recorder, "proving", lambda *_: nullcontext(kept.append))
    monkeypatch.setattr(command.recorder, "evidence_file", Path)
    monkeypatch.setattr(baseline, "recorded", lambda *_: None)
    monkeypatch.setattr(proof, "of_image", lambda *_, **__: passed)
    return kept


@pytest.mark.parametrize("error", [None, RocmatrixError("RM204", what="the archive is out of reach")])
def test_second_build_fails_the_command_and_is_not_on_record(recorded, monkeypatch, capsys, error):
    def check(*_, **__):
        if error:
            raise error
        return Check(name="rebuild", summary="2 layers", findings=(Finding(code="RM680", what="layer 2"),))

    monkeypatch.setattr(rebuild, "check", check)
    with pytest.raises((SystemExit, RocmatrixError)):
        command.prove(Prove(cell=CELL, rebuild=True))
    (proven,) = recorded
    assert proven.proven
    assert [each.name for each in proven.checks] == ["files"]
    assert error or "RM680" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"tree": "x", "rebuild": True}, "--rebuild"),
        ({"tree": "x", "image": "y"}, "--image"),
        ({"tree": "x", "wheelhouse": "w", "accept_size": "why"}, "--wheelhouse, --accept-size"),
        ({"only": "rocBLAS"}, "--only"),
    ],
)
def test_options_without_an_effect_are_refused(given, named, capsys):
    with pytest.raises(SystemExit):
        command.prove(Prove(cell=CELL, **given))
    message = capsys.readouterr().err
    assert ("RM404" in message, named in message) == (True, True), message
