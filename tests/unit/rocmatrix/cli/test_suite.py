"""The whole suite in two processes: every test in one of them, and no failure of either lost."""

import sys
from pathlib import Path

import pytest

from rocmatrix.cli import suite

ROOT = Path(__file__).resolve().parents[4]
PASSES, FAILS, NONE = "def test_it(): pass\n", "def test_it(): assert False\n", ""


def test_lanes_together_cover_every_test_folder():
    trainer, others = suite.lanes("python", "")
    assert all((ROOT / folder).is_dir() for folder in suite.TRAINER)
    assert trainer[-2:] == list(suite.TRAINER)
    assert others[-3:] == ["tests", *(f"--ignore={folder}" for folder in suite.TRAINER)]


@pytest.mark.parametrize(
    ("first", "second", "status"),
    [
        (PASSES, PASSES, 0),
        (FAILS, PASSES, 1),
        (PASSES, FAILS, 1),
        (NONE, PASSES, 0),
        (PASSES, NONE, 0),
        (NONE, NONE, 5),
    ],
)
def test_run_two_lanes_reports_both_and_returns_the_failure(tmp_path, capfd, first, second, status):
    for folder, content in (("tests/unit/trainer", first), ("tests/gpu", NONE), ("tests/unit/host", second)):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / f"test_{folder.replace('/', '_')}.py").write_text(content)
    found = suite.run(sys.executable, "", root=tmp_path, environment={"PATH": ""})
    assert found == status
    printed = capfd.readouterr().out
    for content, word in ((first, "trainer"), (second, "host")):
        assert (f"FAILED tests/unit/{word}" in printed) == (content == FAILS)
