"""What every statement is made of: checked text, evidence, and which combinations a selector holds."""

import pytest
from pydantic import TypeAdapter, ValidationError

from rocmatrix.matrix import statement
from rocmatrix.matrix.statement import Date, Evidence, RangeText, Selector, VersionText, within


def refused(kind, text, words):
    with pytest.raises(ValidationError, match=words) as caught:
        TypeAdapter(kind).validate_python(text)
    (error,) = caught.value.errors()
    assert repr(text) in error["msg"]
    return error["type"]


@pytest.mark.parametrize("text", ["2.5", "2.5.1", "2.14.0.dev1", "7.14.0a1", "10"])
def test_version_is_taken_as_it_is(text):
    assert TypeAdapter(VersionText).validate_python(text) == text


@pytest.mark.parametrize("text", ["", "two", "2.x"])
def test_text_that_is_no_version_is_refused(text):
    assert refused(VersionText, text, "is not a version") == "version"


@pytest.mark.parametrize("text", [">=2,<3", "==2.5.1", "!=6.3"])
def test_range_is_taken_as_it_is(text):
    assert TypeAdapter(RangeText).validate_python(text) == text


@pytest.mark.parametrize("text", ["2.5", ">=", "a"])
def test_text_that_is_no_range_is_refused(text):
    assert refused(RangeText, text, "is not a version range") == "specifier"


@pytest.mark.parametrize("text", ["2026-11-21", "2000-01-01"])
def test_date_is_taken_as_it_is(text):
    assert TypeAdapter(Date).validate_python(text) == text


@pytest.mark.parametrize("text", ["1999-12-31", "20261121", "2026-13-01", "today", "2026-11-21T00", "2026-W47-1"])
def test_date_outside_this_century_is_refused(text):
    assert refused(Date, text, "is not a date such as 2026-11-21") == "date"


def test_schema_states_the_form_of_what_python_checks():
    assert statement._schema("^a$").json_schema == {"type": "string", "pattern": "^a$"}
    assert TypeAdapter(Date).json_schema() == {"type": "string", "pattern": r"^20\d{2}-\d{2}-\d{2}$"}


def test_unknown_key_is_refused_with_the_nearest_known_one():
    with pytest.raises(ValidationError, match="unknown key 'torhc'") as caught:
        Selector.model_validate({"torhc": ">=2"})
    (error,) = caught.value.errors()
    assert error["type"] == "unknown_key"
    assert "torch" in error["ctx"]["hint"]
    with pytest.raises(ValidationError, match="valid dictionary"):
        Selector.model_validate(["torch"])


def test_evidence_in_one_line():
    evidence = Evidence(sources=["a#1", "b"], confidence="reported", date="2026-11-21")
    assert evidence.summary == "reported 2026-11-21: a#1, b"


AXES = {"architecture": "gfx1100", "torch": "2.5.1", "rocm": "6.2"}


@pytest.mark.parametrize(
    ("selector", "change", "held"),
    [
        ({}, {}, True),
        ({}, {"rocm": None, "architecture": None}, True),
        ({}, {"package": "vllm"}, False),
        ({"package": "vllm"}, {}, False),
        ({"package": "vllm"}, {"package": "vllm"}, True),
        ({"architectures": ["gfx1100"]}, {}, True),
        ({"architectures": ["gfx1101"]}, {}, False),
        ({"architectures": []}, {}, False),
        ({"architectures": ["gfx1100"]}, {"architecture": None}, False),
        ({"torch": "<2.5"}, {}, False),
        ({"torch": "<2.6"}, {}, True),
        ({"rocm": ">6.2"}, {}, False),
        ({"rocm": ">=6.2"}, {}, True),
        ({"rocm": ">=6.2"}, {"rocm": None}, False),
        ({"torch": "<2.6", "rocm": ">6.2"}, {}, False),
        ({"torch": "<2.5", "rocm": ">=6.2"}, {}, False),
    ],
)
def test_selector_holds_what_every_axis_of_it_holds(selector, change, held):
    assert Selector(**selector).matches(**(AXES | change)) is held


@pytest.mark.parametrize(("version", "held"), [("2.5.1", True), ("2.6", False), ("2.6.0rc1", True), (None, False)])
def test_range_holds_versions_and_candidates_and_no_other_text(version, held):
    assert within(version, "<2.6.0") is (held and version != "2.6.0rc1")
    assert within(version, "<2.7") is (version is not None)
    assert within(version, None) is True
