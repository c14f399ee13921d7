"""A symptom's causes come in the order of their support by log, host and versions."""

from types import SimpleNamespace

from rocmatrix.diagnosis import answer, diagnosis
from rocmatrix.diagnosis.machine.card_support import CardSupport
from rocmatrix.diagnosis.matcher import leaning
from rocmatrix.diagnosis.possible_causes import ordered
from rocmatrix.diagnosis.ranking import HostContext
from rocmatrix.diagnosis.search.match import Match
from rocmatrix.diagnosis.signature import Possibility
from rocmatrix.matrix.loading import load as matrix_file
from rocmatrix.matrix.statement import Selector
from rocmatrix.runtime.paths import ROOT
from tests.unit.rocmatrix.diagnosis.known import SIGNATURES

NO_CARD = "RuntimeError: No HIP GPUs are available\n"


def found(log, here=None, failed=()):
    return diagnosis.diagnose(
        [log.encode()], name="a test", signatures=SIGNATURES, here=here or HostContext(), failed_checks=failed
    )


def first(log, **more):
    ranked = found(log, **more)
    return diagnosis.possibilities(ranked, ranked.best)[0]


def test_symptom_alone_does_not_decide_among_its_causes():
    ranked = found(NO_CARD)
    assert ranked.best.signature.id == "no-hip-gpus-available"
    assert not any(row.decided for row in diagnosis.possibilities(ranked, ranked.best))
    assert "likely:" not in "\n".join(answer.text_lines(ranked))


def test_sign_in_the_log_brings_its_cause_first_with_its_line():
    row = first("CUDA_VISIBLE_DEVICES=7\n" + NO_CARD)
    assert "variable hides every card" in row.says
    assert (row.decided, row.why) == (True, "line 1 shows it.")


def test_failed_check_of_the_host_brings_its_cause_first():
    row = first(NO_CARD, failed={"D110"})
    assert "device nodes may not be opened" in row.says
    assert row.why == "doctor's check D110 fails on this host."


def test_cause_known_on_another_card_comes_last():
    fault = "Memory access fault by GPU node-1 on address 0x7f00. Reason: Page not present or supervisor privilege.\n"
    assert "Firmware of the card" in first(fault, here=HostContext(architecture="gfx1151")).says
    rows = diagnosis.possibilities(ranked := found(fault, HostContext(architecture="gfx90a")), ranked.best)
    assert "Firmware of the card" in rows[-1].says


def test_root_cause_leads_though_it_only_degrades():
    bar = "pci 0000:25:00.0: BAR 7: no space for [mem size 0x00100000 64bit]\n"
    probe = "amdgpu: probe of 0000:09:00.0 failed with error -12\n"
    assert [match.signature.id for match in found(probe + bar).ranked.failures] == [
        "pci-bar-assign-failed",
        "amdgpu-no-address-space",
    ]
    alone = found(bar).ranked
    assert alone.failures == ()
    assert [match.signature.id for match in alone.remarks] == ["pci-bar-assign-failed"]


def test_errno_divides_matches_of_one_line():
    assert found("amdgpu: probe of 0000:09:00.0 failed with error -12\n").best.signature.id == "amdgpu-no-address-space"
    assert found("amdgpu: probe of 0000:09:00.0 failed with error -22\n").best.signature.id == "amdgpu-probe-invalid"


def test_causes_and_tests_are_in_the_data_for_programs():
    ranked = answer.described(found(NO_CARD))["failures"][0]
    assert len(ranked["causes"]) > 3
    assert all(row["says"] and row["test"] for row in ranked["causes"])


SYMPTOM = next(each for each in SIGNATURES if each.id == "no-hip-gpus-available")
CAUSES = [
    Possibility(says="usual", test="t", host=["D1", "D2"]),
    Possibility(says="of another card", test="t", when=Selector(architectures=["gfx906"])),
    Possibility(says="of this card", test="t", when=Selector(architectures=["gfx1100"])),
    Possibility(says="rare", test="t", host=["D3"]),
]
HERE = HostContext(architecture="gfx1100")


def matched(rows, context=""):
    symptom = SYMPTOM.model_copy(update={"causes": rows, "values": r"No (?P<maker>\w+) GPUs"})
    return Match(signature=symptom, line=1, text="x", weight=1, context=context, packages={"raised": "torch"})


def causes(**shown):
    return ordered(matched(CAUSES), HERE, **{"signs": {}} | shown)


def test_causes_without_support_follow_their_fit_and_then_their_place_in_the_list():
    rows = causes()
    assert [row.says for row in rows] == ["of this card", "usual", "rare", "of another card"]
    assert not any(row.decided or row.why for row in rows)


def test_shown_cause_comes_before_one_that_only_fits():
    rows = causes(failed=["D3"])
    assert (rows[0].says, rows[0].decided, rows[0].why) == ("rare", True, "doctor's check D3 fails on this host.")
    assert [row.decided for row in rows[1:]] == [False] * 3


def test_sign_of_the_log_is_the_reason_before_a_failed_check():
    sign = Match(signature=SYMPTOM, line=7, text="x", weight=1, log="a.log")
    (row, *_) = causes(signs={(SYMPTOM.id, 0): sign}, failed=["D2", "D1"])
    assert (row.says, row.why) == ("usual", "a.log line 7 shows it.")
    assert causes(failed=["D2", "D1"])[0].why == "doctor's check D1 fails on this host."  # the first that it lists


def test_sign_of_another_symptom_or_check_decides_nothing():
    sign = Match(signature=SYMPTOM, line=7, text="x", weight=1)
    assert not any(row.decided for row in causes(signs={("other", 0): sign}, failed=["D9"]))


def test_hint_brings_a_cause_forward_and_decides_nothing():
    hint = Match(signature=SYMPTOM, line=7, text="x", weight=1)
    rows = causes(signs={(SYMPTOM.id, leaning(3)): hint})
    assert [row.says for row in rows] == ["rare", "of this card", "usual", "of another card"]
    assert not any(row.decided or row.why for row in rows)


def test_cause_that_is_shown_comes_before_one_that_is_hinted_at():
    hint = Match(signature=SYMPTOM, line=7, text="x", weight=1)
    rows = causes(signs={(SYMPTOM.id, leaning(3)): hint}, failed=["D1"])
    assert [row.says for row in rows[:2]] == ["usual", "rare"]


def test_values_of_the_line_and_packages_of_the_traceback_stand_in_causes_and_tests():
    row = Possibility(says="{maker|a maker}'s card, asked by {raised|a library}", test="look at {raised|it}")
    (cause,) = ordered(matched([row], "No HIP GPUs are available"), HERE, signs={})
    assert (cause.says, cause.test) == ("HIP's card, asked by torch", "look at torch")


def test_hint_of_a_log_orders_the_causes_of_a_real_signature():
    log = "ERROR: No matching distribution found for {}\n"
    assert "Only that index is asked" in first(log.format("setuptools>=70.2.0")).says
    assert "no wheel of bitsandbytes for this Python" in first(log.format("bitsandbytes==9")).says


def test_check_that_warns_of_the_host_makes_its_cause_more_likely_and_decides_nothing():
    warned = HostContext(warned=frozenset({"D205"}))
    row = first("RuntimeError: HIP error: invalid device function\n", here=warned)
    assert "integrated GPU" in row.says
    assert (row.decided, row.why) == (False, "doctor's check D205 warns of this host.")


def test_unsupported_card_comes_last_where_the_list_holds_it_and_the_log_has_no_hint_of_it():
    rows = [Possibility(says="unsupported", test="t", unlisted=True), Possibility(says="other", test="t")]

    def order(listed, signs=None):
        card = None if listed is None else CardSupport(is_listed=listed, why="the list")
        return [row.says for row in ordered(matched(rows), HostContext(), signs=signs or {}, card=card)]

    assert order(True) == ["other", "unsupported"]
    hint = {(SYMPTOM.id, leaning(0)): Match(signature=SYMPTOM, line=7, text="x", weight=1)}
    assert order(None) == order(False) == order(True, hint) == ["unsupported", "other"]


def test_cause_that_the_host_makes_likely_comes_before_one_that_the_log_hints_at():
    rows = [Possibility(says="hinted", test="t"), Possibility(says="warned", test="t", host=["D9"])]
    hint = {(SYMPTOM.id, leaning(0)): Match(signature=SYMPTOM, line=7, text="x", weight=1)}
    found_rows = ordered(matched(rows), HostContext(warned=frozenset({"D9"})), signs=hint)
    assert [row.says for row in found_rows] == ["warned", "hinted"]


OPENCL = "ERROR: clGetDeviceIDs(-1)\n"


def test_card_that_the_list_of_the_logs_release_lacks_brings_that_cause_first():
    ranked = diagnosis.diagnose(
        [b"Name: amdgcn-amd-amdhsa--gfx1103\n/opt/rocm-5.7.0/lib\n" + OPENCL.encode()],
        name="a test", signatures=SIGNATURES, here=HostContext(), matrix=matrix_file.load(ROOT),
    )  # fmt: skip
    row = diagnosis.possibilities(ranked, ranked.best)[0]
    assert "does not support this card" in row.says
    assert (row.decided, row.why) == (False, "AMD's list for ROCm 5.7 holds no card of gfx1103.")


def test_card_on_the_list_puts_the_unsupported_card_last():
    ranked = diagnosis.diagnose(
        [b"Name: amdgcn-amd-amdhsa--gfx1100\n/opt/rocm-6.2.0/lib\n" + OPENCL.encode()],
        name="a test", signatures=SIGNATURES, here=HostContext(), matrix=matrix_file.load(ROOT),
    )  # fmt: skip
    assert "does not support this card" in diagnosis.possibilities(ranked, ranked.best)[-1].says


def test_two_values_that_prove_a_cause_bring_it_first_and_those_that_do_not_make_it_likely():
    rows = [
        Possibility(says="usual", test="t"),
        Possibility(says="by values", test="t", compared=["other", "rule"]),
    ]
    rule = SimpleNamespace(is_certain=True, why="6.8 is not 6.9 (line 3).")
    (proven, usual) = ordered(matched(rows), HERE, signs={}, compared={"rule": rule})
    assert (proven.says, proven.decided, proven.why) == ("by values", True, "6.8 is not 6.9 (line 3).")
    assert not usual.decided
    rule.is_certain = False
    (likely, _) = ordered(matched(rows), HERE, signs={}, compared={"rule": rule})
    assert (likely.says, likely.decided, likely.why) == ("by values", False, "6.8 is not 6.9 (line 3).")
    (first, second) = ordered(matched(rows), HERE, signs={}, compared={"third": rule})
    assert (first.says, first.why, second.why) == ("usual", None, None)


def test_rule_that_proves_is_the_reason_before_one_that_only_hints():
    rows = [Possibility(says="by values", test="t", compared=["hints", "proves"])]
    hints, proves = (SimpleNamespace(is_certain=each, why=str(each)) for each in (False, True))
    (row,) = ordered(matched(rows), HERE, signs={}, compared={"hints": hints, "proves": proves})
    assert (row.decided, row.why) == (True, "True")
