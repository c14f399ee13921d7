"""Probes that a suite needs are those of one card that no image can lack, as the trainer lists them."""

import json

from rocmatrix.evidence.counted import required
from rocmatrix.runtime.paths import TRAINER_PROBES
from rocmatrix.verify import proof
from tests.fixtures.evidence import PROVEN, record, smoke


def test_needed_probes_are_listed_and_cannot_be_absent():
    listed = {probe["probe"]: probe for probe in json.loads(TRAINER_PROBES.read_text(encoding="utf-8"))}
    for name in required.ON_A_CARD:
        assert (listed[name]["cards"], listed[name]["may_be_absent"]) == (1, False)


def test_suite_of_chosen_probes_is_not_judged():
    assert required.why_not(smoke(whole=False, verdicts=())) is None
    assert required.lacking(smoke(), ("blas", "x")) == ("x",)


def test_checks_of_a_proof_are_those_that_there_are_but_for_its_size():
    assert {*required.OF_A_PROOF} == proof.EVERY_CHECK - {*proof.MAY_BE_LEFT_OUT}


def test_proof_of_fewer_checks_or_of_one_that_did_not_look_shows_nothing():
    for verdicts in (PROVEN[1:], (*PROVEN[1:], PROVEN[0].model_copy(update={"status": "not checked"}))):
        assert required.why_not(record("prove", verdicts=verdicts)) == f"its proof has no pass of {PROVEN[0].probe}"
    assert required.why_not(record("prove")) is None
