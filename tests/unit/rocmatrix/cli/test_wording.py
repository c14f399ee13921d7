"""Banned words are found where people read them."""

import pytest

from rocmatrix.cli import wording
from rocmatrix.runtime.paths import ROOT, STYLE
from tests.left_out import long

BANNED = {"told": "report", "somebody": "another user", "somebody else": "another program"}


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "trainer" / "engine").mkdir(parents=True)
    (tmp_path / "docs").mkdir()
    return tmp_path


def lines(tree):
    return [(place.path, place.line, place.term) for place in wording.places(tree, BANNED)]


def names(tree, source, path="trainer/engine/loop.py"):
    (tree / path).parent.mkdir(parents=True, exist_ok=True)
    (tree / path).write_text(source)
    return [(place.line, place.term) for place in wording.named(tree, BANNED, {"a", "the"}, {"asked": "requested"})]


@long  # `./invokew lint` does the same
def test_checkout_has_no_banned_term_and_no_faulty_name():
    style = STYLE.read_text()
    assert wording.places(ROOT, wording.terms(style)) == []
    assert wording.named(ROOT, wording.name_terms(style), wording.openings(style), wording.interface_terms(style)) == []


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


def test_openings_of_the_style_page_are_words_and_required():
    assert {"a", "the", "every"} < wording.openings(STYLE.read_text())
    with pytest.raises(ValueError, match="no list of openings"):
        wording.openings("# Style\n")


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("def f(told):\n    return told\n", [(1, "told")]),
        ("class NotTold:\n    pass\n", [(1, "NotTold")]),
        ("x = 1\nfor UN_TOLD in (1,):\n    self.was_told = x\n", [(2, "UN_TOLD"), (3, "was_told")]),
        ("somebody_else = 1\n", [(1, "somebody_else")]),
        ("untold = file.told()\nprint(told=1)\n", []),  # a longer word, and names that others define
    ],
)
def test_banned_term_in_a_name_that_a_program_defines_is_found(tree, source, found):
    assert names(tree, source) == found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("def decide(asked):\n    pass\n", [(1, "asked")]),
        ("class Asked:\n    was_asked: int\n", [(1, "Asked"), (2, "was_asked")]),
        ("def f(self):\n    self.asked = 1\n", [(2, "asked")]),
        ("asked = f(asked=1)\nfor asked in (1,):\n    masked = 'as asked for'\n", []),  # variables, and other words
    ],
)
def test_interface_with_a_term_of_the_second_list_is_found_and_a_variable_is_not(tree, source, found):
    assert names(tree, source) == found


def test_second_list_of_the_style_page_is_required():
    assert wording.interface_terms(STYLE.read_text())["noted"] == "finding"
    with pytest.raises(ValueError, match="no list of names"):
        wording.interface_terms("# Style\n")


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("test_a_run_is_kept", True),
        ("test_every_run_is_kept", False),  # banned in the checkout, not in this short list
        ("test_run_is_told", True),
        ("test_run_of_the_last_night_is_kept", False),
        ("the_run", False),  # a helper
    ],
)
def test_name_of_a_test_without_a_subject_or_with_a_banned_term_is_found(tree, name, found):
    assert names(tree, f"def {name}(x): pass\n", "tests/unit/test_loop.py") == [(1, name)] * found


@pytest.mark.parametrize("path", ["tests/unit/test_loop.py", "tests/fixtures/cells.py", "benchmarks/tables.py"])
def test_banned_term_in_a_name_of_a_test_or_a_benchmark_is_found_and_one_of_interfaces_is_not(tree, path):
    source = "def ends(told, asked):\n    was_told = told\n    return lambda untold: print(told=1)\n"
    assert names(tree, source, path) == [(1, "told"), (2, "was_told")]


def test_third_list_of_the_style_page_is_required_and_holds_with_the_first():
    found = wording.name_terms(STYLE.read_text())
    assert found["wanted"].startswith("expected") and found["told"].startswith("report")
    with pytest.raises(ValueError, match="no list of names of values"):
        wording.name_terms(STYLE.read_text().replace("begin values", "begin"))


def test_main_with_a_banned_term_fails_and_names_the_place(tree, monkeypatch, capsys):
    (tree / "docs/style.md").write_text(STYLE.read_text())
    (tree / "trainer/engine/loop.py").write_text('"""What is told."""\n')
    for name, path in {"ROOT": tree, "STYLE": tree / "docs/style.md"}.items():
        monkeypatch.setattr(wording, name, path)
    assert wording.main() == 1
    assert "trainer/engine/loop.py:1: 'told'; write: report" in capsys.readouterr().err
    (tree / "trainer/engine/loop.py").write_text('"""What is reported."""\ntold = 1\n')
    assert wording.main() == 1
    assert "trainer/engine/loop.py:2: 'told'; write: report" in capsys.readouterr().err
    (tree / "trainer/engine/loop.py").write_text('"""What is reported."""\n')
    assert wording.main() == 0
