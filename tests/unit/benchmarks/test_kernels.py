"""The trainer's kernels and those that Inductor writes for it, compiled for AMD cards without one, held to a budget."""

import importlib.util
import json

import pytest

from benchmarks.kernels import budget
from tests.left_out import WHOLE

needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None and not (budget.TRITON / "triton").is_dir(),
    reason="triton is not installed; .ci/kernels does it",
)
KEPT = budget.read_budget()
GENERATED = json.loads(budget.GENERATED.read_text())["kernels"]
ROW = {
    "architecture": "gfx1100",
    "kernel": "a",
    "number": None,
    "spilled": 0,
    "vgprs": 8,
    "sgprs_spilled": 0,
    "shared": 0,
}


def broken(rows, before):
    return list(budget.exceeded(budget.figures(rows), before))


@needs_triton
def test_trainers_kernels_keep_the_budget_on_the_architectures_of_the_matrix():
    """At each stop on a card of each set of instructions, at night on every architecture."""
    architectures = budget.architectures() if WHOLE else budget.REPRESENTATIVES
    plan = budget.plan_of(architectures) | {"generated": None}
    versions, rows = budget.compile_rows(plan)
    assert versions["triton"] == KEPT["triton"], "the budget is of another Triton"
    found = budget.figures(rows)
    assert found.keys() == set(architectures)
    assert list(budget.exceeded(found, {name: KEPT["architectures"][name] for name in architectures})) == []


@needs_triton
def test_inductors_kernels_keep_the_budget_on_a_card_of_each_set_of_instructions():
    """Each kernel on one card, in turn, so that every card has its share of the minute this takes.

    A stop takes every second kernel, the night all. At night every other architecture has one, too: most of them are
    refused by this Triton.
    """
    cards, taken = budget.REPRESENTATIVES, range(0, len(GENERATED), 1 if WHOLE else 2)
    numbers = {card: list(taken[place :: len(cards)]) for place, card in enumerate(cards)}
    others = [name for name in budget.architectures() if WHOLE and name not in cards]
    numbers |= {card: [place % len(GENERATED)] for place, card in enumerate(others)}
    plan = budget.plan_of([*cards, *others], own=False, configurations=1) | {"numbers": numbers}
    found = budget.figures(budget.compile_rows(plan)[1])
    assert sum(map(len, found.values())) == len(taken) + len(others)
    assert len(taken) >= 15
    assert list(budget.exceeded(found, KEPT["first_configuration"])) == []


def test_budget_of_first_configurations_has_every_kernel_on_every_architecture():
    for architecture in budget.architectures():
        numbered = [name for name in KEPT["first_configuration"][architecture] if name.split(" ", 1)[0].isdigit()]
        assert len(numbered) == len(GENERATED), architecture


def test_rise_of_any_figure_breaks_the_budget_and_a_fall_does_not():
    before = budget.figures([ROW])
    assert broken([ROW], before) == []
    for name in budget.COUNTED:
        assert broken([ROW | {name: ROW[name] + 1}], before) == [
            f"a for gfx1100: {name} {ROW[name] + 1}, budget {ROW[name]}"
        ]
    assert broken([ROW | {"vgprs": 7}], before) == []


def test_architecture_that_is_newly_refused_or_newly_compiled_breaks_the_budget():
    refused = {"architecture": "gfx1100", "kernel": "a", "number": None, "refused": "RuntimeError: no"}
    assert broken([refused], budget.figures([ROW])) == [
        "a for gfx1100: refused (RuntimeError: no), and before compiled"
    ]
    assert broken([ROW], budget.figures([refused])) == [
        "a for gfx1100: compiled, and before refused (RuntimeError: no)"
    ]
    assert broken([refused], budget.figures([refused | {"refused": "another reason"}])) == []


def test_kernel_without_a_budget_breaks_it():
    assert broken([ROW], {}) == ["a for gfx1100: no budget"]


@pytest.mark.parametrize(
    ("architecture", "most"), [("gfx1100", 65536), ("gfx942", 65536), ("gfx950", 163840), ("gfx1250", 327680)]
)
def test_shared_memory_beyond_the_cards_breaks_whatever_the_budget(architecture, most):
    for amount, fine in ((most, True), (most + 4, False)):
        row = ROW | {"architecture": architecture, "shared": amount}
        assert (broken([row], budget.figures([row])) == []) is fine


def test_configuration_that_spills_least_counts_and_the_most_shared_memory():
    rows = [ROW | {"spilled": 40, "vgprs": 1, "shared": 9}, ROW | {"vgprs": 99}, ROW | {"refused": "RuntimeError: no"}]
    (found,) = budget.figures(rows)["gfx1100"].values()
    assert found == {"spilled": 0, "vgprs": 99, "sgprs_spilled": 0, "shared": 9}
