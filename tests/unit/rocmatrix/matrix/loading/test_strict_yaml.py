"""YAML is read strictly, whatever the text, and lines are counted only for what is wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmatrix.matrix.loading import strict_yaml

TEXT = """\
a:
  b: [1, 3.10, "3.10"]
  # a comment
  c: {d: yes, e: 2026-11-21}
f: ~
"""


def test_data_lines_and_raw_text_agree_with_the_file():
    document = strict_yaml.parse(TEXT, file="x")
    assert document.data == {"a": {"b": [1, 3.1, "3.10"], "c": {"d": True, "e": "2026-11-21"}}, "f": None}
    assert [document.line(path) for path in (("a",), ("a", "b", 1), ("a", "c", "e"), ("f",))] == [1, 2, 4, 5]
    assert document.raw(("a", "b", 1)) == "3.10"
    assert document.raw(("a",)) is None


def test_path_that_is_not_there_stands_where_its_parent_does():
    document = strict_yaml.parse(TEXT, file="x")
    assert document.line(("a", "c", "missing", 3)) == 4
    assert strict_yaml.parse("", file="x").line(("a",)) == 1


def test_sound_file_pays_for_no_lines():
    document = strict_yaml.parse(TEXT, file="x")
    assert "nodes" not in vars(document)
    document.problem(("a",), "wrong")
    assert "nodes" in vars(document)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("&x a", "anchor"),
        ("a: &x 1", "anchor"),
        ("a: [1,&x 2]", "anchor"),
        ('{"a":*x}', "alias"),
        ("- *x", "alias"),
        ("a: !!str 1", "tag"),
        ("!t a", "tag"),
        ("? *x\n: 1", "alias"),
        ("a:\n\t&x 1", None),  # not YAML at all
    ],
)
def test_anchors_aliases_and_tags_are_refused(text, kind):
    (problem,) = strict_yaml.parse(text, file="x").problems
    assert kind is None or f"a YAML {kind} is not allowed" in problem.message


@pytest.mark.parametrize("text", ["a: b&c", "a: docs/* branches", "a: 'x &y'", 'a: ">=1,!=2"', "# &x *y !z\na: 1"])
def test_special_characters_within_a_text_are_accepted(text):
    assert strict_yaml.parse(text, file="x").problems == []


@pytest.mark.parametrize("depth", [strict_yaml.DEEPEST - 1, strict_yaml.DEEPEST + 1, 300, 5000])
def test_depth_has_a_bound(depth):
    document = strict_yaml.parse("[" * depth + "]" * depth, file="x")
    assert bool(document.problems) == (depth > strict_yaml.DEEPEST)


def test_key_given_twice_and_a_key_that_is_no_text_are_named():
    document = strict_yaml.parse("a: 1\nb: 2\na: 3\n[c]: 4", file="x")
    assert [str(problem) for problem in document.problems] == [
        "x:3: the key 'a' stands here a second time",
        "x:4: a key must be plain text",
    ]
    assert document.line(("a",)) == 1


@given(st.text(alphabet=st.sampled_from("ab:-[]{},&*!|>'\"#% \n\t?~0"), max_size=60))
def test_text_of_any_kind_never_raises_and_references_are_refused(text):
    document = strict_yaml.parse(text, file="x")
    assert document.line(("a", 0)) >= 1
    refused = any("is not allowed here" in problem.message for problem in document.problems)
    assert refused or document.root is None or not refers(text)


def refers(text):
    import yaml

    tokens = (yaml.AnchorToken, yaml.AliasToken, yaml.TagToken)
    return any(isinstance(token, tokens) for token in yaml.scan(text, Loader=strict_yaml._Loader))
