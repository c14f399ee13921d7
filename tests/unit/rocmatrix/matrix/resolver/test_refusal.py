"""A refusal cites what blocks a request, and names the nearest cells that work."""

import pytest

from rocmatrix.matrix.resolver.refusal import nearest_cells, next_step, refusal_of
from rocmatrix.matrix.resolver.request import Request
from rocmatrix.matrix.rule import Rule
from rocmatrix.matrix.statement import Evidence, Selector
from tests.fixtures.cells import MATRIX

EVIDENCE = Evidence(sources=["this test"], confidence="measured here", date="2026-11-21")


def blocked(**when):
    """The matrix with one rule: it calls broken what `when` selects."""
    rule = Rule(id="x", when=Selector(**when), verdict="broken", reason="so", evidence=EVIDENCE, expires="2027-01-01")
    return MATRIX.model_copy(update={"rules": [rule]})


def names(**axes):
    return [cell.name for cell in nearest_cells(MATRIX, Request(**axes))]


@pytest.mark.parametrize(
    ("axes", "first"),
    [
        ({"rocm": "6.0", "torch": "2.4.1"}, ["rocm6.0-torch2.4.1-gfx906"]),
        ({"rocm": "6.0"}, ["rocm6.0-torch2.4.1-gfx906"]),
        ({"torch": "2.4.1"}, ["rocm6.0-torch2.4.1-gfx906"]),
        ({"torch": "2.7.1", "rocm": "6.3"}, ["rocm6.3-torch2.7.1-gfx1100", "rocm6.3-torch2.7.1-gfx906"]),
        ({"gpu": "gfx906", "rocm": "6.0"}, ["rocm6.0-torch2.4.1-gfx906", "rocm6.3-torch2.7.1-gfx906"]),
        ({"gpu": "gfx906", "torch": "2.7.1"}, ["rocm6.3-torch2.7.1-gfx906", "rocm6.0-torch2.4.1-gfx906"]),
    ],
)
def test_nearest_cells_keep_most_of_the_versions_that_were_requested(axes, first):
    found = names(**axes)
    assert found[: len(first)] == first
    assert len(found) == (2 if axes.get("gpu") == "gfx906" else 3)


def test_refusal_without_versions_lists_the_preferred_cells_of_a_card_first():
    assert names(gpu="gfx1100")[0] == "rocm7.2-torch2.12.1-gfx1100"
    assert len(names(gpu="gfx1100")) == 3
    assert len(names(gpu="gfx1100", torch="2.14.1")) == 3
    assert names(gpu="gfx1100", torch="2.14.1")[0] == "rocm7.14-torch2.14.1-gfx1100"
    assert len(names()) == 3


@pytest.mark.parametrize(
    ("gpu", "architecture"),
    [
        ("gfx906", "gfx906"),
        ("gfx1034", "gfx1030"),  # an override to it helps
        ("gfx1033", None),  # an override to gfx1030 does harm: no cell of it is offered
        ("gfx90c", None),  # gfx900 would help, and has no cell
        ("gfx803", None),
        ("gfx909", None),  # of which nothing is known
    ],
)
def test_card_without_a_cell_is_offered_those_of_one_whose_code_helps_else_the_cpus(gpu, architecture):
    assert {cell.architecture for cell in nearest_cells(MATRIX, Request(gpu=gpu))} == {architecture}


def test_refusal_by_a_rule_begins_with_the_request_and_ends_with_a_line_a_cell():
    request = Request(gpu="gfx906", rocm="7.2")
    refusal = refusal_of(MATRIX, request)
    assert (refusal.code, refusal.where) == ("RM012", "rule gfx906-rocblas-from-6.4")
    assert refusal.what.startswith(f"{request}: ")
    assert refusal.next.splitlines() == next_step(nearest_cells(MATRIX, request)).splitlines()
    assert [line.split()[0] for line in refusal.next.splitlines()] == ["--cell"] * 2


def test_advice_without_a_cell_leads_to_the_matrix():
    assert next_step([]) == "see ./invokew matrix"


def test_hints_stand_before_the_cells_on_lines_of_their_own():
    lines = refusal_of(MATRIX, Request(gpu="gfx1032", rocm="7.2")).next.splitlines()
    assert lines[0].startswith("HSA_OVERRIDE_GFX_VERSION=10.3.0 runs the code of gfx1030 in rocm7.2-")
    assert lines[1].startswith("--cell ")


@pytest.mark.parametrize(
    ("axes", "helps"),
    [
        ({"gpu": "gfx1101", "torch": "2.5.1", "rocm": "6.2"}, True),
        ({"gpu": "gfx1101", "torch": "2.12.1", "rocm": "7.2"}, False),
        ({"gpu": "gfx1102", "torch": "2.3.1", "rocm": "5.7"}, True),
        ({"gpu": "gfx1102", "torch": "2.4.1", "rocm": "6.1"}, False),
    ],
)
def test_override_is_named_for_the_versions_that_it_helps_alone(axes, helps):
    refusal = refusal_of(blocked(architectures=[axes["gpu"]]), Request(**axes))
    assert ("HSA_OVERRIDE_GFX_VERSION=11.0.0" in refusal.next) is helps


def test_refusal_without_an_image_names_at_most_three_releases_and_the_pythons_of_bases():
    request = Request(gpu="gfx1100", python="3.10")
    old = next(iter(MATRIX.bases.values())).model_copy(update={"python": "3.9"})
    refusal = refusal_of(MATRIX.model_copy(update={"bases": {**MATRIX.bases, "old": old}}), request)
    assert (refusal.code, str(request) in refusal.what) == ("RM014", True)
    assert refusal.why.count("was built for") == 3
    assert refusal.why.endswith("bases bring Python 3.9, 3.11, 3.12, 3.13, 3.14")


def test_versions_that_nothing_joins_and_no_rule_names_are_refused_without_a_rule():
    for axes in ({"torch": "9.9", "rocm": "9.9"}, {"torch": "9.9"}, {"rocm": "9.9"}):
        assert refusal_of(MATRIX, Request(**axes)).code == "RM011"


def test_rule_on_versions_that_were_never_joined_is_cited_where_it_is_of_the_card_and_of_both():
    request = Request(gpu="gfx1100", torch="9.9", rocm="9.9")
    assert refusal_of(blocked(architectures=["gfx1100"], torch="==9.9", rocm="==9.9"), request).where == "rule x"
    assert refusal_of(blocked(architectures=["gfx908"], torch="==9.9", rocm="==9.9"), request).code == "RM011"
    assert refusal_of(blocked(torch="==9.9"), Request(gpu="gfx1100", torch="9.9")).code == "RM011"
    assert refusal_of(blocked(rocm="==9.9"), Request(gpu="gfx1100", rocm="9.9")).code == "RM011"
