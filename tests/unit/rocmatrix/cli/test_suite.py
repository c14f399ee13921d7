"""The whole suite on several processes: every test in one of them, and no failure lost."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rocmatrix.cli import suite

ROOT = Path(__file__).resolve().parents[4]
PASSES, FAILS = "def test_it(): pass\n", "def test_it(): assert False\n"


def test_suite_names_the_whole_folder_of_tests_and_the_choice():
    argv = suite.argv("python", "words", cores=2)
    assert argv[:3] == ["python", "-m", "pytest"]
    assert argv[-1] == "tests"
    assert argv[argv.index("-n") + 1] == "3"
    assert argv[argv.index("-k") + 1] == "words"
    assert "-k" not in suite.argv("python", "", cores=2)


@pytest.mark.parametrize(("files", "only", "spread"), [(15, "", False), (16, "", True), (16, "words", False)])
def test_room_of_many_files_is_spread_over_processes(tmp_path, files, only, spread):
    (tmp_path / "room" / "deeper").mkdir(parents=True)
    for number in range(files):
        (tmp_path / "room" / "deeper" / f"test_{number}.py").write_text(PASSES)
    argv = suite.part_argv("python", ["room"], only, cores=2, root=tmp_path)
    assert argv == [
        *("python", "-m", "pytest"),
        *(["-n", "3", "--dist", "loadfile", "--no-loadscope-reorder"] if spread else []),
        *(["-k", only] if only else []),
        "room",
    ]


def test_file_of_tests_runs_in_one_process(tmp_path):
    (tmp_path / "test_one.py").write_text(PASSES)
    argv = suite.part_argv("python", ["test_one.py"], "", cores=2, root=tmp_path)
    assert argv == ["python", "-m", "pytest", "test_one.py"]


@pytest.mark.parametrize(("content", "status"), [(PASSES, 0), (FAILS, 1)])
def test_suite_of_two_groups_returns_the_failure_of_either(tmp_path, content, status):
    for folder, text in (("container", PASSES), ("unit", content)):
        (tmp_path / "tests" / folder).mkdir(parents=True)
        (tmp_path / "tests" / folder / f"test_{folder}.py").write_text(text)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    argv = suite.argv(sys.executable, "", cores=1)
    done = subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stdout
    assert ("FAILED tests/unit/test_unit.py::test_it" in done.stdout) == bool(status)


def test_groups_keep_the_engine_and_each_file_in_one_process_and_begin_with_the_engine(tmp_path):
    """The hook of this suite itself, over two files of each kind, as each of two processes collects them."""
    shutil.copy(ROOT / "tests" / "groups.py", tmp_path / "conftest.py")
    for name in ("unit/test_a", "unit/test_b", "container/test_c", "container/test_d"):
        (tmp_path / "tests" / name).parent.mkdir(parents=True, exist_ok=True)
        content = f"import os\n\ndef test_one():\n    {NOTE}\n\ndef test_two():\n    {NOTE}\n"
        (tmp_path / "tests" / f"{name}.py").write_text(content)
    argv = suite.argv(sys.executable, "", cores=1)
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    lines = [line.split() for line in (tmp_path / "ran").read_text().splitlines()]
    where = {name: {process for file, process in lines if file == name} for name, _ in lines}
    assert all(len(processes) == 1 for processes in where.values())
    assert where["test_c.py"] == where["test_d.py"]
    assert lines[0][0] in ("test_c.py", "test_a.py")
    assert where["test_a.py"] != where["test_c.py"]


NOTE = "open('ran', 'a').write(f\"{os.path.basename(__file__)} {os.getpid()}\\n\")"
