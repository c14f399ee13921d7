"""No failure is slipped past: whatever came back, in whatever order, a level rises by a whole run that passed alone."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocmatrix.evidence import store
from rocmatrix.evidence.compare import compare
from rocmatrix.evidence.level import LEVELS, cell_statuses, why_not
from rocmatrix.evidence.record import Hardware, Record, Trouble, Verdict
from tests.fixtures.evidence import ALL_PASS, CARD, record, rocm, smoke
from tests.left_out import examples
from tests.unit.rocmatrix.evidence.test_level import CELL, CLIMB, level

PROBES = ("device", "blas", "two_gpu_step")
NOTHING = Hardware(device="none")
MIXED = Hardware(device="none", cards=("EPYC", CARD), seen=("x86_64",))
TROUBLE = Trouble(stage="engine", words="simulated")
RUNG = {name: place for place, name in enumerate(LEVELS)}


def suite(hours, outcomes, *, whole=True, **fields):
    verdicts = tuple(Verdict(probe=probe, status=status) for probe, status in outcomes.items())
    statuses = {v.status for v in verdicts}
    if "pass" in statuses:  # the others ran, too
        verdicts += tuple(verdict for verdict in ALL_PASS if verdict.probe not in outcomes)
    passed = "pass" in statuses and statuses <= {"pass", "not-applicable"}  # as evidence.from_events has it
    values = {"passed": passed, "verdicts": verdicts, "whole": whole, "hardware": rocm(cards=2)} | fields
    return record("smoke", hours, **values)


def cell_status(*records):
    found = cell_statuses(CELL, records, rendered=True)
    return next(s for s in found if s.card in (CARD, "-"))


FAILED_WHOLLY = {
    "no device": suite(9, dict.fromkeys(PROBES, "no-device"), hardware=NOTHING),
    "crashes": suite(9, dict.fromkeys(PROBES, "crash"), hardware=NOTHING),
    "time-outs": suite(9, dict.fromkeys(PROBES, "timeout"), hardware=NOTHING),
    "no verdict": suite(9, dict.fromkeys(PROBES, "no verdict"), hardware=NOTHING),
    "nothing at all": suite(9, {}, hardware=NOTHING),
    "on the processor": suite(9, dict.fromkeys(PROBES, "fail"), hardware=Hardware(device="cpu")),
    "of two kinds": suite(9, {"blas": "fail"}, hardware=MIXED),
    "no kernel list": suite(9, {"blas": "fail"}, hardware=Hardware(device="rocm", cards=(CARD,))),
    "its end alone": suite(9, dict.fromkeys(PROBES, "pass"), passed=False),
    "chosen probes": suite(9, {"blas": "no verdict"}, whole=False, hardware=NOTHING),
    "errors that the card counted": suite(9, {"blas": "fail"}, marks=("card-errors",)),
    "synthetic data": suite(9, {"blas": "fail"}, marks=("synthetic",)),
}


@pytest.mark.parametrize("failure", FAILED_WHOLLY.values(), ids=FAILED_WHOLLY)
def test_smoke_that_came_to_nothing_counts_against_the_cell(failure):
    found = cell_status(*CLIMB, failure)
    assert (found.level, found.failing, found.set_aside) == ("proven", ("smoke",), 0)
    assert cell_status(*CLIMB, failure, smoke(10, whole=False)).level == "proven"
    again = suite(11, dict.fromkeys(PROBES, "pass"))
    assert cell_status(*CLIMB, failure, again).level == "trained"


@pytest.mark.parametrize("failure", FAILED_WHOLLY.values(), ids=FAILED_WHOLLY)
def test_first_smoke_that_came_to_nothing_is_shown(failure):
    (found,) = cell_statuses(CELL, [*CLIMB[:2], failure], rendered=True)
    assert (found.level, found.failing) == ("proven", ("smoke",))


@pytest.mark.parametrize("failure", [f for name, f in FAILED_WHOLLY.items() if name != "chosen probes"])
def test_comparison_sees_what_came_to_nothing(failure):
    before = suite(1, dict.fromkeys(PROBES, "pass"))
    assert any(change.failure for change in compare(CELL.name, [before], [failure]))
    assert compare(CELL.name, [before], [failure.model_copy(update={"trouble": TROUBLE})]) == []


def test_probe_that_passes_by_itself_answers_no_failure():
    climbed, failed = [*CLIMB], suite(9, {"device": "pass", "blas": "fail", "two_gpu_step": "pass"})
    for probe in PROBES:
        found = cell_status(*climbed, failed, suite(10, {probe: "pass"}, whole=False))
        assert (found.level, found.failures) == ("proven", ("blas",))


def test_suite_that_left_a_probe_out_or_contradicts_itself_answers_no_failure():
    failed = suite(9, {"device": "pass", "blas": "fail"})
    for status in ("not-applicable", "not checked"):
        assert cell_status(*CLIMB, failed, suite(10, {"device": "pass", "blas": status}, passed=True)).failures == (
            "blas",
        )
    both = tuple(Verdict(probe="blas", status=status) for status in ("pass", "fail"))
    assert cell_status(*CLIMB, failed, smoke(10, verdicts=both, passed=True)).failures == ("blas",)
    ended = suite(9, {"blas": "pass"}, passed=False)
    assert cell_status(*CLIMB, ended).failures == ("the suite",)
    assert cell_status(*CLIMB, ended, suite(10, {"conv": "fail"}, passed=True)).failures == ("the suite", "conv")


def test_suite_on_two_cards_whose_pair_was_not_tried_is_no_level_of_two():
    alone = suite(3, {"device": "pass", "two_gpu_step": "not-applicable"})
    assert (alone.passed, cell_status(*CLIMB[:2], alone).level) == (True, "smoked")


def test_whole_suite_on_one_card_answers_no_failure_of_two():
    found = cell_status(*CLIMB, suite(9, dict.fromkeys(PROBES, "pass") | {"two_gpu_step": "fail"}), smoke(10))
    assert (found.level, found.failures) == ("proven", ("two_gpu_step",))


def test_failure_without_a_card_counts_on_every_card():
    other = rocm(name="SIMULATED Radeon RX 7900 XTX")
    both = [*CLIMB[:3], smoke(4, hardware=other)]
    assert {s.level for s in cell_statuses(CELL, both, rendered=True)} == {"smoked"}
    found = cell_statuses(CELL, [*both, FAILED_WHOLLY["no device"]], rendered=True)
    assert [s.level for s in found] == ["proven"] * 2
    found = cell_statuses(
        CELL, [*both, FAILED_WHOLLY["no device"], smoke(12, hardware=other), smoke(13)], rendered=True
    )
    assert {s.card: s.failures for s in found} == dict.fromkeys((CARD, other.cards[0]), ("two_gpu_step",))


@pytest.mark.parametrize("kind", ["build", "prove", "smoke", "train"])
@pytest.mark.parametrize("stage", ["engine", "registry", "disk", "signal"])
def test_trouble_of_the_host_is_counted_and_changes_nothing(kind, stage):
    trouble = Trouble(stage=stage, words="simulated")
    hardware = NOTHING if kind == "smoke" else record(kind).hardware
    lost = record(kind, 9, passed=False, trouble=trouble, hardware=hardware)
    assert stage in why_not(lost, CELL)
    for count in range(6):
        before, after = cell_status(*CLIMB[:count]), cell_status(*CLIMB[:count], lost)
        assert (after.level, after.at, after.failing, after.troubles) == (before.level, before.at, before.failing, 1)


def test_cards_that_took_part_are_named_and_those_that_did_not():
    def paired(hours, cards, present="abc", **more):
        two = Verdict(probe="two_gpu_step", status="pass", cards=tuple(cards), present=tuple(present))
        return record("smoke", hours, verdicts=(*ALL_PASS, two), hardware=rocm(cards=3), **more)

    found = cell_status(*CLIMB[:2], paired(3, "ab"))
    assert (found.level, found.took_part, found.left_out) == ("two-gpu", ("a", "b"), ("c",))
    assert cell_status(*CLIMB[:2], paired(3, "ab"), paired(4, "bc")).left_out == ()
    for none in ("", "a", "aa"):
        assert cell_status(*CLIMB[:2], paired(3, none)).level == "smoked"
    assert cell_status(*CLIMB[:3], paired(3, "ab", whole=False)).level == "smoked"
    failed = cell_status(*CLIMB[:2], paired(3, "ab"), smoke(4, status="fail"))
    assert (failed.level, failed.took_part, failed.left_out) == ("proven", (), ())


def test_cards_of_another_probe_took_no_part_in_the_step_of_two():
    two = Verdict(probe="two_gpu_step", status="pass", cards=("a", "b"), present=("a", "b"))
    other = Verdict(probe="transfer", status="pass", cards=("c",), present=("c", "d"))
    lost = Verdict(probe="two_gpu_step", status="not-applicable", cards=("e",), present=("f",))
    found = cell_status(*CLIMB[:2], record("smoke", 3, verdicts=(*ALL_PASS, two, other, lost), hardware=rocm(cards=2)))
    assert (found.level, found.took_part, found.left_out) == ("two-gpu", ("a", "b"), ())


STATUSES = st.sampled_from(["pass", "fail", "crash", "no verdict", "not-applicable"])
RUNS = st.builds(
    lambda outcomes, whole, card, trouble: suite(
        0,
        outcomes,
        whole=whole,
        hardware=rocm(cards=2) if card else NOTHING,
        **({"trouble": TROUBLE, "passed": False} if trouble else {}),
    ),
    st.dictionaries(st.sampled_from(PROBES), STATUSES),
    st.booleans(),
    st.booleans(),
    st.sampled_from([False, False, True]),
)


def numbered(runs: list[Record], clock: list[int]) -> list[Record]:
    """Return runs as one evidence file holds them, under a clock that may be set back."""
    climb = [r.model_copy(update={"series": "s", "number": n}) for n, r in enumerate(CLIMB[:2], 1)]
    made = []
    for number, run in enumerate(runs, 3):
        at = smoke(clock[number % len(clock)]).at
        made.append(run.model_copy(update={"at": at, "series": "s", "number": number}))
    return [*climb, *made]


def looked(run: Record) -> bool:
    return {"device", "blas"} <= {v.probe for v in run.verdicts if v.status == "pass"}


def expected(runs: list[Record]) -> bool:
    """Return, written apart from the code, whether each probe last passed, in a whole run after its failure."""
    counted = [r for r in runs if r.trouble is None and not (r.passed and r.whole and not looked(r))]
    if not any(r.passed and r.whole and r.hardware.device == "rocm" for r in counted):
        return False
    for place, run in enumerate(counted):
        failed = {v.probe for v in run.verdicts if v.status not in ("pass", "not-applicable")}
        later = [r for r in counted[place + 1 :] if r.whole and (not r.passed or r.hardware.device == "rocm")]
        for probe in failed:
            if not any(v.probe == probe and v.status == "pass" for r in later for v in r.verdicts):
                return False
        if not run.passed and not failed and not any(r.passed for r in later):
            return False
    return True


@settings(max_examples=examples(400), deadline=None)
@given(st.lists(RUNS, max_size=7), st.lists(st.integers(0, 50), min_size=1, max_size=7), st.randoms())
def test_level_is_what_whole_runs_bear_out_in_the_order_of_their_numbers(runs, clock, shuffled):
    records = numbered(runs, clock)
    shuffled.shuffle(records)
    assert (RUNG[cell_status(*records).level] >= RUNG["smoked"]) == expected(runs)


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(RUNS, max_size=6), RUNS, st.lists(st.integers(0, 50), min_size=1, max_size=7))
def test_additional_run_raises_only_if_whole_and_passed_and_lowers_where_it_failed(runs, last, clock):
    before, after = cell_status(*numbered(runs, clock)), cell_status(*numbered([*runs, last], clock))
    if last.trouble is not None:
        assert (after.level, after.failing, after.failures) == (before.level, before.failing, before.failures)
    elif not last.passed:
        failed = any(v.status not in ("pass", "not-applicable") for v in last.verdicts)
        assert RUNG[after.level] <= RUNG[before.level] or last.whole
        assert after.level == "proven"
        assert after.failing == ("smoke",)
        assert failed or "the suite" in after.failures
    elif not last.whole:
        assert RUNG[after.level] <= RUNG[before.level]


def test_clock_set_back_hides_no_failure(tmp_path):
    path = tmp_path / "evidence.db"
    for made in (*CLIMB[:3], smoke(-99, status="fail")):
        store.add(path, [made])
    assert cell_status(*store.read(path)).level == "proven"
    store.add(path, [smoke(-98)])
    assert cell_status(*store.read(path)).level == "smoked"


def test_imported_records_keep_their_order_and_sort_by_time_among_others(tmp_path):
    theirs, ours = tmp_path / "theirs.db", tmp_path / "ours.db"
    for made in (smoke(5), smoke(2, status="fail")):  # their clock was set back
        store.add(theirs, [made])
    for made in CLIMB[:3]:
        store.add(ours, [made])
    store.add(ours, store.read(theirs), origin="theirs.json")
    assert cell_status(*store.read(ours)).level == "proven"
    store.add(ours, [smoke(6)])
    assert cell_status(*store.read(ours)).level == "smoked"
    store.add(ours, store.read(theirs), origin="again.json")
    assert cell_status(*store.read(ours)).level == "smoked"


def test_records_of_before_keep_their_names():
    old = smoke(1)
    assert "trouble" not in old.content()
    assert "cards" not in old.content()["verdicts"][0]
    assert old.id == Record.model_validate_json(Record.model_dump_json(old)).id


def test_other_cells_and_inputs_stay_out():
    assert level(*CLIMB, FAILED_WHOLLY["no device"].model_copy(update={"cell": "another"})) == "trained"
    assert level(*CLIMB, FAILED_WHOLLY["no device"].model_copy(update={"marks": ("other-base",)})) == "trained"


def test_pass_that_names_no_card_shows_nothing_of_a_card_that_is_known():
    nameless = smoke(3, hardware=Hardware(device="rocm", gfx=("gfx1100",), seen=("gfx1100",)))
    failed = smoke(2, status="fail")
    (found,) = cell_statuses(CELL, [record("build"), record("prove", 1), failed, nameless], rendered=True)
    assert (found.card, found.level) == (CARD, "proven")
    (found,) = cell_statuses(CELL, [record("build"), record("prove", 1), nameless], rendered=True)
    assert (found.card, found.level) == ("-", "smoked")


def test_graphics_of_the_processor_are_no_second_card():
    pair = Verdict(probe="two_gpu_step", status="pass", cards=("03:00.0", "7a:00.0"))
    suite = record("smoke", 2, verdicts=(*ALL_PASS, pair), hardware=rocm(cards=1))
    with_graphics = suite.hardware.model_copy(update={"gfx": ("gfx1100", "gfx1036")})
    for hardware in (suite.hardware, with_graphics):
        records = [record("build"), record("prove", 1), suite.model_copy(update={"hardware": hardware})]
        assert cell_statuses(CELL, records, rendered=True)[0].level == "smoked"
