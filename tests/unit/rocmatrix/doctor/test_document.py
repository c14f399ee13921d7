"""docs/doctor.md has every check and every rule, each with what it is about, as a sentence."""

import pytest

from rocmatrix.doctor import document
from rocmatrix.doctor.environment import rules
from rocmatrix.doctor.examination import CHECKS
from rocmatrix.runtime.paths import ROOT

RULES = rules.load(ROOT)


def test_page_has_each_check_and_rule_once():
    text = document.page(RULES)
    for check in CHECKS:
        assert text.count(f"\n### {check.code} {check.title}\n") == 1
    for rule in RULES:
        assert text.count(f"\n### {rule.id}\n") == 1
    assert text.index(f"### {CHECKS[-1].code}") < text.index("## Rules on variables") < text.index(f"### {RULES[0].id}")


@pytest.mark.parametrize(("text", "sentence"), [("a b", "A b."), ("A b.", "A b."), ("a", "A."), ("x.. ", "X.. .")])
def test_reason_becomes_a_sentence(text, sentence):
    assert document._sentence(text) == sentence


def entry(**changes):
    rule = next(each for each in RULES if each.names)
    when = rule.when.model_copy(
        update=dict.fromkeys(("architectures", "torch", "rocm"), None) | changes.pop("when", {})
    )
    about = {"names": ["A", "B"], "value": None, "command": None, "when": when}
    return document._rule(rule.model_copy(update=about | changes)).splitlines()[3]


@pytest.mark.parametrize(
    ("changes", "end"),
    [
        ({}, "`A`, `B`."),
        ({"value": "1"}, "`A`, `B` with a value like `1`."),
        ({"names": [], "command": "docker"}, "a command line like `docker`."),
        ({"when": {"architectures": ["gfx906", "gfx1100"]}}, "`A`, `B` (on gfx906, gfx1100)."),
        ({"when": {"torch": ">=2.9", "rocm": "<7"}}, "`A`, `B` (torch >=2.9; ROCm <7)."),
    ],
)
def test_rule_names_its_subject_and_where_it_holds(changes, end):
    assert entry(**changes).partition(": ")[2] == end
