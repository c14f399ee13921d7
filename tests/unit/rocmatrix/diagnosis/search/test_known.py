"""What is derived from patterns is what parsing gives, and is left alone where its sources are others."""

import json
from pathlib import Path

import pytest

from rocmatrix.diagnosis import pattern, project_errors, signature
from rocmatrix.diagnosis.search import known
from rocmatrix.runtime.paths import ROOT

SOME = r"HIP error: invalid (?:device|kernel) [a-z]+ ordinal"


@pytest.fixture
def file(tmp_path, monkeypatch):
    """Let the module read a file of the test's, with the sources of literals next to it."""
    monkeypatch.setattr(known, "__file__", str(tmp_path / "known.py"))
    for name in ("known.py", "literals.py"):
        (tmp_path / name).write_text(name)
    known.derived.cache_clear()
    yield tmp_path / "known.json"
    known.derived.cache_clear()


def test_table_holds_every_pattern_of_the_project():
    texts = {text for one in (*signature.load(ROOT), *project_errors.signatures()) for text in one.pattern_texts()}
    assert {known.key(text) for text in texts} == known.derived(pattern.__file__).keys()
    for text in sorted(texts)[::29]:
        assert known.derived(pattern.__file__)[known.key(text)] == pattern.derived(text)


def test_written_table_is_read_again(file):
    file.write_text(known.text(pattern.__file__, [(SOME, pattern.derived(SOME))]))
    assert known.derived(pattern.__file__) == {known.key(SOME): pattern.derived(SOME)}


@pytest.mark.parametrize("changed", ["known.py", "literals.py"])
def test_table_of_other_sources_is_not_used(file, changed):
    file.write_text(known.text(pattern.__file__, [(SOME, pattern.derived(SOME))]))
    (file.parent / changed).write_text("other")
    assert known.derived(pattern.__file__) == {}


@pytest.mark.parametrize("content", [None, "", "[]", "{}", '{"sources": 1, "patterns": []}', "\xff"])
def test_file_that_is_missing_or_damaged_is_no_failure(file, content):
    if content is not None:
        file.write_text(content, encoding="latin-1")
    assert known.derived(pattern.__file__) == {}


def test_rows_of_another_form_are_not_used(file):
    made = json.loads(known.text(pattern.__file__, []))
    file.write_text(json.dumps({**made, "patterns": {"a": [1]}}))
    assert known.derived(pattern.__file__) == {}


def test_pattern_that_is_not_known_is_parsed(file):
    assert Path(file).exists() is False
    pattern.parse.cache_clear()
    found = pattern.parse(SOME)
    pattern.parse.cache_clear()
    assert (found.width, found.weight) == pattern.derived(SOME)[:2]
    assert found.literals == {literal.encode() for literal in pattern.derived(SOME)[2]}
    assert found.compiled.search(pattern.squeeze(b"hip error: invalid kernel image ordinal"))
