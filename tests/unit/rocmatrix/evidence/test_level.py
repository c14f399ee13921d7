"""A level is what the records of one image bear out: nothing set aside raises it, a newer failure lowers it."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmatrix.evidence.counted import required
from rocmatrix.evidence.level import LEVELS, cell_statuses, held, known_images, why_not
from rocmatrix.evidence.record import Hardware, Trouble, Verdict
from rocmatrix.nightly import trust
from tests.fixtures.evidence import (
    ALL_PASS,
    CARD,
    CELL,
    IMAGE,
    INPUTS,
    OTHER_INPUTS,
    PROVEN,
    Cell,
    Release,
    record,
    rocm,
    smoke,
)

CPU = Cell("cpu-torch2.13.0", None, Release(rocm=None))
CLIMB = [
    record("build"),
    record("prove", 1),
    smoke(2),
    smoke(3, two="pass", hardware=rocm(cards=2)),
    record("train", 4),
]


def level(*records, cell=CELL, rendered=True):
    (cell_status,) = cell_statuses(cell, records, rendered=rendered)
    return cell_status.level


@pytest.mark.parametrize("count", range(6))
def test_runs_each_climb_one_rung(count):
    assert level(*CLIMB[:count]) == LEVELS[1 + count]


def test_cell_that_is_not_rendered_has_no_level():
    assert level(*CLIMB, rendered=False) == "none"


@pytest.mark.parametrize(("missing", "reached"), [(0, "rendered"), (1, "built"), (2, "trained"), (3, "trained")])
def test_lacking_rung_holds_the_rest_back(missing, reached):
    records = CLIMB[:missing] + CLIMB[missing + 1 :]
    assert level(*records) == reached  # without the first smoke the one of two cards still smokes the cell


def test_training_without_any_smoke_is_proven_only():
    assert level(CLIMB[0], CLIMB[1], CLIMB[4]) == "proven"


def test_training_on_one_card_lists_two_as_not_shown():
    (cell_status,) = cell_statuses(CELL, [*CLIMB[:3], CLIMB[4]], rendered=True)
    assert (cell_status.level, cell_status.missing) == ("trained", ("two-gpu",))


SET_ASIDE = [
    {"marks": ("stand-in",)},
    {"marks": ("simulated",)},
    {"marks": ("synthetic",)},
    {"marks": ("other-base",)},
    {"marks": ("card-errors",)},
    {"marks": ("nvidia",), "hardware": Hardware(device="cuda", cards=("NVIDIA H200",), seen=("sm_90",))},
    {"hardware": Hardware(device="cuda", cards=("NVIDIA H200",), seen=("sm_90",))},
    {"hardware": Hardware(device="cpu")},
    {"hardware": rocm("gfx1030")},
    {"hardware": Hardware(device="none", cards=(CARD,), gfx=("gfx1100",), seen=("gfx1100",))},  # of several kinds
    {"hardware": Hardware(device="rocm", cards=(CARD,), gfx=("gfx1031",), seen=("gfx1100",))},  # an override
    {"hardware": Hardware(device="rocm", cards=(CARD,), gfx=("gfx1100", "gfx1030"), seen=("gfx1030", "gfx1100"))},
    {"where": "native", "image": None, "inputs": None},
    {"where": "native"},
]


@pytest.mark.parametrize("change", SET_ASIDE, ids=str)
def test_record_set_aside_never_raises_an_amd_cell(change):
    before = CLIMB[:2]
    found = cell_statuses(CELL, [*before, smoke(2, **change), record("train", 3, **change)], rendered=True)
    assert {s.level for s in found} == {"proven"}
    assert [s.set_aside for s in found] == [2]
    assert why_not(smoke(2, **change), CELL)


@given(st.lists(st.sampled_from(SET_ASIDE), max_size=4), st.integers(0, 5), st.randoms())
def test_set_aside_records_change_no_level_wherever_they_stand(changes, count, order):
    records = [*CLIMB[:count], *(smoke(hour / 7, two="pass", **change) for hour, change in enumerate(changes))]
    order.shuffle(records)
    assert level(*records) == level(*CLIMB[:count])


def test_newer_failure_takes_its_rung_away_and_is_named():
    (cell_status,) = cell_statuses(CELL, [*CLIMB, smoke(9, status="fail")], rendered=True)
    assert (cell_status.level, cell_status.failing) == ("proven", ("smoke",))
    assert level(*CLIMB, smoke(9, status="fail"), smoke(10)) == "trained"


def test_training_that_failed_takes_its_rung_away_until_one_passes():
    (cell_status,) = cell_statuses(CELL, [*CLIMB, record("train", 9, passed=False)], rendered=True)
    assert (cell_status.level, cell_status.failing) == ("two-gpu", ("train",))
    assert level(*CLIMB, record("train", 9, passed=False), record("train", 10)) == "trained"


def test_failing_smoke_of_one_probe_counts_and_a_passing_one_does_not():
    assert level(*CLIMB[:3], smoke(9, status="timeout", whole=False)) == "proven"
    assert level(*CLIMB[:2], smoke(9, whole=False)) == "proven"


def test_image_of_other_inputs_begins_anew():
    assert level(*CLIMB, record("build", 9, inputs=OTHER_INPUTS)) == "built"
    assert level(*CLIMB[:2], smoke(2, inputs=OTHER_INPUTS)) == "proven"


def test_cards_each_have_their_own_level():
    other = "SIMULATED Radeon RX 7900 XTX"
    found = cell_statuses(CELL, [*CLIMB[:3], smoke(4, status="crash", hardware=rocm(name=other))], rendered=True)
    assert {s.card: (s.level, s.failing) for s in found} == {CARD: ("smoked", ()), other: ("proven", ("smoke",))}


def test_two_cards_count_only_where_two_are():
    assert level(*CLIMB[:2], smoke(3, two="pass")) == "smoked"
    assert level(*CLIMB[:2], smoke(3, two="fail", hardware=rocm(cards=2))) == "proven"


def test_cell_of_the_cpu_is_smoked_by_a_cpu_and_by_no_card():
    base = [record("build", cell=CPU.name), record("prove", 1, cell=CPU.name)]
    assert level(*base, smoke(2, cell=CPU.name, hardware=Hardware(device="cpu")), cell=CPU) == "smoked"
    assert level(*base, smoke(2, cell=CPU.name), cell=CPU) == "proven"


def test_card_of_the_cpu_is_the_cpu_and_of_an_amd_cell_its_name():
    base = [record("build", cell=CPU.name), record("prove", 1, cell=CPU.name)]
    (found,) = cell_statuses(CPU, [*base, smoke(2, cell=CPU.name, hardware=Hardware(device="cpu"))], rendered=True)
    assert (found.cell, found.card, found.inputs) == (CPU.name, "CPU", base[0].inputs)
    (found,) = cell_statuses(CELL, CLIMB[:3], rendered=True)
    assert (found.cell, found.card, found.inputs) == (CELL.name, CARD, CLIMB[0].inputs)
    (found,) = cell_statuses(CELL, CLIMB[:2], rendered=True)
    assert (found.card, found.level) == ("-", "proven")


def test_records_of_another_cell_and_benches_are_not_counted_as_set_aside():
    others = [record("build", cell="another"), record("bench", 5), smoke(6, cell="another", status="fail")]
    (found,) = cell_statuses(CELL, [*CLIMB, *others], rendered=True)
    assert (found.set_aside, found.troubles, found.level) == (0, 0, "trained")
    lost = smoke(7, trouble=Trouble(stage="disk", words="simulated"))
    (found,) = cell_statuses(CELL, [*CLIMB, lost, smoke(8, marks=("stand-in",))], rendered=True)
    assert (found.set_aside, found.troubles) == (1, 1)


@pytest.mark.parametrize(
    ("refused", "words"),
    [
        (record("bench"), "bench"),
        (record("build", inputs=None), "what the image was made of"),
        (record("prove", inputs=None), "what the image was made of"),
        (smoke(2, hardware=rocm("gfx1030")), "met gfx1030,"),
        (smoke(2, hardware=Hardware(device="rocm", cards=(CARD,))), "met no card,"),
        (smoke(2, hardware=Hardware(device="rocm", gfx=("b", "a"), seen=("c",))), "met a, b, c,"),
    ],
)
def test_record_that_is_no_evidence_states_why(refused, words):
    assert words in why_not(refused, CELL)


def test_level_that_nothing_was_run_for_has_no_time():
    (found,) = cell_statuses(CELL, [], rendered=True)
    assert (found.level, found.at, found.age_days(datetime(2026, 11, 3, tzinfo=UTC))) == ("rendered", None, None)


@pytest.mark.parametrize(
    ("records", "inputs", "current"),
    [((), "a" * 64, None), (CLIMB[:1], None, None), (CLIMB[:1], "a" * 64, True), (CLIMB[:1], OTHER_INPUTS, False)],
)
def test_image_is_compared_with_the_checkout_where_both_are_known(records, inputs, current):
    (found,) = cell_statuses(CELL, records, rendered=True, current_inputs=inputs)
    assert found.current is current


def test_age_and_currency():
    (cell_status,) = cell_statuses(CELL, CLIMB[:3], rendered=True, current_inputs=OTHER_INPUTS)
    assert cell_status.age_days(datetime(2026, 11, 3, 14, tzinfo=UTC)) == 2.0
    assert cell_status.current is False


SIMULATION = {"marks": ("stand-in", "simulated", "other-base")}


def test_simulated_records_have_a_status_of_their_own_and_give_the_cell_none():
    records = [record("build", 0, **SIMULATION), record("prove", 1, **SIMULATION), smoke(2, **SIMULATION)]
    (own,) = cell_statuses(CELL, records, rendered=True)
    assert (own.level, own.simulated, own.set_aside) == ("rendered", False, 3)
    (found,) = cell_statuses(CELL, records, rendered=True, simulated=True)
    assert (found.level, found.simulated, found.set_aside) == ("smoked", True, 0)


def test_real_records_raise_no_simulated_level():
    records = [record("build", 0, **SIMULATION), record("prove", 1), smoke(2)]
    assert cell_statuses(CELL, records[1:], rendered=True, simulated=True) == ()
    (found,) = cell_statuses(CELL, records, rendered=True, simulated=True)
    assert found.level == "built"


@pytest.mark.parametrize("mark", ["synthetic", "nvidia", "unlocked", "forced"])
def test_other_marks_set_aside_in_a_simulation_too(mark):
    records = [record("build", 0, **SIMULATION), record("prove", 1, **SIMULATION), smoke(2, marks=("simulated", mark))]
    (found,) = cell_statuses(CELL, records, rendered=True, simulated=True)
    assert (found.level, found.set_aside) == ("proven", 1)


def test_pass_in_an_image_that_no_build_or_proof_names_is_set_aside_and_a_failure_counts():
    other = {"image": "sha256:" + "d" * 64}
    before = [record("build", 0), record("prove", 1)]
    (found,) = cell_statuses(CELL, [*before, smoke(2, **other)], rendered=True)
    assert (found.level, found.set_aside) == ("proven", 1)
    (found,) = cell_statuses(CELL, [*before, smoke(2), smoke(3, status="fail", **other)], rendered=True)
    assert (found.level, found.failures) == ("proven", ("blas",))
    proven_elsewhere = [*before, record("prove", 2, **other), smoke(3, **other)]
    (found,) = cell_statuses(CELL, proven_elsewhere, rendered=True)
    assert found.level == "proven"  # the image of the smoke was never built, and the one that was was not smoked
    built = [*before, record("build", 2, **other), record("prove", 3, **other), smoke(4, **other)]
    (found,) = cell_statuses(CELL, built, rendered=True)
    assert (found.level, found.image, found.newest) == ("smoked", other["image"], True)


def test_level_stands_on_one_image_whatever_the_inputs():
    other = {"image": "sha256:" + "d" * 64}
    parts = [record("build"), record("prove", 1), record("build", 2, **other)]
    (found,) = cell_statuses(CELL, [*parts, smoke(3, **other)], rendered=True)
    assert (found.level, found.image, found.newest) == ("proven", IMAGE, False)
    (found,) = cell_statuses(CELL, [*parts, smoke(3)], rendered=True)
    assert (found.level, found.image, found.newest) == ("smoked", IMAGE, False)
    (found,) = cell_statuses(CELL, [*parts, smoke(3), smoke(4, status="fail", **other)], rendered=True)
    assert (found.level, found.failures) == ("proven", ("blas",))
    nameless = record("prove", 1, image=None)
    assert level(record("build"), nameless, smoke(2)) == "built"
    assert why_not(nameless, CELL) == "it names no image"


def test_suite_in_which_a_needed_probe_was_not_applicable_raises_nothing():
    for probe in required.ON_A_CARD:
        idle = smoke(2, probe=probe, status="not-applicable", passed=True)
        assert why_not(idle, CELL) == f"its suite has no pass of {probe}"
        assert level(*CLIMB[:2], idle) == "proven"
        assert trust.tested([record("prove", 1), idle], INPUTS, cell=CELL) is None
    alone = smoke(2, verdicts=(Verdict(probe="device", status="pass"),))
    assert level(*CLIMB[:2], alone) == "proven"
    assert why_not(smoke(2, probe="compile", status="not-applicable", passed=True), CELL) is None
    cpu = smoke(2, cell=CPU.name, probe="memory", status="not-applicable", passed=True, hardware=Hardware(device="cpu"))
    assert why_not(cpu, CPU) is None


def test_two_cards_are_shown_by_the_newest_run_that_held_a_verdict_on_them():
    def both(hours, cards):
        verdict = Verdict(probe="two_gpu_step", status="pass", cards=cards, present=("0", "1"))
        return smoke(hours, verdicts=(*ALL_PASS, verdict), hardware=rocm(cards=2))

    before = [record("build", 0), record("prove", 1), both(2, ("0", "1"))]
    assert cell_statuses(CELL, before, rendered=True)[0].level == "two-gpu"
    assert cell_statuses(CELL, [*before, both(3, ("0",))], rendered=True)[0].level == "smoked"
    assert cell_statuses(CELL, [*before, smoke(3)], rendered=True)[0].level == "two-gpu"  # it held none


def test_record_of_a_real_machine_is_no_part_of_a_simulated_status():
    assert why_not(record("build"), CELL, simulated=True) == "it was not simulated"
    assert why_not(record("build", **SIMULATION), CELL, simulated=True) is None
    assert why_not(record("build", **SIMULATION), CELL) == "marked stand-in, simulated, other-base"


FORGED = {
    "a proof without a check": (1, record("prove", 9, verdicts=()), "built"),
    "a proof that passed beside its failed check": (
        1, record("prove", 9, verdicts=(Verdict(probe="files", status="failed"),)), "built",
    ),
    "a smoke without a probe": (2, record("smoke", 9, verdicts=()), "proven"),
    "a smoke whose probes were all not applicable": (
        2, record("smoke", 9, verdicts=(Verdict(probe="blas", status="not-applicable"),)), "proven",
    ),
    "a smoke of another cell's image": (2, smoke(9, image="sha256:" + "d" * 64), "proven"),
    "a smoke copied from a cell of another torch": (2, smoke(9, versions={"torch": "2.12.1+rocm7.2"}), "proven"),
    "a training copied from a cell of another torch": (4, record("train", 9, versions={"torch": "2.12.1"}), "two-gpu"),
    "two cards named on a host of one": (
        3,
        record(
            "smoke", 9,
            verdicts=(*ALL_PASS, Verdict(probe="two_gpu_step", status="pass", cards=("0", "1"))),
        ),
        "smoked",
    ),
    "one card named twice": (
        3,
        record(
            "smoke", 9, hardware=rocm(cards=2),
            verdicts=(*ALL_PASS, Verdict(probe="two_gpu_step", status="pass", cards=("0", "0"))),
        ),
        "smoked",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", FORGED)
def test_forged_record_raises_no_level(kind):
    """Edited by someone who can compute the record's hash: what it states of itself does not bear it out."""
    count, forged, reached = FORGED[kind]
    assert level(*CLIMB[:count]) == reached
    assert level(*CLIMB[:count], forged) == reached


def test_second_pass_of_two_cards_keeps_the_level():
    again = [smoke(hours, two="pass", hardware=rocm(cards=2)) for hours in (5, 6)]
    (cell_status,) = cell_statuses(CELL, [*CLIMB[:4], *again], rendered=True)
    assert (cell_status.level, cell_status.at) == ("two-gpu", again[-1].at)


@pytest.mark.parametrize(
    ("kind", "passed", "known"),
    [("build", True, True), ("prove", True, True), ("smoke", True, False), ("build", False, False)],
)
def test_image_is_known_by_a_build_or_proof_that_passed(kind, passed, known):
    assert known_images([record(kind, passed=passed)], CELL) == (frozenset({(INPUTS, IMAGE)}) if known else frozenset())
    assert known_images([record(kind, cell="another")], CELL) == frozenset()


def test_simulated_image_is_known_to_the_simulated_status_alone():
    made = [record("build", **SIMULATION)]
    assert known_images(made, CELL) == frozenset()
    assert known_images(made, CELL, simulated=True) == {(INPUTS, IMAGE)}


@pytest.mark.parametrize(("marks", "current"), [(("simulated", "other-base"), None), (("simulated",), True)])
def test_image_on_another_base_is_not_compared_with_the_checkout(marks, current):
    records = [record("build", marks=marks)]
    (found,) = cell_statuses(CELL, records, rendered=True, current_inputs=INPUTS, simulated=True)
    assert found.current is current


def test_run_of_every_status_but_a_failure_holds():
    verdicts = [Verdict(probe=status, status=status) for status in ("pass", "passed", "not-applicable", "not checked")]
    assert held(record("smoke", verdicts=tuple(verdicts)))
    assert not held(record("smoke", verdicts=(*verdicts, Verdict(probe="x", status="fail"))))
    assert not held(record("smoke", verdicts=tuple(verdicts[2:])))


def test_smoke_of_an_image_that_has_no_id_raises_nothing():
    assert level(*(each.model_copy(update={"image": None}) for each in CLIMB)) == "rendered"


def test_proof_that_passed_needs_every_check_and_one_that_failed_counts_with_the_checks_it_had():
    assert why_not(record("prove", verdicts=PROVEN[:-1]), CELL) == f"its proof has no pass of {required.OF_A_PROOF[-1]}"
    failed = (*PROVEN[:1], Verdict(probe="files", status="failed"))
    assert why_not(record("prove", passed=False, verdicts=failed), CELL) is None
    assert level(CLIMB[0], record("prove", 1, passed=False, verdicts=failed)) == "built"


def test_build_that_failed_names_no_image():
    failed = record("build", 1, passed=False, image="sha256:" + "d" * 64)
    (found,) = cell_statuses(CELL, [CLIMB[0], failed], rendered=True)
    assert (found.image, found.newest, found.failing) == (IMAGE, True, ("build",))
    (found,) = cell_statuses(CELL, [failed], rendered=True)
    assert found.image is None
