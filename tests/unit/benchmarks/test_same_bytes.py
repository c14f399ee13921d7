"""Two commits' outputs compared file by file, on made-up outcomes and on a small git repository."""

import json
import subprocess

import pytest

from benchmarks import same_bytes
from benchmarks.same_bytes import CASES, Case, Outcome, compared, content_of, export, keep, run_case


def outcome(status=0, **sha256):
    return Outcome(status=status, last_line="why", sha256=sha256)


def test_files_are_equal_different_or_in_one_commit_alone():
    found = compared(outcome(a="1", b="2", c="3"), outcome(a="1", b="9", d="4"))
    assert found == {"a": "equal", "b": "differs", "c": "old alone", "d": "new alone"}


def test_failed_command_is_named_with_its_last_line_in_place_of_its_files():
    assert compared(outcome(a="1"), outcome(2, a="1")) == {"(command)": "new failed: why"}
    assert compared(outcome(2), outcome(2)) == {"(command)": "old failed: why; new failed: why"}


def test_command_that_wrote_nothing_is_not_equal():
    assert compared(outcome(), outcome()) == {"(command)": "nothing to compare was written"}


def test_cases_have_names_of_their_own_and_something_to_compare():
    assert len({case.name for case in CASES}) == len(CASES)
    assert all(case.files or case.printed for case in CASES)


def test_page_is_compared_without_the_time_of_its_run(tmp_path):
    pages = [tmp_path / name for name in ("a.html", "b.html", "c.html", "d.txt", "e.txt")]
    texts = ("at 2026-11-23T15:58:34+00:00: 1", "at 2026-11-23T16:40:14+00:00: 1", "at 2026-11-23T15:58:34+00:00: 2")
    for page, text in zip(pages, (*texts, *texts[:2]), strict=True):
        page.write_text(text)
    one, later, other, text, later_text = (content_of(page) for page in pages)
    assert (one == later, one == other, text == later_text) == (True, False, False)


def test_results_of_other_commits_and_cases_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(same_bytes, "RESULTS", tmp_path / "kept.json")
    for old, case, what in (("a", "one", "equal"), ("b", "one", "differs"), ("a", "two", "equal")):
        keep({"old": old, "new": "n"}, {case: {"file": what}})
    kept = json.loads((tmp_path / "kept.json").read_text())
    assert {pair: list(about["found"]) for pair, about in kept.items()} == {"a..n": ["one", "two"], "b..n": ["one"]}


@pytest.fixture
def two_commits(tmp_path, monkeypatch):
    """A repository whose program prints its one argument, and in the second commit a word more."""
    monkeypatch.setattr(same_bytes, "ROOT", tmp_path / "repository")
    program = tmp_path / "repository" / "rocmatrix" / "program.py"
    program.parent.mkdir(parents=True)

    def git(*words):
        identity = ("-c", "user.name=n", "-c", "user.email=e")
        subprocess.run(["git", *identity, *words], cwd=program.parents[1], check=True, capture_output=True)

    git("init")
    for text in ("print('same')", "print('same'); open('out.txt', 'w').write('x')"):
        program.write_text(text)
        git("add", "-A")
        git("commit", "-m", "m")
    for name, commit in (("old", "HEAD~1"), ("new", "HEAD")):
        export(commit, tmp_path / name)
    return tmp_path / "old", tmp_path / "new"


def test_commits_are_run_from_their_own_files(two_commits):
    case = Case(name="c", argv=(), host=True, files=("*.txt",), printed=True)
    assert compared(*(run_case(case, tree) for tree in two_commits)) == {
        "out.txt": "new alone",
        "standard output": "equal",
    }
