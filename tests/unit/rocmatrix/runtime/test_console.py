"""At the edge every failure has a code and an exit status, and a defect keeps its traceback in a file."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rocmatrix.runtime import console
from rocmatrix.runtime.errors import CATALOG, RocmatrixError, nearest
from rocmatrix.runtime.paths import ROOT


def ends(error):
    @console.edge
    def command():
        raise error

    with pytest.raises(SystemExit) as caught:
        command()
    return caught.value.code


def test_known_error_is_shown_and_ends_with_2(capsys):
    assert ends(RocmatrixError("RM203", what="no image", where="here")) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("RM203 ")
    assert "Traceback" not in shown


@pytest.mark.parametrize(
    ("number", "code"),
    [(errno.ENOSPC, "RM205"), (errno.EFBIG, "RM205"), (errno.EROFS, "RM206"), (errno.EACCES, "RM206")],
)
def test_errors_of_the_system_are_named_by_number(number, code, capsys):
    assert ends(OSError(number, "words that do not matter", "/some/file")) == 2
    shown = capsys.readouterr().err
    assert shown.startswith(code)
    assert "/some/file" in shown


def test_full_device_behind_the_output_is_named_as_such(capsys):
    assert ends(OSError(errno.ENOSPC, "No space left on device")) == 2
    shown = capsys.readouterr().err
    assert "the output of this command" in shown and "docker" not in shown


def test_removed_working_folder_is_wrong_usage(capsys, tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(FileNotFoundError) as missing:
        Path.cwd()
    assert ends(missing.value) == 2
    assert "RM404" in capsys.readouterr().err


def test_package_that_is_missing_is_trouble_of_the_environment_and_a_module_of_ours_a_defect(
    capsys, tmp_path, monkeypatch
):
    monkeypatch.setattr(console, "LOGS", tmp_path)
    assert ends(ModuleNotFoundError("No module named 'yaml.nodes'", name="yaml.nodes")) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("RM402") and f"Delete {console.ROOT}/.venv" in shown
    assert ends(ModuleNotFoundError("No module named 'rocmatrix.absent'", name="rocmatrix.absent")) == 1
    assert capsys.readouterr().err.startswith("RM499")


def test_defect_keeps_its_traceback(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(console, "LOGS", tmp_path)
    assert ends(ZeroDivisionError("division by zero")) == 1
    shown = capsys.readouterr().err
    assert shown.startswith("RM499")
    assert "Traceback" not in shown
    (log,) = tmp_path.iterdir()
    assert "ZeroDivisionError" in log.read_text()
    assert str(log) in shown


def test_ctrl_c_ends_with_130(capsys):
    assert ends(KeyboardInterrupt()) == 130
    assert "Stopped by Ctrl-C" in capsys.readouterr().err
    assert ends(KeyboardInterrupt("SIGTERM")) == 143
    assert ends(KeyboardInterrupt("SIGHUP")) == 129
    assert "Stopped by SIGTERM" in capsys.readouterr().err


def test_codes_have_a_meaning_and_a_next_step():
    for entry in CATALOG.values():
        assert entry.meaning.endswith(".")
        assert entry.next.endswith(".")


def test_nearest_name_comes_first():
    assert nearest("gfx1110", ["gfx906", "gfx1100", "gfx90a"])[0] == "gfx1100"
    assert nearest("RX 7900 xt", ["MI50", "RX 7900 XT"])[0] == "RX 7900 XT"
    assert nearest("zzz", ["gfx906"]) == []


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
@pytest.mark.parametrize("argv", [["explain", "--gpu=MI50"], ["matrix"]])
def test_output_of_a_narrow_encoding_ends_in_no_defect(argv, encoding):
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    argv = [sys.executable, "-m", "rocmatrix", *argv]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False, encoding=encoding)
    assert (done.returncode, "RM499" in done.stderr) == (0, False)
    assert "?" in done.stdout


@pytest.mark.parametrize(("end", "status"), [("say('a')", 0), ("say('a'); print('b' * 9, flush=True)", 0)])
def test_full_standard_error_loses_lines_alone(end, status):
    code = f"from rocmatrix.runtime.console import edge, say\ndef end():\n    {end}\nedge(end)()"
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, stderr=full, check=False)
    assert done.returncode == status


@pytest.mark.parametrize("end", ["print('b', flush=True)", "print('b')", "print('b'); sys.exit(1)"])
def test_full_standard_output_ends_with_2_though_python_flushes_it_again(end):
    code = f"import sys\nfrom rocmatrix.runtime.console import edge\n@edge\ndef end():\n    {end}\nend()"
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, stdout=full, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr[:5]) == (2, b"RM205")
