"""Two nights at once: the second is refused in words, whatever its plan, and begins nothing."""

import subprocess
import sys

import pytest

from rocmatrix.cli.commands import nightly
from rocmatrix.cli.commands.nightly import Nightly
from rocmatrix.nightly.journal import Journal
from rocmatrix.runtime.errors import RocmatrixError

HOLD = """
import sys, time
from pathlib import Path
from rocmatrix.cli.commands import nightly
nightly.ROOT = Path(sys.argv[1])
with nightly.exclusive_night(Path(sys.argv[2])):
    print("begun", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def is_running(tmp_path):
    """Return how to start another night, by its checkout and its evidence."""
    started = []

    def start(root, evidence):
        process = subprocess.Popen([sys.executable, "-c", HOLD, root, evidence], stdout=subprocess.PIPE)
        started.append(process)
        assert process.stdout.readline() == b"begun\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def night_of_cpu(tmp_path, monkeypatch):
    """A night of the CPU's cell whose stages are replaced: nothing is built."""
    monkeypatch.setattr(nightly, "ROOT", tmp_path / "checkout")
    monkeypatch.setenv("ROCMATRIX_EVIDENCE", str(tmp_path / "evidence.db"))
    begun = []
    monkeypatch.setattr(nightly, "_night", lambda cells, choices, path: begun.append(cells))
    return Nightly(cells="cpu", jobs=1, budget=1), begun


@pytest.mark.parametrize("same", ["checkout", "evidence"])
def test_second_night_of_one_checkout_or_one_file_of_evidence_is_refused_until_the_first_is_gone(
    same, night_of_cpu, is_running, tmp_path, capsys
):
    choices, begun = night_of_cpu
    places = {"checkout": tmp_path / "checkout", "evidence": tmp_path / "evidence.db"}
    others = {"checkout": tmp_path / "another", "evidence": tmp_path / "other.db"} | {same: places[same]}
    first = is_running(others["checkout"], others["evidence"])
    with pytest.raises(SystemExit) as ended:
        nightly.nightly(choices)
    assert ended.value.code == 2
    stderr = capsys.readouterr().err
    assert "RM671 Another night is running" in stderr
    assert str(first.pid) in stderr
    assert begun == []
    assert Journal(tmp_path / "evidence.db").nights() == []
    first.kill()  # the lock goes with it
    first.wait()
    nightly.nightly(choices)
    assert len(begun) == 1


def test_dry_run_disturbs_no_night(night_of_cpu, is_running, tmp_path, monkeypatch, capsys):
    is_running(tmp_path / "checkout", tmp_path / "evidence.db")
    monkeypatch.setattr(nightly, "_print", lambda cells, choices: print("printed"))
    choices, _ = night_of_cpu
    nightly.nightly(Nightly(cells="cpu", jobs=1, budget=choices.budget, dry_run=True))
    assert "printed" in capsys.readouterr().out


def test_place_where_no_journal_can_be_kept_is_rm621(tmp_path, monkeypatch):
    monkeypatch.setattr(nightly, "ROOT", tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(RocmatrixError) as caught, nightly.exclusive_night(tmp_path / "file" / "evidence.db"):
        pytest.fail("it was begun")
    assert caught.value.code == "RM621"


@pytest.mark.parametrize("named", ["my night", "../up", "-n", "a\nb", "n" * 201])
def test_name_that_no_record_can_bear_is_refused_before_anything_is_read(named, capsys):
    with pytest.raises(SystemExit) as ended:
        nightly.nightly(Nightly(cells="no such cell", night=named))
    assert ended.value.code == 2
    assert "--night takes a name" in capsys.readouterr().err
