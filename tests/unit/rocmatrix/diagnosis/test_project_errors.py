"""Every code of both programs is found in a log as it is printed, and explained in the words of its catalog."""

import re

import pytest

from rocmatrix.diagnosis import project_errors
from rocmatrix.runtime.errors import CATALOG

SIGNATURES = {signature.id: signature for signature in project_errors.signatures()}


def test_signatures_hold_each_code_of_both_programs():
    assert SIGNATURES.keys() == project_errors.entries().keys()
    assert CATALOG.keys() <= SIGNATURES.keys()
    assert {"RM508", "RM569", "RM700"} <= SIGNATURES.keys() - CATALOG.keys()  # the trainer's


@pytest.mark.parametrize("code", SIGNATURES)
def test_code_is_found_as_printed_and_wrapped_and_not_without_its_title(code):
    (pattern,) = SIGNATURES[code].match
    entry = project_errors.entries()[code]
    assert re.search(pattern, f"error: {code} {entry.title}: more")
    assert not re.search(pattern, f"X{code} {entry.title}")
    assert not re.search(pattern, f"{code} something else")


def test_explanation_is_that_of_the_catalog():
    entry, signature = CATALOG["RM404"], SIGNATURES["RM404"]
    assert (signature.cause, signature.remedy, signature.title) == (entry.meaning, entry.next, entry.title)


def test_code_that_reports_another_failure_is_no_cause_and_a_note_fails_nothing():
    assert {code: SIGNATURES[code].kind for code in ("RM499", "RM202", "RM620", "RM508")} == {
        "RM499": "aftermath", "RM202": "aftermath", "RM620": "note", "RM508": "symptom",
    }  # fmt: skip
