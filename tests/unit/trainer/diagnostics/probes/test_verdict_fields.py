"""Every field of a verdict, what it is read from, and each refusal in its words."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from trainer.diagnostics.probes import verdict
from trainer.diagnostics.probes.verdict import Check, Device, MalformedVerdictError, Number, Verdict, conclude, parse

CARD = Device(kind="rocm", name="SIMULATED", arch="gfx1100")
PASSED, FAILED = Check(name="a", status="pass"), Check(name="b", status="fail")
SKIPPED = Check(name="c", status="not-applicable")


def test_check_holds_what_was_measured_its_limit_and_its_detail() -> None:
    made = [
        verdict.at_most("x", 1.0, 2.0, "s"),
        verdict.at_most("x", 3.0, 2.0, "s", "why"),
        verdict.at_least("x", 3.0, 2.0, "s"),
        verdict.at_least("x", 1.0, 2.0, "s", "why"),
        verdict.equal("x", 2.0, 2.0),
        verdict.equal("x", "a", "b", "s", "why"),
        verdict.not_applicable("x", "why"),
    ]
    assert made == [
        Check(name="x", status="pass", measured=1.0, limit=2.0, unit="s"),
        Check(name="x", status="fail", measured=3.0, limit=2.0, unit="s", detail="why"),
        Check(name="x", status="pass", measured=3.0, limit=2.0, unit="s"),
        Check(name="x", status="fail", measured=1.0, limit=2.0, unit="s", detail="why"),
        Check(name="x", status="pass", measured=2.0, limit=2.0),
        Check(name="x", status="fail", measured="a", limit="b", unit="s", detail="why"),
        Check(name="x", status="not-applicable", detail="why"),
    ]


@pytest.mark.parametrize(("kind", "torch_type"), [("cpu", "cpu"), ("cuda", "cuda"), ("rocm", "cuda")])
def test_torch_calls_every_card_cuda(kind: Any, torch_type: str) -> None:
    assert Device(kind=kind, name="n", arch="a").torch_type == torch_type


def test_verdict_that_checks_earn_holds_all_that_was_given() -> None:
    numbers = [Number(name="x", value=1.0, unit="s")]
    made = conclude(
        probe="p", summary="well", checks=[PASSED, SKIPPED], numbers=numbers, device=CARD, versions={"t": "2"}
    )
    assert made == Verdict(
        probe="p", status="pass", summary="well", checks=(PASSED, SKIPPED), numbers=tuple(numbers), device=CARD,
        versions={"t": "2"},
    )  # fmt: skip
    assert conclude(probe="p", summary="well", checks=[PASSED]) == Verdict(
        probe="p", status="pass", summary="well", checks=(PASSED,)
    )
    failed = conclude(probe="p", summary="well", checks=[FAILED], versions={})
    assert (failed.status, failed.summary, failed.versions) == ("fail", "1 of 1 checks failed: b.", {})


def test_verdict_on_what_is_absent_holds_the_reason() -> None:
    made = verdict.absent(probe="p", reason="no second card", device=CARD, versions={"t": "2"})
    assert made == Verdict(
        probe="p", status="not-applicable", summary="no second card", device=CARD, versions={"t": "2"}
    )
    assert verdict.absent(probe="p", reason="r").versions == {}


def refused(**fields: Any) -> str:
    with pytest.raises(MalformedVerdictError) as caught:
        Verdict(**({"probe": "p", "status": "pass", "summary": "s"} | fields))
    return str(caught.value)


def test_contradiction_is_refused_with_its_reason() -> None:
    absent = "probe 'p' states that its subject is absent, and "
    assert refused(status="fine") == "probe 'p' has the unknown status 'fine'"
    assert refused() == "probe 'p' claims to pass, and its checks do not bear it out"
    assert refused(status="not-applicable", summary="") == f"{absent}gives no reason"
    for check in (PASSED, FAILED):
        assert refused(status="not-applicable", checks=(SKIPPED, check)) == f"{absent}checked it all the same"
    assert refused(status="not-applicable", summary="", checks=(PASSED,)) == f"{absent}checked it all the same"
    assert Verdict(probe="p", status="not-applicable", summary="s", checks=(SKIPPED,)).checks == (SKIPPED,)
    assert Verdict(probe="p", status="fail", summary="", checks=(PASSED,)).status == "fail"
    with pytest.raises(MalformedVerdictError, match=r"^check 'a' has the unknown status 'fine'$"):
        Check(name="a", status="fine")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("count", "detail", "words"),
    [
        (1, "", "1 of 2 checks failed: f0."),
        (3, "why", "3 of 4 checks failed: f0, f1, f2 (why)."),
        (4, "", "4 of 5 checks failed: f0, f1, f2, \u2026."),
        (5, "", "5 of 6 checks failed: f0, f1, f2, \u2026."),
    ],
)
def test_failure_names_three_checks_and_the_first_ones_detail(count: int, detail: str, words: str) -> None:
    failed = [Check(name=f"f{n}", status="fail", detail=detail) for n in range(count)]
    assert verdict.explain_failure([PASSED, *failed]) == words


def test_line_holds_every_field_and_numbers_that_are_none_as_null() -> None:
    made = Verdict(
        probe="p", status="fail", summary="s",
        checks=(Check(name="a", status="fail", measured=math.nan, limit=math.inf),),
        numbers=(Number(name="n", value=-math.inf, unit="u"),), device=CARD, cards=("x",), present=("x", "y"),
        seconds=1.5, stderr_tail="e", versions={"t": "2"}, diagnosis={"d": "c"},
    )  # fmt: skip
    line = made.to_json()
    assert "\n" not in line
    record = json.loads(line)
    assert record == {
        "event": "probe", "probe": "p", "status": "fail", "summary": "s", "seconds": 1.5, "stderr_tail": "e",
        "checks": [{"name": "a", "status": "fail", "measured": None, "limit": None, "unit": "", "detail": ""}],
        "numbers": [{"name": "n", "value": None, "unit": "u"}], "cards": ["x"], "present": ["x", "y"],
        "device": {"kind": "rocm", "name": "SIMULATED", "arch": "gfx1100"}, "versions": {"t": "2"},
        "diagnosis": {"d": "c"},
    }  # fmt: skip
    again = parse(line)
    assert (again.cards, again.present, again.device) == (("x",), ("x", "y"), CARD)
    older = {name: value for name, value in record.items() if name not in ("cards", "present")}
    assert (parse(json.dumps(older)).cards, parse(json.dumps(older)).present) == ((), ())


@pytest.mark.parametrize("line", ["[]", "3", "{}", '{"event": "other"}'])
def test_line_that_is_no_verdict_is_refused_as_that(line: str) -> None:
    with pytest.raises(MalformedVerdictError, match=r"^the line is not a probe's verdict$"):
        parse(line)


@pytest.mark.parametrize("line", ["{", '{"event": "probe"}', '{"event": "probe", "checks": [], "numbers": [3]}'])
def test_line_that_cannot_be_read_is_refused_with_the_reason(line: str) -> None:
    with pytest.raises(MalformedVerdictError, match=r"^the line cannot be read as a verdict: .") as caught:
        parse(line)
    assert str(caught.value.__cause__) in str(caught.value)
