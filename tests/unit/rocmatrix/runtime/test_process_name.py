"""A process is named by its number and its start, so that a later one with its number is another."""

import os
import subprocess
import sys

import pytest

from rocmatrix.runtime import process_name


def test_own_process_runs_under_its_name_and_no_other():
    named = process_name.process(os.getpid())
    assert process_name.runs(named)
    assert not process_name.runs(f"{named}0")  # the same number, another start
    assert not process_name.runs(named.rpartition(":")[0] + ":")


def test_ended_process_is_gone_before_and_after_it_is_waited_for():
    child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    named = process_name.process(child.pid)
    assert process_name.runs(named)
    child.stdin.close()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not process_name.runs(named)  # a zombie
    child.wait()
    assert not process_name.runs(named)


@pytest.mark.parametrize("named", ["", ":", "x:1", "-1:1"])
def test_text_that_names_no_process_runs_nowhere(named):
    assert not process_name.runs(named)


def test_name_of_a_program_with_brackets_is_read_past(tmp_path, monkeypatch):
    monkeypatch.setattr(process_name, "PROC", tmp_path)
    (tmp_path / "7").mkdir()
    fields = ["S", *map(str, range(4, 21)), "0", "12345"]  # the start is the 22nd field of stat
    (tmp_path / "7/stat").write_text(f"7 (a ) Z (b)) {' '.join(fields)} 0\n")
    assert process_name.process(7) == "7:12345"


def test_machines_of_one_host_name_are_two_and_their_ids_are_not_shown(tmp_path, monkeypatch):
    names = []
    for number in ("0123456789abcdef0123456789abcdef", "f123456789abcdef0123456789abcdef", "", None):
        path = tmp_path / (number or f"no-{number}")
        if number is not None:
            path.write_text(f"{number}\n")
        monkeypatch.setattr(process_name, "MACHINE_ID", path)
        names.append(process_name.host())
    assert len(set(names)) == 3  # without an id, or an empty one, as many images have: the name and the namespace
    assert names[2] == names[3]
    assert all(name.startswith(os.uname().nodename) and "0123456789ab" not in name for name in names)


def test_machine_without_proc_has_names_of_less(tmp_path, monkeypatch):
    monkeypatch.setattr(process_name, "PROC", tmp_path)
    monkeypatch.setattr(process_name, "MACHINE_ID", tmp_path / "none")
    assert (process_name.host(), process_name.boot()) == (os.uname().nodename, "")
    assert process_name.process(1) == "1:"
