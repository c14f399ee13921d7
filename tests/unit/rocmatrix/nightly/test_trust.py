"""What a night takes and promotes by its records: each lacking, failed or newer record takes it away. All STAND-IN."""

import pytest

from rocmatrix.evidence.record import Hardware, Trouble
from rocmatrix.nightly import trust
from tests.fixtures.evidence import CELL, IMAGE, INPUTS, OTHER_INPUTS, record, rocm, smoke

OTHER = "sha256:" + "e" * 64
LOST = Trouble(stage="engine", words="gone")


@pytest.mark.parametrize(
    ("records", "images"),
    [
        ([], set()),
        ([record("build")], {IMAGE}),
        ([record("build", passed=False)], set()),
        ([record("build", inputs=OTHER_INPUTS)], set()),
        ([smoke(), record("prove", 1)], set()),
        ([record("build"), record("build", 1, image=OTHER)], {IMAGE, OTHER}),
        ([record("build"), record("prove", 1, passed=False)], set()),
        ([record("build"), record("prove", 1, passed=False, image=OTHER)], {IMAGE}),
        ([record("build"), record("prove", 1, passed=False, inputs=OTHER_INPUTS)], {IMAGE}),
        ([record("build"), record("prove", 1, passed=False, trouble=LOST)], {IMAGE}),
        ([record("build"), record("prove", 1, passed=False), record("prove", 2)], {IMAGE}),
        ([record("build"), record("prove", 1), record("prove", 2, passed=False)], set()),
        ([record("build"), smoke(1, status="fail")], {IMAGE}),
        ([record("build"), record("prove", 1, verdicts=())], set()),
    ],
)
def test_image_is_taken_as_it_is_where_a_build_made_it_and_no_newer_proof_failed(records, images):
    assert trust.sound(records, INPUTS) == images


PROVEN, SMOKED = record("prove", 1), smoke(2)


def test_image_is_promoted_where_its_newest_proof_and_suite_passed():
    assert trust.tested([PROVEN, SMOKED], INPUTS, cell=CELL) == IMAGE
    assert trust.tested([SMOKED, PROVEN], INPUTS, cell=CELL) == IMAGE
    assert trust.tested([PROVEN, SMOKED], OTHER_INPUTS, cell=CELL) is None


@pytest.mark.parametrize("records", [[], [PROVEN], [SMOKED], [record("build"), PROVEN, record("train", 2)]])
def test_image_without_a_proof_or_a_suite_is_not_promoted(records):
    assert trust.tested(records, INPUTS, cell=CELL) is None


@pytest.mark.parametrize(
    "more",
    [
        record("prove", 3, passed=False),
        record("prove", 3, image=OTHER),
        record("prove", 3, passed=False, trouble=LOST),
        smoke(3, status="fail"),
        smoke(3, status="fail", whole=False),
        smoke(3, image=OTHER),
        smoke(3, image=None),
        smoke(3, marks=("card-errors",)),
        record("smoke", 3, verdicts=()),
        record("prove", 3, verdicts=()),
        smoke(3, passed=False, trouble=LOST),
    ],
)
def test_newer_failure_or_another_image_takes_the_promotion_away(more):
    assert trust.tested([PROVEN, SMOKED, more], INPUTS, cell=CELL) is None


def test_newer_record_of_other_inputs_takes_nothing_away():
    more = [record("prove", 3, passed=False, inputs=OTHER_INPUTS), smoke(4, status="fail", inputs=OTHER_INPUTS)]
    assert trust.tested([PROVEN, SMOKED, *more], INPUTS, cell=CELL) == IMAGE


def test_suite_of_chosen_probes_does_not_answer_a_whole_one_that_failed():
    failed, chosen = smoke(2, status="fail"), smoke(3, whole=False)
    assert trust.tested([PROVEN, failed, chosen], INPUTS, cell=CELL) is None
    assert trust.tested([PROVEN, chosen], INPUTS, cell=CELL) is None
    assert trust.tested([PROVEN, failed, chosen, smoke(4)], INPUTS, cell=CELL) == IMAGE
    assert trust.tested([PROVEN, SMOKED, chosen], INPUTS, cell=CELL) == IMAGE


def test_newer_pass_answers_a_failure():
    assert trust.tested([PROVEN, smoke(2, status="fail"), smoke(3)], INPUTS, cell=CELL) == IMAGE
    assert trust.tested([record("prove", passed=False), PROVEN, SMOKED], INPUTS, cell=CELL) == IMAGE


def test_image_that_no_record_names_is_not_promoted():
    assert trust.tested([record("prove", image=None), smoke(2, image=None)], INPUTS, cell=CELL) is None


def test_image_of_a_simulated_machine_is_none_of_a_real_one_and_the_other_way_round():
    marked = [each.model_copy(update={"marks": ("simulated",)}) for each in (record("build"), PROVEN, SMOKED)]
    assert (trust.sound(marked, INPUTS), trust.tested(marked, INPUTS, cell=CELL)) == (set(), None)
    assert (trust.sound(marked, INPUTS, simulated=True), trust.tested(marked, INPUTS, cell=CELL, simulated=True)) == (
        {IMAGE},
        IMAGE,
    )
    assert trust.tested([PROVEN, SMOKED], INPUTS, cell=CELL, simulated=True) is None


@pytest.mark.parametrize(
    "fields",
    [
        {"hardware": Hardware(device="cpu")},
        {"hardware": rocm("gfx1030")},
        {"versions": {"torch": "2.6.0"}},
        {"versions": {"torch": "2.7.1+rocm6.4"}},
    ],
)
def test_newer_suite_on_another_device_or_torch_takes_the_promotion_away(fields):
    assert trust.tested([PROVEN, SMOKED, smoke(3, **fields)], INPUTS, cell=CELL) is None


def test_suite_in_a_stand_in_promotes_with_any_torch_and_on_the_cells_card_alone():
    marked = {"marks": ("stand-in",), "versions": {"torch": "2.6.0"}}
    assert trust.tested([PROVEN, smoke(3, **marked)], INPUTS, cell=CELL) == IMAGE
    assert trust.tested([PROVEN, smoke(3, **marked, hardware=rocm("gfx1030"))], INPUTS, cell=CELL) is None


@pytest.mark.parametrize("mark", ["nvidia", "synthetic", "forced"])
def test_image_that_passed_on_a_card_of_another_maker_or_against_a_rule_is_not_promoted(mark):
    assert trust.tested([PROVEN, smoke(3, marks=(mark,))], INPUTS, cell=CELL) is None
