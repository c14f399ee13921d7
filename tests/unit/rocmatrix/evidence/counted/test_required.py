"""Probes that a suite needs are those of one card that no image can lack, as the trainer lists them."""

import json

from rocmatrix.evidence.counted import required
from rocmatrix.runtime.paths import TRAINER_PROBES
from tests.fixtures.evidence import smoke


def test_needed_probes_are_listed_and_cannot_be_absent():
    listed = {probe["probe"]: probe for probe in json.loads(TRAINER_PROBES.read_text(encoding="utf-8"))}
    for name in required.ON_A_CARD:
        assert (listed[name]["cards"], listed[name]["may_be_absent"]) == (1, False)


def test_suite_of_chosen_probes_is_not_judged():
    assert required.why_not(smoke(whole=False, verdicts=())) is None
    assert required.lacking(smoke(), ("blas", "x")) == ("x",)
