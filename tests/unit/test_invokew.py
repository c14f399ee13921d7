"""The wrapper: one environment, made once, and clear words when a Python is missing."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def checkout(tmp_path):
    """A checkout whose lock is empty, so that making its environment needs no network."""
    shutil.copy(ROOT / "invokew", tmp_path / "invokew")
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements/base.txt").write_text("")
    return tmp_path


def run(checkout, *args, **environment):
    return subprocess.run(
        [str(checkout / "invokew"), *args],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": os.environ["PATH"], **environment},
    )


def test_no_python_is_rm401(checkout):
    done = run(checkout, "--list", ROCMATRIX_PYTHON="/nowhere/python3")
    assert done.returncode == 2
    assert done.stderr.startswith("RM401 ")
    assert not (checkout / ".venv").exists()


def test_an_old_python_is_rm401(checkout):
    old = checkout / "python3"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    assert "3.11 or newer" in run(checkout, ROCMATRIX_PYTHON=str(old)).stderr


def test_a_python_without_venv_is_rm401(checkout):
    bare = checkout / "python3"
    bare.write_text('#!/bin/sh\ncase "$*" in *venv*) exit 1;; esac\nexit 0\n')
    bare.chmod(0o755)
    done = run(checkout, ROCMATRIX_PYTHON=str(bare))
    assert "lacks the venv module" in done.stderr
    assert done.returncode == 2


def test_a_lock_that_cannot_be_installed_is_rm402_and_tried_again(checkout):
    (checkout / "requirements/base.txt").write_text("no-such-package==1.0 --hash=sha256:" + "0" * 64 + "\n")
    for _ in range(2):
        done = run(checkout, "--list", PIP_NO_INDEX="1")
        assert "RM402" in done.stderr
        assert "Making" in done.stderr


def test_the_environment_is_made_once_per_lock(checkout):
    assert "Making" in run(checkout, "--list").stderr
    assert "Making" not in run(checkout, "--list").stderr
    (checkout / "requirements/base.txt").write_text("# changed\n")
    assert "Making" in run(checkout, "--list").stderr


def test_two_calls_at_once_make_one_environment(checkout):
    first, second = (
        subprocess.Popen([str(checkout / "invokew"), "--list"], stderr=subprocess.PIPE, text=True) for _ in range(2)
    )
    said = [process.communicate(timeout=120)[1] for process in (first, second)]
    assert sum("Making" in words for words in said) == 1
    assert not (checkout / ".venv.lock").exists()
