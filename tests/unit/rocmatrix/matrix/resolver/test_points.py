"""The points for and against a combination: each kind once, with its evidence, and expired by its date."""

import pytest

from rocmatrix.matrix.resolver.points import Point, Subject, rules_on, sections
from rocmatrix.matrix.statement import Evidence
from tests.fixtures.cells import CPU, GFX1100, MATRIX

TODAY = "2026-11-21"
SEEN = Evidence(sources=["a test"], confidence="reported", date="2026-11-21")


def subject(cell=GFX1100, **changes):
    about = {"architecture": cell.architecture, "torch": cell.release.torch, "rocm": cell.release.rocm}
    return Subject(**about | {"release": cell.release} | changes)


def found(of, today=TODAY):
    return {section.name: section.points for section in sections(MATRIX, of, today=today)}


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "gfx1100, ROCm 6.3, torch 2.7.1"),
        ({"card": "RX 7900 XT"}, "RX 7900 XT (gfx1100), ROCm 6.3, torch 2.7.1"),
        ({"architecture": None, "rocm": None}, "no card, no ROCm, torch 2.7.1"),
        ({"rocm": None, "torch": None, "release": None}, "gfx1100, ROCm of any version, torch of any version"),
        ({"rocm": None}, "gfx1100, no ROCm, torch 2.7.1"),
    ],
)
def test_combination_is_summed_up(changes, text):
    assert subject(**changes).summary == text


def test_sections_part_rules_cautions_of_a_card_and_those_of_every_card():
    parts = found(subject())
    assert list(parts) == ["rules", "neighbours", "cautions", "support", "overrides", "libraries", "general"]
    assert all(point.given is None for point in parts["rules"])
    assert all(point.given for point in (*parts["cautions"], *parts["general"]))
    rules = {rule.id for rule in rules_on(MATRIX, subject())}
    assert {point.about for name in ("rules", "cautions", "general") for point in parts[name]} == rules


def test_combination_without_a_torch_is_judged_by_no_rule():
    assert rules_on(MATRIX, subject(torch=None)) == ()
    assert found(subject(torch=None))["libraries"] == ()


def test_cpu_has_no_list_of_amd_and_no_libraries():
    parts = found(subject(CPU))
    assert [point.about for point in parts["support"]] == ["device code"]
    assert parts["support"][0].says.startswith("served by https://")
    assert parts["libraries"] == parts["overrides"] == ()


@pytest.mark.parametrize(
    ("architectures", "words"),
    [(None, "is not recorded"), (["gfx906"], "holds no code for gfx1100"), (["gfx1100"], "holds code for gfx1100")],
)
def test_device_code_of_a_release_is_stated(architectures, words):
    code = GFX1100.release.device_code.model_copy(update={"architectures": architectures})
    release = GFX1100.release.model_copy(update={"device_code": code})
    assert words in found(subject(release=release))["support"][0].says


def test_point_is_expired_after_its_date():
    judged = subject(release=MATRIX.release_by_name["rocm6.2-torch2.5.1"], rocm="6.2", torch="2.5.1")
    rules = {point.about: point for point in found(judged)["rules"]}
    name, point = next(iter(rules.items()))
    again = {each.about: each for each in found(judged, today=point.expires)["rules"]}[name]
    later = {each.about: each for each in found(judged, today="2099-01-01")["rules"]}[name]
    assert (again.expired, later.expired) == (False, True)


def test_described_point_leaves_out_what_does_not_apply():
    point = Point(about="a", says="s", evidence=SEEN, expires="2027-01-01", expired=False)
    assert point.described() == {
        "about": "a", "says": "s", **SEEN.model_dump(), "expires": "2027-01-01", "expired": False,
    }  # fmt: skip
    judged = Point(about="a", says="s", evidence=SEEN, expires="2027-01-01", expired=True, verdict="broken", given="g")
    assert judged.described().items() >= {"verdict": "broken", "given": "g", "expired": True}.items()
