"""A rule judges or cautions; a claim against it is told with what became of it."""

import pytest

from rocmatrix.matrix.rule import Claim, verdict_of
from rocmatrix.matrix.statement import within
from tests.fixtures.cells import MATRIX

RULES = {rule.id: rule for rule in MATRIX.rules}


def axes(architecture, torch, rocm):
    return {"architecture": architecture, "torch": torch, "rocm": rocm}


@pytest.mark.parametrize(
    ("rule", "verdict", "combination"),
    [
        ("gfx906-mi50-torch-2.4.1", "works", axes("gfx906", "2.4.1", "6.0")),
        ("gfx906-mi50-torch-2.5.1", "broken", axes("gfx906", "2.5.1", "6.2")),
        ("gfx906-override-to-gfx1030", "broken", axes("gfx906", "2.5.1", "6.2")),
        ("gfx1100-torch-2.5.1-hipblas", "untested", axes("gfx1100", "2.5.1", "6.2")),
        ("gfx1100-torch-2.5.1-compile-and-fsdp", "degraded", axes("gfx1100", "2.5.1", "6.2")),
        ("gfx115x-bf16-zeros", "degraded", axes("gfx1151", "2.12.1", "7.2")),
        ("gfx1151-native", "untested", axes("gfx1151", "2.12.1", "7.2")),
        ("gfx1151-windows", "untested", axes("gfx1151", "2.12.1", "7.2")),
        ("gfx942-torch-2.6-rocm-6.2.4", "degraded", axes("gfx942", "2.6.0", "6.2.4")),
        ("gfx1102-override-from-rocm-6.0", "broken", axes("gfx1102", "2.4.0", "6.0")),
        ("rdna4-narrow-products", "broken", axes("gfx1200", "2.12.1", "7.2")),
        ("rdna4-narrow-products", "broken", axes("gfx1201", "2.13.0", "10.0")),
        ("gfx1033-trains-to-nan", "broken", axes("gfx1033", "2.13.0", "10.0")),
        ("gfx1100-visible-igpu", "degraded", axes("gfx1100", "2.13.0", "7.2")),
        ("expandable-segments", "degraded", axes("gfx1100", "2.13.0", "7.2")),
        ("backend-hccl", "broken", axes("gfx1100", "2.5.1", "6.2")),
        ("rocm-7-has-its-own-wheels", "untested", axes("gfx1100", "2.10.0", "7.0")),
    ],
)
def test_reports_this_project_was_given_are_rules(rule, verdict, combination):
    assert RULES[rule].verdict == verdict
    assert RULES[rule].when.matches(**combination)
    assert not RULES[rule].when.matches(**axes(None, "2.13.0", None))


@pytest.mark.parametrize(
    "rule",
    ["gfx1100-torch-2.5.1-hipblas", "backend-hccl", "gfx1151-windows", "gfx1151-native", "rocm-7-has-its-own-wheels",
     "invented-variables", "gfx115x-bf16-zeros", "torch-2.5.1-rocm-6.3"],
)  # fmt: skip
def test_report_that_a_source_contradicts_names_both_and_which_stands(rule):
    claim = RULES[rule].claim
    assert claim is not None
    assert not claim.stands
    assert claim.evidence.sources
    assert claim.says in RULES[rule].summary
    assert RULES[rule].reason in RULES[rule].summary
    assert "refuted" in RULES[rule].summary


def test_caution_leaves_the_verdict_alone():
    cautions = [rule for rule in MATRIX.rules if rule.when.given]
    assert cautions
    assert verdict_of(cautions) == "untested"
    assert verdict_of([*cautions, RULES["gfx906-mi50-torch-2.4.1"]]) == "works"


def test_weightiest_verdict_counts():
    named = ("gfx906-mi50-torch-2.4.1", "gfx906-still-built", "gfx942-torch-2.6-rocm-6.2.4", "gfx906-mi50-torch-2.5.1")
    works, untested, degraded, broken = (RULES[name] for name in named)
    assert verdict_of([untested, works]) == "works"
    assert verdict_of([works, degraded]) == "degraded"
    assert verdict_of([degraded, works, broken]) == "broken"


def test_rule_of_another_package_does_not_apply_to_torch():
    rule = RULES["tensorflow-rocm-python"]
    combination = axes("gfx1100", "2.12.1", "7.2")
    assert not rule.when.matches(**combination)
    assert rule.when.matches(**combination, package="tensorflow-rocm")


@pytest.mark.parametrize(
    ("given", "stands", "words"),
    [
        (None, None, "it stops"),
        ("an iGPU is visible", None, "where an iGPU is visible: it stops"),
        (None, True, "it stops. Reported: it runs; this stands"),
        ("an iGPU is visible", False, "where an iGPU is visible: it stops. Reported: it runs; refuted"),
    ],
)
def test_text_of_a_rule_names_its_condition_and_the_outcome_of_a_claim(given, stands, words):
    rule = MATRIX.rules[0]
    claim = None if stands is None else Claim(says="it runs", stands=stands, evidence=rule.evidence)
    when = rule.when.model_copy(update={"given": given})
    made = rule.model_copy(update={"reason": "it stops", "when": when, "claim": claim})
    assert (made.summary, made.decides) == (words, given is None)


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([], "untested"),
        (["untested"], "untested"),
        (["untested", "works"], "works"),
        (["works", "degraded"], "degraded"),
        (["degraded", "broken", "works"], "broken"),
    ],
)
def test_most_severe_of_the_deciding_verdicts_is_taken(verdicts, expected):
    open_rule = MATRIX.rules[0].model_copy(update={"when": MATRIX.rules[0].when.model_copy(update={"given": None})})
    caution = open_rule.when.model_copy(update={"given": "somewhere"})
    rules = [open_rule.model_copy(update={"verdict": verdict}) for verdict in verdicts]
    assert verdict_of(rules) == verdict_of(rules[::-1]) == expected
    assert verdict_of([*rules, open_rule.model_copy(update={"verdict": "broken", "when": caution})]) == expected


def test_rules_expire_after_they_were_read():
    for rule in (*MATRIX.rules, *MATRIX.derived_rules):
        assert rule.expires > rule.evidence.date


def test_rule_holds_through_the_day_it_expires_and_is_due_from_the_next():
    rule = MATRIX.rules[0].model_copy(update={"expires": "2026-11-22"})
    assert not rule.expired("2026-11-21")
    assert not rule.expired("2026-11-22")
    assert rule.expired("2026-11-23")


@pytest.mark.parametrize(
    ("version", "bounds", "held"),
    [
        ("2.13.0rc1", ">=2.12", True),
        ("2.13.0rc1", "<2.14", True),
        ("2.14.0.dev20261101", ">=2.13", True),
        ("2.13.0rc1", ">=2.13", False),
        ("2.12.0+rocm7.2", "==2.12.0", True),
        (None, ">=2", False),
        (None, None, True),
    ],
)
def test_range_holds_prereleases_as_it_holds_releases(version, bounds, held):
    """A candidate of a release is served by the same index, and a rule on the range speaks of it, too."""
    assert within(version, bounds) is held
