"""An argument has a verdict, an answer, and every rule that speaks; nothing is left out and nothing invented."""

import json

import pytest

from rocmatrix.matrix.resolver.explanation import SCHEMA, Subject, explain, rules_on, sections
from rocmatrix.matrix.resolver.resolve import Request
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures.cells import MATRIX

TODAY = "2026-11-21"
RX_7900_XT = Request(rocm="6.2", torch="2.5.1", gpu="gfx1100")


def points(argued, name):
    return next(section.points for section in argued.sections if section.name == name)


def abouts(argued, name):
    return [point.about for point in points(argued, name)]


def test_reported_pair_is_explained_with_both_sources():
    argued = explain(MATRIX, RX_7900_XT, today=TODAY)
    assert argued.judged.verdict == "degraded"
    assert argued.cell.name == "rocm6.2-torch2.5.1-gfx1100"  # derived: an owner wants to see the failure again
    assert argued.refusal is None
    hipblas = next(point for point in points(argued, "rules") if point.about == "gfx1100-torch-2.5.1-hipblas")
    assert hipblas.claim.stands is False
    assert "gfx1100-visible-igpu" in abouts(argued, "cautions")
    assert "backend-hccl" in abouts(argued, "general")
    assert abouts(argued, "libraries") == ["allocator", "driver"]
    assert argued.unrecorded == ("rocBLAS", "RCCL", "hipBLASLt", "attention")


@pytest.mark.parametrize(
    ("request_", "verdict", "cell", "refusal"),
    [
        (Request(gpu="MI50", rocm="7.2"), "broken", None, "RM012"),
        (Request(gpu="MI50", rocm="6.0", torch="2.4.1"), "supported", "rocm6.0-torch2.4.1-gfx906", None),
        (Request(gpu="MI60", rocm="6.0", torch="2.4.1"), "reported", "rocm6.0-torch2.4.1-gfx906", None),
        (Request(torch="2.5.1", rocm="6.3"), "unavailable", None, "RM012"),
        (Request(gpu="cpu"), "measured", "cpu-torch2.13.0", None),
        (Request(gpu="cpu", torch="2.7.1"), "unavailable", None, "RM011"),
        (Request(cell="rocm6.3-torch2.7.1-gfx906"), "reported", "rocm6.3-torch2.7.1-gfx906", None),
        (Request(gpu="RX 6800 XT", rocm="6.4"), "expected", "rocm6.4-torch2.9.0-gfx1030", None),
        (Request(gpu="W6800", rocm="6.4"), "supported", "rocm6.4-torch2.9.0-gfx1030", None),
        (Request(), "measured", "cpu-torch2.13.0", None),
    ],
)
def test_request_has_its_verdict_and_answer(request_, verdict, cell, refusal):
    argued = explain(MATRIX, request_, today=TODAY)
    assert argued.judged.verdict == verdict
    assert (argued.cell and argued.cell.name) == cell
    assert (argued.refusal and argued.refusal.code) == refusal


def test_explained_release_is_one_that_no_rule_breaks():
    argued = explain(MATRIX, Request(gpu="gfx906", torch="2.8.0"), today=TODAY)
    assert argued.subject.release.name == "rocm6.3-torch2.8.0"
    assert argued.judged.verdict == "expected"


def test_card_of_this_machine_is_explained():
    argued = explain(MATRIX, Request(gpu="auto"), today=TODAY, cards=("gfx1151",))
    assert argued.subject.architecture == "gfx1151"
    assert "Strix Halo" in argued.cards


def test_unknown_name_is_an_error_and_no_argument():
    with pytest.raises(RocmatrixError, match="RM010"):
        explain(MATRIX, Request(gpu="RX 7900 XTT"), today=TODAY)
    with pytest.raises(RocmatrixError, match="RM010"):
        explain(MATRIX, Request(cell="rocm6.3-torch2.7.1-gfx110"), today=TODAY)


def test_statement_expires_by_the_day_that_is_given():
    fresh = explain(MATRIX, RX_7900_XT, today=TODAY)
    assert not any(point.expired for section in fresh.sections for point in section.points)
    later = explain(MATRIX, RX_7900_XT, today="2027-06-01")
    marked = {point.about: point.expired for point in points(later, "rules")}
    assert marked == {"gfx1100-torch-2.5.1-hipblas": False, "gfx1100-torch-2.5.1-compile-and-fsdp": True}
    assert not any(point.expired for point in points(later, "libraries"))
    assert any(point.expired for point in points(explain(MATRIX, RX_7900_XT, today="2028-01-01"), "libraries"))


def test_rule_is_good_on_the_day_it_expires():
    rule = MATRIX.rules[0]
    assert not rule.expired(rule.expires)
    assert rule.expired("2999-01-01")


def test_refusals_that_cite_a_rule_show_it_among_the_reasons():
    torch = sorted({release.torch for release in MATRIX.releases})
    refused = 0
    for gpu in MATRIX.architectures:
        for version in torch:
            argued = explain(MATRIX, Request(gpu=gpu, torch=version), today=TODAY)
            if argued.refusal is not None and argued.refusal.code == "RM012":
                refused += 1
                assert argued.refusal.where.removeprefix("rule ") in abouts(argued, "rules")
                assert argued.judged.verdict in ("broken", "unavailable")
            if argued.cell is not None:
                assert argued.judged.verdict not in ("broken", "unavailable")
    assert refused > 100


def test_rules_are_never_left_out_or_reported_twice():
    for gfx in MATRIX.architectures:
        for release in MATRIX.releases:
            subject = Subject(architecture=gfx, torch=release.torch, rocm=release.rocm, release=release)
            rules = {rule.id for rule in MATRIX.rules_on(gfx, release)}
            assert {rule.id for rule in rules_on(MATRIX, subject)} == rules
            if release is MATRIX.releases[-1]:
                found = {section.name: section.points for section in sections(MATRIX, subject, today=TODAY)}
                rule_ids = [point.about for name in ("rules", "cautions", "general") for point in found[name]]
                assert sorted(rule_ids) == sorted(rules)


def test_programs_get_every_point_with_source_confidence_and_date():
    described = json.loads(json.dumps(explain(MATRIX, RX_7900_XT, today=TODAY).described()))
    assert described["schema"] == SCHEMA
    assert described["refusal"] is None
    assert described["cell"]["name"] == "rocm6.2-torch2.5.1-gfx1100"
    all_points = [
        point for name in ("rules", "cautions", "general", "support", "libraries") for point in described[name]
    ]
    assert len(all_points) > 20
    assert all(point["sources"] and point["confidence"] and point["date"] and point["expires"] for point in all_points)


def test_json_states_whether_the_cell_is_locked():
    locked = explain(MATRIX, Request(gpu="gfx1100"), today=TODAY).described()["cell"]
    assert locked["locked"] is True
    assert {"cell", "why"} <= set(locked["passed_over"][0])
    unlocked = explain(MATRIX, Request(gpu="gfx1031"), today=TODAY).described()["cell"]
    assert unlocked["locked"] is False
    assert "no hash" in unlocked["unlocked_because"]


def test_open_axis_is_reported_with_the_reason_for_its_value():
    argued = explain(MATRIX, Request(gpu="MI50", rocm="6.2"), today=TODAY)
    taken = {axis.axis: axis for axis in argued.chosen}
    assert set(taken) == {"torch", "python"}
    assert taken["torch"].value == "2.5.0"
    assert "rocm6.2-torch2.5.1 (rule gfx906-mi50-torch-2.5.1)" in taken["torch"].why
    with_cell = explain(MATRIX, Request(), today=TODAY, cards=("gfx1100",))
    assert {axis.axis: axis.value for axis in with_cell.chosen} == {
        "gpu": "gfx1100", "rocm": "7.2", "torch": "2.12.1", "python": "3.12"
    }  # fmt: skip
    assert next(axis.why for axis in with_cell.chosen if axis.axis == "gpu") == "this machine has a gfx1100"


def test_request_that_names_every_axis_leaves_only_the_python_open():
    argued = explain(MATRIX, Request(gpu="gfx1100", rocm="7.2", torch="2.12.1"), today=TODAY)
    assert [axis.axis for axis in argued.chosen] == ["python"]
    named = explain(MATRIX, Request(cell="rocm7.2-torch2.12.1-gfx1100"), today=TODAY, python="3.12")
    assert [(axis.axis, axis.value) for axis in named.chosen] == [("python", "3.12")]


@pytest.mark.parametrize("request_", [Request(gpu="MI50", rocm="6.2"), Request(gpu="MI50", rocm="6.2", torch="2.5.0")])
def test_rule_of_a_patch_release_next_to_it_is_shown(request_):
    argued = explain(MATRIX, request_, today=TODAY)
    neighbours = {point.about: point for point in points(argued, "neighbours")}
    assert neighbours["gfx906-mi50-torch-2.5.1"].verdict == "broken"
    assert neighbours["gfx906-mi50-torch-2.5.1"].says.startswith("rocm6.2-torch2.5.1: ")
    assert "gfx906-mi50-torch-2.5.1" not in abouts(argued, "rules")


def test_rule_on_the_release_itself_is_no_neighbour():
    argued = explain(MATRIX, Request(gpu="MI50", rocm="6.2", torch="2.5.1"), today=TODAY)
    assert "gfx906-mi50-torch-2.5.1" in abouts(argued, "rules")
    assert "gfx906-mi50-torch-2.5.1" not in abouts(argued, "neighbours")


@pytest.mark.parametrize(
    ("python", "verdict"),
    [
        ("3.12", "supported"),
        ("3.13", "supported"),
        ("3.14t", "supported"),
        ("3.9", "unavailable"),
        ("3.13t", "unavailable"),
    ],
)
def test_python_that_a_release_was_not_built_for_makes_it_unavailable(python, verdict):
    argued = explain(MATRIX, Request(gpu="RX 7900 XT", rocm="7.2", torch="2.12.1"), today=TODAY, python=python)
    assert argued.judged.verdict == verdict
    assert argued.described()["python"] == python


@pytest.mark.parametrize("text", ["3", "3.x", "312", "python3.12", "3.12.1", "2.7", ""])
def test_python_that_is_no_version_is_refused(text):
    with pytest.raises(RocmatrixError, match="RM404"):
        explain(MATRIX, Request(gpu="gfx1100"), today=TODAY, python=text)


def test_card_off_the_list_is_not_supported_because_a_sister_is():
    sister = explain(MATRIX, Request(gpu="gfx1030", rocm="7.2"), today=TODAY)
    assert sister.judged.verdict == "supported"
    assert sister.judged.cards == ("Radeon Pro W6800", "Radeon Pro V620")
    assert sister.judged.others == "expected"
    assert explain(MATRIX, Request(gpu="RX 6900 XT", rocm="7.2"), today=TODAY).judged.verdict == "expected"
    assert explain(MATRIX, Request(gpu="Navi 21", rocm="7.2"), today=TODAY).subject.card is None


def test_rule_on_both_releases_is_no_news_of_the_neighbour():
    argued = explain(MATRIX, Request(gpu="MI50", rocm="6.3", torch="2.7.0"), today=TODAY)
    assert "gfx906-mi50-torch-2.7-rocm-6.3" in abouts(argued, "rules")
    assert "gfx906-mi50-torch-2.7-rocm-6.3" not in abouts(argued, "neighbours")


@pytest.mark.parametrize(
    ("request_", "beyond"),
    [
        (Request(gpu="RX 480", rocm="4.1.1"), "ROCm 4.1.1"),
        (Request(gpu="Renoir", rocm="5.1.1", torch="1.12.0"), "ROCm 5.1.1 and torch 1.12.0"),
        (Request(gpu="Vega 56", rocm="7.2", torch="2.12.0.dev20260408"), "torch 2.12.0.dev20260408"),
    ],
)
def test_unknown_version_is_broken_where_every_release_of_the_rest_is(request_, beyond):
    argued = explain(MATRIX, request_, today=TODAY, python="3.7")
    assert argued.judged.verdict == "broken" and argued.request == request_
    assert argued.judged.because.endswith(f"as in every release; nothing is recorded of {beyond}")


@pytest.mark.parametrize(
    "request_",
    [
        Request(gpu="RX 7900 XTX", torch="2.16.0", rocm="7.2"),
        Request(gpu="RX 7900 XTX", rocm="8.0"),
        Request(gpu="RX 7900 XTX", rocm="6.16.6"),
        Request(gpu="RX 7900 XTX", rocm="0.5.0"),
        Request(gpu="RX 7900 XTX", rocm="7.8.0", torch="2.9.0"),
        Request(gpu="RX 7900 XTX", rocm="5.2", torch="nightly"),
        Request(rocm="4.1.1"),
        Request(gpu="RX 480", cell="nowhere"),
    ],
)
def test_unknown_version_is_refused_where_a_release_of_the_rest_works(request_):
    with pytest.raises(RocmatrixError, match="RM010"):
        explain(MATRIX, request_, today=TODAY)


@pytest.mark.parametrize(
    ("request_", "unrecorded"),
    [
        (Request(gpu="RX 6800", rocm="5.2"), "ROCm 5.2"),
        (Request(gpu="Vega 56", rocm="5.1.1"), "ROCm 5.1.1"),
        (Request(gpu="RX 7900 XTX", rocm="7.13.0", torch="2.10.0"), "ROCm 7.13.0"),
        (Request(gpu="RX 7900 XTX", rocm="7.9"), "ROCm 7.9"),
        (Request(gpu="MI100", torch="1.13.1"), "torch 1.13.1"),
        (Request(gpu="MI100", rocm="5.2", torch="1.13.1"), "ROCm 5.2 and torch 1.13.1"),
        (Request(gpu="RX 7900 XTX", rocm="7.10", torch="2.9.0a0"), "ROCm 7.10 and torch 2.9.0a0"),
    ],
)
def test_version_that_was_released_and_is_not_recorded_is_untested(request_, unrecorded):
    argued = explain(MATRIX, request_, today=TODAY, python="3.12")
    assert (argued.judged.verdict, argued.judged.because) == ("untested", f"nothing is recorded of {unrecorded}")
    assert (argued.request, argued.choice, argued.refusal.code) == (request_, None, "RM010")
    assert argued.refusal.what == argued.judged.because
    assert argued.refusal.next.startswith("ask with another version, such as --rocm ")
    described = argued.described()
    assert (described["rocm"], described["torch"], described["cell"]) == (request_.rocm, request_.torch, None)
    assert described["card"] is not None


@pytest.mark.parametrize(
    ("request_", "verdict", "release"),
    [
        (Request(gpu="RX 7900 XTX", torch="2.12.0.dev20260408", rocm="7.2"), "supported", "rocm7.2-torch2.12.0"),
        (Request(gpu="MI250X", torch="2.6.0.dev20240918", rocm="6.2"), "supported", "rocm6.2-torch2.5.1"),
        (Request(gpu="RX 6800", torch="2.9.0rc2"), "expected", "rocm6.4-torch2.9.0"),
    ],
)
def test_torch_before_its_release_counts_as_that_or_as_any_of_its_rocm(request_, verdict, release):
    argued = explain(MATRIX, request_, today=TODAY)
    assert (argued.judged.verdict, argued.subject.release.name) == (verdict, release)
    assert argued.judged.because.endswith(f"; nothing is recorded of torch {request_.torch}")
    assert "in every release" not in argued.judged.because
    assert argued.request == request_


@pytest.mark.parametrize(
    ("name", "verdict", "because"),
    [
        ("Vega 8", "broken", "no release holds code for it (gfx902); gfx90c: broken"),
        ("gfx120X-all", "supported", "AMD lists the Radeon RX 9060 XT for ROCm 7.2 (gfx1200); gfx1201: supported"),
        ("RX 7900 XTX and 6900XT", "expected", "Radeon RX 7900 XTX: supported"),
        ("RX 7900 XTX, Ryzen 9 7950X3D", "supported", "for ROCm 7.2 (Radeon RX 7900 XTX)"),
        ("Ryzen 5 5600G with RX 6600", "expected", "(Radeon RX 6600)"),
        ("Ryzen 5 5600G, 780M", "broken", "Radeon 780M: expected"),
        ("RX 7900 XTX + RX 580", "broken", "(Radeon RX 580); Radeon RX 7900 XTX: supported"),
    ],
)
def test_headline_of_several_cards_is_the_one_that_holds_for_all(name, verdict, because):
    argued = explain(MATRIX, Request(gpu=name), today=TODAY)
    assert argued.judged.verdict == verdict
    assert because in argued.judged.because
    assert (argued.choice, argued.refusal.code, argued.request.gpu) == (None, "RM010", name)


@pytest.mark.parametrize("name", ["gfx110X-dgpu", "RDNA3", "RX 7900 XTX and RX 9999 XT"])
def test_name_of_cards_with_different_headlines_is_answered_with_a_question(name):
    with pytest.raises(RocmatrixError, match="RM010"):
        explain(MATRIX, Request(gpu=name), today=TODAY)


def test_card_without_versions_is_supported_where_a_release_of_it_is():
    argued = explain(MATRIX, Request(gpu="RX 7600"), today=TODAY)
    assert argued.judged.verdict == "supported"
    assert argued.judged.because.startswith("AMD lists the Radeon RX 7600 for ROCm ")
    assert (argued.subject.rocm, argued.subject.torch) == ("10.0", "2.13.0")
    taken = "Radeon RX 7600 (gfx1102), ROCm 7.2, torch 2.12.1: expected, compiled in"
    assert f"; a build without these versions takes {taken}" in argued.judged.because
    why = "AMD's list has the card for this release"
    assert [(axis.axis, axis.value, axis.why) for axis in argued.chosen[:2]] == [
        ("rocm", "10.0", why), ("torch", "2.13.0", why)]  # fmt: skip
    assert argued.choice.cell.release == argued.subject.release
    for named in (Request(gpu="RX 7600", rocm="7.2"), Request(gpu="RX 7600", torch="2.12.1"), Request(gpu="RX 6800")):
        assert explain(MATRIX, named, today=TODAY).judged.verdict == "expected"


def test_caution_on_one_torch_leaves_the_rocm_that_was_named_supported():
    argued = explain(MATRIX, Request(gpu="RX 7900 XTX", rocm="6.2"), today=TODAY)
    assert argued.judged.verdict == "supported"
    assert (argued.subject.rocm, argued.subject.torch) == ("6.2", "2.5.0")
    assert argued.judged.because.startswith("AMD lists the Radeon RX 7900 XTX for ROCm 6.2; a build without these")
    assert argued.judged.because.endswith("torch 2.5.1: degraded, rule gfx1100-torch-2.5.1-compile-and-fsdp")
    assert argued.chosen[0].axis == "torch"
    both = explain(MATRIX, Request(gpu="RX 7900 XTX", rocm="6.2", torch="2.5.1"), today=TODAY)
    assert both.judged.verdict == "degraded"
    assert explain(MATRIX, Request(gpu="RX 5500 XT"), today=TODAY).judged.verdict == "degraded"


@pytest.mark.parametrize(
    ("name", "verdict"),
    [("Radeon 780M", "expected"), ("Radeon 890M", "supported"), ("gfx1103", "supported"), ("Ryzen 7 260", "supported")],
)
def test_integrated_graphics_by_name_are_supported_where_most_processors_with_them_are(name, verdict):
    argued = explain(MATRIX, Request(gpu=name, rocm="7.14"), today=TODAY)
    assert argued.judged.verdict == verdict
    assert ("; of its processors AMD lists the Ryzen 9 270" in argued.judged.because) is (name == "Radeon 780M")


def test_architecture_without_a_release_is_broken_with_any_version():
    argued = explain(MATRIX, Request(gpu="BC-250"), today=TODAY)
    assert (argued.judged.verdict, argued.refusal.code) == ("broken", "RM010")
    assert argued.subject.summary == "gfx1013, ROCm of any version, torch of any version"
    described = argued.described()
    assert described["architecture"] == "gfx1013" and described["rules"] == [] and "general" in described


def test_patch_release_is_named_next_to_the_wheels_that_serve_it():
    argued = explain(MATRIX, Request(gpu="MI210", rocm="6.2", rocm_release="6.2.2"), today=TODAY)
    assert argued.chosen[0].axis == "rocm" and "ROCm 6.2.2 has no wheels of its own" in argued.chosen[0].why


@pytest.mark.parametrize(("gpu", "what"), [("auto", "no release has ROCm '7.13'"), ("cpu", "contradict each other")])
def test_unrecorded_version_for_no_named_card_is_refused_for_the_version(gpu, what):
    with pytest.raises(RocmatrixError, match=what):
        explain(MATRIX, Request(gpu=gpu, rocm="7.13"), today=TODAY)
