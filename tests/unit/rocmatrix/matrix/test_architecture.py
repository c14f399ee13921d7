"""What is stated of an architecture: its override, its names, and rates for its peaks."""

import pytest
from pydantic import ValidationError

from rocmatrix.matrix.architecture import Architecture
from tests.fixtures.cells import MATRIX

BASE = MATRIX.architectures["gfx1100"].model_dump(exclude_unset=True)


def architecture(**changes):
    return Architecture.model_validate(BASE | changes)


def override(effect, torch=None):
    evidence = BASE["evidence"]
    when = {"torch": torch} if torch else {}
    return {"value": "10.3.0", "effect": effect, "when": when, "why": "it runs", "evidence": evidence}


def test_override_is_one_that_helps_with_the_release():
    found = architecture(overrides=[override("harms"), override("helps", "<2.5"), override("helps", ">=2.5")])
    assert found.override(torch="2.4.1", rocm="6.0") is found.overrides[1]
    assert found.override(torch="2.7.1", rocm="6.3") is found.overrides[2]
    assert architecture(overrides=[override("harms")]).override(torch="2.7.1", rocm="6.3") is None


def test_override_stands_in_for_the_architecture_of_its_number():
    assert architecture(overrides=[override("helps")]).overrides[0].stands_in == "gfx1030"


def test_names_are_those_of_cards_then_of_code_names():
    also = {"names": ["Navi 99"], "evidence": BASE["evidence"]}
    assert architecture(cards=["One"], also=also).names == ("One", "Navi 99")
    assert architecture(cards=["One"], also=None).names == ("One",)


def test_peaks_without_rates_are_refused():
    peaks = [{"cards": ["One"], "units": 96, "mhz": 2500}]
    assert architecture(peaks=peaks, per_clock={"fp32": 256}).peaks
    with pytest.raises(ValidationError, match="peaks need per_clock"):
        architecture(peaks=peaks, per_clock=None)
