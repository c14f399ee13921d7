"""`./invokew` alone lists every task once, in groups, on any terminal."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rocmatrix.cli.options import groups
from rocmatrix.cli.options.command import known

ROOT = Path(__file__).resolve().parents[5]


def test_tasks_are_each_in_one_group():
    grouped = [name for names in groups.GROUPS.values() for name in names]
    assert sorted(grouped) == sorted(known())


def test_task_without_a_group_is_listed_last():
    *_, (title, tasks) = groups.grouped({"train": "Train.", "new": "Do something new: at once."})
    assert (title, tasks) == (groups.REST, [("new", "Do something new")])


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_list_of_tasks_fits_the_terminal(columns):
    summaries = {name: command.about.splitlines()[0] for name, command in known().items()}
    assert max(map(len, groups.text(summaries, width=columns).splitlines())) <= columns


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_bare_call_lists_the_tasks_in_groups(columns):
    argv = [sys.executable, "-P", str(ROOT / "rocmatrix/cli/program.py"), "--search-root", str(ROOT)]
    done = subprocess.run(
        argv, capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": str(columns)}
    )
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert [line for line in lines if line in groups.GROUPS] == [*groups.GROUPS]
    assert {line.split()[0] for line in lines if line.startswith("  ")} >= {*known()}
