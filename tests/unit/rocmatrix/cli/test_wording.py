"""Banned words are found where people read them."""

import pytest

from rocmatrix.cli import wording
from rocmatrix.runtime.paths import ROOT, STYLE

BANNED = {"told": "report", "somebody": "another user", "somebody else": "another program"}


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "trainer" / "engine").mkdir(parents=True)
    (tmp_path / "docs").mkdir()
    return tmp_path


def lines(tree):
    return [(place.path, place.line, place.term) for place in wording.places(tree, BANNED)]


def test_checkout_has_no_banned_term():
    assert wording.places(ROOT, wording.terms(STYLE.read_text())) == []


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


def test_main_with_a_banned_term_fails_and_names_the_place(tree, monkeypatch, capsys):
    (tree / "docs/style.md").write_text(STYLE.read_text())
    (tree / "trainer/engine/loop.py").write_text('"""What is told."""\n')
    for name, path in {"ROOT": tree, "STYLE": tree / "docs/style.md"}.items():
        monkeypatch.setattr(wording, name, path)
    assert wording.main() == 1
    assert "trainer/engine/loop.py:1: 'told'; write: report" in capsys.readouterr().err
    (tree / "trainer/engine/loop.py").write_text('"""What is reported."""\n')
    assert wording.main() == 0
