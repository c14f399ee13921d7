"""What `./invokew evidence` says of a file that it can neither read nor write: the name, the flag and the next step."""

import errno
import os
import sqlite3

import pytest
import yaml

from rocmatrix.cli.commands import evidence as command
from rocmatrix.cli.commands.evidence import Evidence
from rocmatrix.evidence import import_export, store
from rocmatrix.evidence.level import CellStatus
from rocmatrix.evidence.record import Number
from rocmatrix.runtime.paths import ROOT
from tests.fixtures.evidence import record


@pytest.fixture
def refusal(tmp_path, capsys):
    """Return a function that exchanges evidence and returns what it printed of the mistake."""
    kept = tmp_path / "evidence.db"
    store.add(kept, [record("build")], origin="here")

    def run(*, export="", take=""):
        with pytest.raises(SystemExit) as ended:
            command.evidence(Evidence(export=str(export), take=str(take), evidence=str(kept)))
        assert ended.value.code == 2
        return capsys.readouterr().err

    return run


@pytest.mark.parametrize("name", ["nope", "."])
def test_file_to_import_that_cannot_be_read_is_wrong_usage(refusal, tmp_path, name):
    message = refusal(take=tmp_path / name)
    assert message.startswith("RM404 ")
    assert str(tmp_path / name) in message
    assert "--import" in message


@pytest.mark.parametrize("place", ["nodir/x.json", ".", "evidence.db/x.json"])
def test_place_to_export_to_that_is_no_file_s_is_wrong_usage(refusal, tmp_path, place):
    message = refusal(export=tmp_path / place)
    assert message.startswith("RM404 ")
    assert str(tmp_path / place) in message
    assert "--export" in message


def test_root_folder_is_no_file_either(refusal):
    assert refusal(export="/").startswith("RM404 ")


def test_evidence_that_is_none_is_reported_once_under_its_own_code(tmp_path, capsys):
    (tmp_path / "notes.db").write_text("notes of mine, longer than a header of SQLite would be" * 4)
    for place in (tmp_path / "notes.db", tmp_path):
        with pytest.raises(SystemExit):
            command.evidence(Evidence(evidence=str(place)))
        stderr = capsys.readouterr().err
        assert stderr.startswith("RM621 ")
        assert "RM620" not in stderr


@pytest.mark.parametrize(("number", "code"), [(errno.ENOSPC, "RM205"), (errno.EROFS, "RM206")])
def test_failed_export_names_the_file_and_its_own_flag(refusal, tmp_path, monkeypatch, number, code):
    def fail(*_, **__):
        raise OSError(number, "for the test")  # as write() fails: without the file's name

    monkeypatch.setattr(os, "fsync", fail)
    message = refusal(export=tmp_path / "x.json")
    assert message.startswith(code)
    assert f"where: {tmp_path / 'x.json'}" in message
    assert "--export" in message
    assert "docker" not in message
    assert "--output" not in message


@pytest.mark.parametrize(("value", "heads", "printed"), [(None, 0, ", measured nothing"), (0.5, 1, ":")])
def test_newest_bench_has_a_table_where_it_has_figures(tmp_path, capsys, value, heads, printed):
    kept = tmp_path / "evidence.db"
    numbers = () if value is None else (Number(probe="matmul", name="fp32", value=value, unit="TFLOP/s"),)
    store.add(kept, [record("bench", numbers=numbers)], origin="here")
    command.evidence(Evidence(cell=record("bench").cell, evidence=str(kept)))
    shown = capsys.readouterr()
    assert shown.out.count("BENCHMARK") == heads
    (line,) = [line for line in shown.err.splitlines() if line.startswith("the newest bench")]
    assert line.endswith(printed)


def sizes_of(tmp_path, capsys, *records):
    kept = tmp_path / "sizes.db"
    for each in records:
        store.save(kept, each)
    command.evidence(Evidence(evidence=str(kept), sizes=True))
    return capsys.readouterr()


def test_sizes_are_printed_as_entries_that_can_be_appended_to_the_checkouts(tmp_path, capsys):
    number = Number(probe="size", name="files", value=12345.0, unit="B")
    printed = sizes_of(tmp_path, capsys, record("prove", numbers=(number,)))
    entries = yaml.safe_load((ROOT / "matrix" / "baselines.yaml").read_text() + printed.out)
    assert entries[-1]["cell"] == record("prove").cell
    assert entries[-1]["sizes"][0]["bytes"] == 12345


def test_sizes_without_any_append_nothing_and_report_it(tmp_path, capsys):
    printed = sizes_of(tmp_path, capsys, record("build"))
    assert printed.out == ""
    assert "no proven image" in printed.err


def test_cells_that_came_farthest_stand_first_below_a_count_of_the_levels(tmp_path):
    made = [
        CellStatus(cell="a", card="-", level="rendered"),
        CellStatus(cell="b", card="gfx1100", level="smoked"),
        CellStatus(cell="a", card="-", level="trained", simulated=True),
        CellStatus(cell="c", card="gfx906", level="trained"),
    ]
    assert [status.cell for status in command._farthest_first(made)] == ["c", "b", "a", "a"]
    assert command._summary(made, 7, tmp_path / "e.db").splitlines() == [
        f"7 records in {tmp_path / 'e.db'}",
        "levels: 1 trained, 1 smoked, 1 rendered",
    ]


def test_cell_on_two_cards_is_counted_once_at_the_farthest_of_both_levels(tmp_path):
    made = [
        CellStatus(cell="a", card="gfx1100", level="smoked"),
        CellStatus(cell="a", card="gfx1101", level="trained"),
        CellStatus(cell="b", card="-", level="trained", simulated=True),
    ]
    assert command._summary(made, 2, tmp_path / "e.db").splitlines()[1] == "levels: 1 trained"


def test_records_that_were_removed_by_hand_are_stated(tmp_path, capsys):
    path = tmp_path / "evidence.db"
    store.add(path, [record("build", 1), record("prove", 2), record("build", 3)])
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM record WHERE kind = 'prove'")
    command.evidence(Evidence(evidence=str(path)))
    assert "1 of this file's own records are gone" in "".join(capsys.readouterr())


def test_file_called_like_this_machine_is_not_taken_for_its_own_records(tmp_path, monkeypatch):
    monkeypatch.setenv("ROCMATRIX_EVIDENCE", str(tmp_path / "evidence.db"))
    named = tmp_path / store.HERE
    import_export.write(named, [record("build")])
    command.evidence(Evidence(take=str(named)))
    assert [origin for origin, _ in store.rows(tmp_path / "evidence.db")] == ["file this machine"]
