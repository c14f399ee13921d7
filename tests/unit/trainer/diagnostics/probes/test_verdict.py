from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.diagnostics.probes import verdict
from trainer.diagnostics.probes.verdict import Check, Device, MalformedVerdictError, Number, Verdict, conclude, parse

PASSING = verdict.at_most("error", 1e-7, 1e-5, "ratio")
FAILING = verdict.at_most("error", 1e-3, 1e-5, "ratio", "tf32 was on")
SKIPPED = verdict.not_applicable("other back end", "torch 2.3 has none")

finite = st.floats(allow_nan=False, allow_infinity=False)
checks = st.builds(
    Check,
    name=st.text(),
    status=st.sampled_from(["pass", "fail", "not-applicable"]),
    measured=st.none() | finite | st.text(),
    limit=st.none() | finite | st.text(),
    unit=st.text(),
    detail=st.text(),
)
devices = st.builds(Device, kind=st.sampled_from(["cpu", "cuda", "rocm"]), name=st.text(), arch=st.text())


def test_pass_needs_one_passing_and_no_failing_check() -> None:
    assert conclude(probe="p", summary="ok", checks=[PASSING, SKIPPED]).status == "pass"
    assert conclude(probe="p", summary="ok", checks=[PASSING, FAILING]).status == "fail"
    assert conclude(probe="p", summary="ok", checks=[SKIPPED]).status == "fail"
    assert conclude(probe="p", summary="ok", checks=[]).status == "fail"


@pytest.mark.parametrize("unearned", [(), (SKIPPED,), (PASSING, FAILING)])
def test_unearned_pass_cannot_be_constructed(unearned: tuple[Check, ...]) -> None:
    with pytest.raises(MalformedVerdictError, match="do not bear it out"):
        Verdict(probe="p", status="pass", summary="", checks=unearned)


def test_summary_of_a_failure_names_check_and_detail() -> None:
    failed = conclude(probe="p", summary="all is well", checks=[PASSING, FAILING])
    assert failed.summary == "1 of 2 checks failed: error (tf32 was on)."
    assert "Nothing was checked" in conclude(probe="p", summary="all is well", checks=[SKIPPED]).summary


@pytest.mark.parametrize("build", [verdict.at_most, verdict.at_least])
def test_nan_passes_no_comparison(build: object) -> None:
    assert callable(build)
    assert build("x", math.nan, 1.0, "ratio").status == "fail"


def test_limits_are_inclusive_and_equality_is_exact() -> None:
    assert verdict.at_most("x", 1.0, 1.0, "s").status == "pass"
    assert verdict.at_least("x", 1.0, 1.0, "s").status == "pass"
    assert verdict.equal("x", 2048.0, 2048.0).status == "pass"
    assert verdict.equal("x", "float32", "float16").status == "fail"


@given(parts=st.lists(checks, max_size=4), device=st.none() | devices, value=finite)
def test_verdict_survives_its_json_line(parts: list[Check], device: Device | None, value: float) -> None:
    numbers = [Number(name="n", value=value, unit="s")]
    before = conclude(probe="p", summary="ok", checks=parts, numbers=numbers, device=device, versions={"torch": "2"})
    line = before.to_json()
    assert "\n" not in line
    assert parse(line) == before


def test_json_line_is_strict_json_even_with_nan() -> None:
    nan = conclude(probe="p", summary="ok", checks=[verdict.at_most("x", math.nan, math.inf, "ratio")])
    record = json.loads(nan.to_json(), parse_constant=pytest.fail)
    assert record["checks"][0]["measured"] is None
    assert record["event"] == "probe"


@pytest.mark.parametrize(
    "line",
    [
        "Segmentation fault",
        "[]",
        "{}",
        '{"event": "probe"}',
        '{"event": "smoke", "passed": 4}',
        '{"event": "probe", "probe": "p", "status": "pass", "checks": []}',
    ],
)
def test_anything_else_is_malformed(line: str) -> None:
    with pytest.raises(MalformedVerdictError):
        parse(line)


@pytest.mark.parametrize(
    "change",
    [
        {"status": "splendid"},
        {"checks": []},
        {"checks": [{"name": "x", "status": "perhaps"}]},
        {"extra": 1},
        {"device": {"kind": "cpu"}},
    ],
)
def test_tampered_verdict_is_malformed(change: dict[str, object]) -> None:
    record = json.loads(conclude(probe="p", summary="ok", checks=[PASSING]).to_json())
    with pytest.raises(MalformedVerdictError):
        parse(json.dumps(record | change))
