"""Banned words are found where people read them, and their number can only fall."""

import json

import pytest

from rocmatrix.cli import wording
from rocmatrix.runtime.paths import ROOT, STYLE, WORDING

BANNED = {"told": "report", "somebody": "another user", "somebody else": "another program"}


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "trainer" / "engine").mkdir(parents=True)
    (tmp_path / "docs").mkdir()
    return tmp_path


def lines(tree):
    return [(place.path, place.line, place.term) for place in wording.places(tree, BANNED)]


def test_checkout_with_its_budget_passes():
    found = wording.places(ROOT, wording.terms(STYLE.read_text()))
    assert wording.judge(found, json.loads(WORDING.read_text())) == []


def test_terms_of_the_style_page_map_each_banned_term_to_its_replacement():
    banned = wording.terms(STYLE.read_text())
    assert banned["bit for bit"] == "bit-identical"
    assert len(banned) > 30


def test_terms_of_a_page_without_a_list_raise_an_error():
    with pytest.raises(ValueError, match="no term list"):
        wording.terms("# Style\n\n<!-- begin terms -->\n<!-- end terms -->\n")


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ('"""What is told."""\n', 1),
        ('def f():\n    """First.\n\n    It is Told here.\n    """\n', 4),
        ('raise ValueError(f"{x} was told {y}")\n', 1),
        ('help = {\n    "a": "a value that is told",\n}\n', 2),
    ],
)
def test_banned_term_in_prose_of_a_module_is_found_at_its_line(tree, source, line):
    (tree / "trainer/engine/loop.py").write_text(source)
    assert lines(tree) == [("trainer/engine/loop.py", line, "told")]


@pytest.mark.parametrize("source", ["told = 1  # what is told\n", 'x = {"told": 1}\n', '"""An untold story."""\n'])
def test_names_keys_comments_and_longer_words_are_not_prose(tree, source):
    (tree / "trainer/engine/loop.py").write_text(source)
    assert lines(tree) == []


def test_document_is_read_without_code_blocks_and_generated_parts(tree):
    text = "One.\n```\ntold\n```\n<!-- begin support -->\ntold\n<!-- end support -->\nIt belongs to somebody\nelse.\n"
    (tree / "docs/training.md").write_text(text)
    (tree / "docs/errors.md").write_text("told\n")
    assert lines(tree) == [("docs/training.md", 8, "somebody else")]


def place(room):
    return wording.Place(path=f"{room}/module.py", line=1, term="told", better="report")


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        ({"trainer/engine": 1}, "trainer/engine: 2 banned terms, budget 1"),
        ({}, "trainer/engine: 2 banned terms, budget 0"),
        ({"trainer/engine": 3}, "trainer/engine: budget 3 is stale, 2 found"),
        ({"trainer/engine": 2, "trainer/gone": 1}, "trainer/gone: budget 1 is stale, 0 found"),
    ],
)
def test_budget_that_is_exceeded_or_stale_is_reported(budget, message):
    assert any(line.startswith(message) for line in wording.judge([place("trainer/engine")] * 2, budget))


def test_budget_that_fits_is_accepted():
    assert wording.judge([place("trainer/engine")] * 2, {"trainer/engine": 2}) == []


@pytest.mark.parametrize(
    ("budget", "expected"),
    [({"trainer/engine": 3, "trainer/gone": 1}, {"trainer/engine": 2}), ({"trainer/engine": 1}, {"trainer/engine": 1})],
)
def test_shrink_lowers_counts_and_never_raises_one(budget, expected):
    assert wording.shrunk([place("trainer/engine")] * 2, budget) == expected


def test_shrink_adds_no_room():
    assert wording.shrunk([place("trainer/engine")], {}) == {}


def test_main_of_a_checkout_over_its_budget_fails_and_names_the_place(tree, monkeypatch, capsys):
    (tree / "docs/style.md").write_text(STYLE.read_text())
    (tree / "wording.json").write_text("{}")
    (tree / "trainer/engine/loop.py").write_text('"""What is told."""\n')
    for name, path in {"ROOT": tree, "STYLE": tree / "docs/style.md", "WORDING": tree / "wording.json"}.items():
        monkeypatch.setattr(wording, name, path)
    assert wording.main([]) == 1
    assert wording.main(["--shrink"]) == 1
    assert "trainer/engine/loop.py:1: 'told'; write: report" in capsys.readouterr().err
    (tree / "trainer/engine/loop.py").write_text('"""What is reported."""\n')
    assert wording.main([]) == 0
