"""A copy of the tree to change, by the files that a row of CONTRIBUTING.md's table names, and its own programs."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
COPIED = ("rocmatrix", "trainer", "matrix")
TABLE = (ROOT / "CONTRIBUTING.md").read_text().split("## Changes and their files")[1].split("## Quiz")[0]
ROWS = {name.strip(): text for name, text in re.findall(r"^\| ([^|]+) \| (.+) \|$", TABLE, re.MULTILINE)}


@pytest.fixture
def tree(tmp_path):
    """Return a copy of the checkout to edit; what no change here touches is linked."""
    for path in ROOT.iterdir():
        if path.name in COPIED:
            shutil.copytree(path, tmp_path / path.name, ignore=shutil.ignore_patterns("__pycache__"))
        elif path.name not in (".git", ".rocmatrix", "TRAINING"):
            (tmp_path / path.name).symlink_to(path)
    return tmp_path


@pytest.fixture
def run(tree):
    """Return a function that runs Python's words in the copy and gives its output; what fails shows why."""

    def run(*words):
        done = subprocess.run([sys.executable, *words], cwd=tree, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.fixture
def invokew(run):
    """Return a function that runs the copy's own `./invokew`."""
    return lambda *words: run("-P", "rocmatrix/cli/program.py", "--search-root", ".", *words)


class Change:
    """An edit of files below `tree`, counted, and held against the row of CONTRIBUTING.md that names them."""

    def __init__(self, tree):
        self.tree, self.files, self.rows = tree, set(), ROWS

    def add(self, path, text):
        self.files.add(path)
        with (self.tree / path).open("a", encoding="utf-8") as file:
            file.write(text)

    def insert(self, path, after, text):
        old = (self.tree / path).read_text("utf-8")
        assert old.count(after) == 1, f"{path} has {old.count(after)} times {after!r}"
        self.files.add(path)
        (self.tree / path).write_text(old.replace(after, after + text), encoding="utf-8")

    def is_row(self, row, *, name, number):
        """Hold the files that were edited against a row, whose text is `number: files`; `name` stands for NAME."""
        text = ROWS[row].replace("NAME", name)
        named = set(re.findall(r"`((?:rocmatrix|trainer|matrix)/[\w./]+)`", text))
        assert self.files <= named, self.files - named
        assert len(self.files) == number
        assert re.search(rf"\b{number}\b", text), f"the row of {row!r} does not say {number}"


@pytest.fixture
def change(tree):
    return Change(tree)
