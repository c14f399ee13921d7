"""The headline of a combination follows from rules, lists and records in a fixed order; all of it is made up here."""

from types import SimpleNamespace

import pytest

from rocmatrix.matrix.resolver.axes import python_reason
from rocmatrix.matrix.resolver.explanation import explain
from rocmatrix.matrix.resolver.judgement import Judged, beyond, judge, never_paired, of_a_chip, of_subject
from rocmatrix.matrix.resolver.points import Subject
from rocmatrix.matrix.resolver.request import Request
from rocmatrix.matrix.statement import Selector
from tests.fixtures.cells import MATRIX


def rule(verdict, *, decides=True, confidence="reported", id_="r", **when):
    evidence = SimpleNamespace(confidence=confidence, summary=f"{confidence} 2026-11-21: source of {id_}")
    return SimpleNamespace(
        id=id_, verdict=verdict, decides=decides, reason=f"why {id_}", evidence=evidence, when=Selector(**when)
    )


def release(**changes):
    return SimpleNamespace(**{"name": "rocm6.3-torch2.7.1", "rocm": "6.3", "architectures": ["gfx1100"]} | changes)


def support(*, official=False, listing="not listed", cards=()):
    return SimpleNamespace(official=official, listing=listing, cards=cards)


def cell(of, *, architecture=None, confidence="measured here"):
    evidence = SimpleNamespace(confidence=confidence)
    return SimpleNamespace(architecture=architecture, release=of, evidence=evidence)


def judged(
    *rules, made=None, held=None, cells=(), architecture="gfx1100", card=None, measured=(), chips=("W1",), others=()
):
    queried, listed = [], [other.rocm for other in others]

    def support_of(gfx, rocm, *, card):
        queried.append((gfx, rocm, card))
        return support(official=True) if rocm in listed else held or support()

    cards = ("RX 1", "RX 2", "W1")
    architectures = {"gfx1100": SimpleNamespace(cards=cards, chips=chips)}
    matrix = SimpleNamespace(support_of=support_of, architectures=architectures, cells=cells, releases=others)
    found = judge(matrix, architecture=architecture, release=made, rules=list(rules), card=card, measured=measured)
    assert queried[:1] in ([], [(architecture, "6.3", card)])
    assert len(queried) <= 1 + len(others)
    assert {(gfx, named) for gfx, _, named in queried} <= {(architecture, card)}
    return found


MADE = release()
HERE = [("gfx1100", MADE.name)]


def test_versions_that_were_never_built_together_are_unavailable_with_the_rule_that_breaks_them():
    nothing = Judged(verdict="unavailable", because="no release joins these versions")
    assert judged(rule("works"), rule("broken", decides=False), measured=HERE) == nothing
    broken = (rule("degraded", id_="d"), rule("broken", id_="b"), rule("broken", id_="c"))
    assert judged(*broken) == Judged(verdict="unavailable", because="why b")


@pytest.mark.parametrize("against", ["broken", "degraded"])
def test_rule_against_a_combination_wins_over_all_else(against):
    rules = (rule("works", confidence="measured here"), rule(against, id_="first"), rule(against, id_="second"))
    found = judged(*rules, made=MADE, measured=HERE, held=support(official=True))
    assert found == Judged(verdict=against, because="rule first")


def test_worse_of_two_rules_is_named():
    found = judged(rule("degraded", id_="d"), rule("broken", id_="b"), made=MADE)
    assert found == Judged(verdict="broken", because="rule b")


def test_rule_of_a_circumstance_decides_nothing():
    found = judged(rule("broken", decides=False), rule("works", decides=False), made=MADE)
    assert found.verdict == "expected"


def test_own_records_of_this_architecture_and_release_are_measured():
    measured = Judged(verdict="measured", because="this project's own records show it at work")
    assert judged(made=MADE, measured=HERE, held=support(official=True)) == measured
    assert judged(made=MADE, architecture=None, measured=[(None, MADE.name)]) == measured
    for other in (("gfx1101", MADE.name), ("gfx1100", "rocm6.2-torch2.7.1"), (None, MADE.name)):
        assert judged(made=MADE, measured=[other]).verdict == "expected"


def test_rocm_release_without_a_card_is_untested():
    found = judged(made=MADE, architecture=None)
    assert found == Judged(verdict="untested", because="no card is named; --gpu names one")


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [({}, "measured"), ({"confidence": "derived"}, "expected"), ({"architecture": "gfx1100"}, "expected")],
)
def test_cpu_build_is_measured_by_the_cpu_cell_of_its_release(changes, verdict):
    cpu = release(rocm=None, name="cpu-torch2.13.0")
    found = judged(made=cpu, architecture=None, cells=[cell(cpu, confidence="derived"), cell(cpu, **changes)])
    words = {"measured": "this project's own tests run it on a CPU", "expected": "the CPU build, which needs no card"}
    assert found == Judged(verdict=verdict, because=words[verdict])
    assert judged(made=cpu, architecture=None, cells=[cell(release(rocm=None))]).verdict == "expected"


def test_release_whose_cards_are_not_recorded_is_untested():
    found = judged(rule("works", confidence="measured here"), made=release(architectures=None))
    because = "which cards rocm6.3-torch2.7.1 holds code for is not recorded"
    assert found == Judged(verdict="untested", because=because)
    assert judged(made=release(architectures=[])).verdict == "expected"


def test_rule_measured_here_comes_before_amds_list():
    rules = (rule("works", id_="a"), rule("works", id_="b", confidence="measured here"))
    assert judged(*rules, made=MADE, held=support(official=True)) == Judged(verdict="measured", because="rule b")
    untested = rule("untested", confidence="measured here")
    assert judged(untested, made=MADE).verdict == "expected"


@pytest.mark.parametrize(
    ("listing", "words"), [("listed", ""), ("maintained", ", in maintenance (AMD calls it deprecated)")]
)
def test_card_on_amds_list_is_supported(listing, words):
    held = support(official=True, listing=listing, cards=("RX 1", "RX 2"))
    because = f"AMD lists the RX 1 for ROCm 6.3{words}"
    assert judged(rule("works"), made=MADE, held=held, card="RX 1") == Judged(verdict="supported", because=because)
    because = f"AMD lists the RX 1, RX 2 for ROCm 6.3{words}"
    assert judged(made=MADE, held=held) == Judged(verdict="supported", because=because)


@pytest.mark.parametrize(("rules", "others"), [((), "expected"), ((rule("works"),), "reported")])
def test_architecture_of_which_amd_lists_some_cards_is_supported_on_these(rules, others):
    held = support(official=True, cards=("RX 1",))
    expected = Judged(verdict="supported", because="AMD lists the RX 1 for ROCm 6.3", cards=("RX 1",), others=others)
    assert judged(*rules, made=MADE, held=held) == expected


def test_reported_combination_names_its_rule_and_source():
    found = judged(rule("works", id_="a"), rule("works", id_="b"), made=MADE)
    assert found == Judged(verdict="reported", because="rule a: reported 2026-11-21: source of a")


@pytest.mark.parametrize(
    ("held", "words"),
    [
        (support(listing="not read"), "AMD's list for this ROCm was not read"),
        (support(listing="not read", cards=("RX 1",)), "AMD's list for this ROCm was not read"),
        (support(cards=("RX 1", "W1")), "AMD's list has RX 1, W1, not the RX 2"),
        (support(), "AMD lists no card of it for this ROCm"),
    ],
)
def test_compiled_combination_is_expected_with_the_cards_of_amds_list(held, words):
    found = judged(made=MADE, held=held, card="RX 2")
    assert found == Judged(verdict="expected", because=f"compiled in, and no rule excludes it; {words}")


def test_unlisted_card_names_the_rocm_that_lists_it():
    later = [release(rocm="10.0"), release(rocm="7.14"), release(rocm="6.4", architectures=["gfx906"])]
    found = judged(made=MADE, card="RX 1", others=later)
    assert found.verdict == "expected" and found.because.endswith("; for ROCm 7.14 to 10.0 it does")
    assert judged(made=MADE, others=[release(rocm="7.14")]).because.endswith("; for ROCm 7.14 it does")


@pytest.mark.parametrize(
    ("torch", "rocm", "verdict"),
    [
        ("2.9", "5.0", "unavailable"),
        ("2.9.1", "4.5.2", "unavailable"),
        ("2.0.1", "5.2", "unavailable"),
        ("2", "5.0", "unavailable"),
        ("1.13.1", "5.2", None),  # no build of this torch is on record
        (None, "5.0", None),
        ("2.9.1", None, None),
        ("2.10.0", "7.13", None),  # a preview, with a torch of its own
        ("2.9.1", "6.4", None),
    ],
)
def test_pair_is_unavailable_where_every_build_of_its_torch_is_known(torch, rocm, verdict):
    subject = Subject(architecture="gfx1100", torch=torch, rocm=rocm, release=None)
    found = never_paired(MATRIX, subject)
    assert (found and found.verdict) == verdict
    assert found is None or "was released for ROCm" in found.because


def test_explanation_of_a_pair_before_the_first_rocm_on_record_is_unavailable():
    explained = explain(MATRIX, Request(gpu="gfx1100", rocm="5.0", torch="2.9"), today="2026-11-23")
    assert explained.judged == Judged(verdict="unavailable", because="torch 2.9.0 was released for ROCm 6.3, 6.4 only")
    alone = explain(MATRIX, Request(gpu="gfx1100", rocm="5.0"), today="2026-11-23")
    assert alone.judged.verdict == "untested"


@pytest.mark.parametrize(
    ("when", "verdict"),
    [
        ({"torch": "==2.9.1", "rocm": "<6"}, "unavailable"),  # the series stands for its first torch on record
        ({"torch": "==2.9", "rocm": "<6"}, None),
        ({"torch": "==2.9.1"}, None),
        ({"rocm": "<6"}, None),
        ({"torch": "==2.9.1", "rocm": "<6", "architectures": ["gfx1100"]}, None),
    ],
)
def test_pair_is_unavailable_by_a_rule_on_both_versions_and_no_architecture(when, verdict):
    matrix = SimpleNamespace(releases=[release(torch="2.9.1")], rules=[rule("broken", **when)], derived_rules=[])
    found = never_paired(matrix, Subject(architecture="gfx1100", torch="2", rocm="5.0", release=None))
    assert found == (verdict and Judged(verdict=verdict, because="why r"))


def test_versions_without_a_record_are_named_and_leave_the_verdict():
    for verdict, every in (("broken", ", as in every release"), ("expected", "")):
        known = Judged(verdict=verdict, because="why", cards=("RX 1",), others="reported")
        assert beyond(known, ()) == known
        because = f"why{every}; nothing is recorded of ROCm 4.1 and torch 1.9"
        assert beyond(known, ("ROCm 4.1", "torch 1.9")) == Judged(
            verdict=verdict, because=because, cards=("RX 1",), others="reported"
        )


def of_card(python, *rules, measured=(), made=None):
    """Return the headline of the RX 1, which AMD lists as it does no other card of its architecture."""
    made = made or release(torch="2.7.1", pythons=["3.11", "3.12"], free_threaded=["3.13"])

    def support_of(gfx, rocm, *, card):
        return support(official=(gfx, rocm, card) == ("gfx1100", "6.3", "RX 1"))

    architectures = {"gfx1100": SimpleNamespace(cards=("RX 1",), chips=())}
    matrix = SimpleNamespace(
        support_of=support_of, architectures=architectures, cells=(), releases=[made], rules=rules, derived_rules=()
    )
    subject = Subject(architecture="gfx1100", torch="2.7.1", rocm="6.3", release=made, card="RX 1")
    return matrix, made, of_subject(matrix, subject, python, measured)


@pytest.mark.parametrize("python", ["3.12", "3.13t", None])
def test_combination_for_a_python_with_wheels_is_judged_by_card_rules_and_records(python):
    assert of_card(python)[2] == Judged(verdict="supported", because="AMD lists the RX 1 for ROCm 6.3")
    against = rule("broken", architectures=["gfx1100"], torch="==2.7.1", rocm="==6.3")
    assert of_card(python, against, measured=HERE)[2] == Judged(verdict="broken", because="rule r")
    assert of_card(python, rule("broken", torch="<2"), measured=HERE)[2].verdict == "measured"


def test_combination_for_a_python_without_wheels_is_unavailable():
    for python in ("3.10", "3.13"):
        matrix, made, found = of_card(python, measured=HERE)
        reason = python_reason(matrix, made, python, cell=None)
        assert found == Judged(verdict="unavailable", because=reason) and f"no wheel for Python {python}" in reason
    unknown = release(torch="2.7.1", pythons=[], free_threaded=[])
    assert of_card("3.10", made=unknown)[2].verdict == "supported"


def test_combination_without_a_release_is_unavailable_for_any_python():
    matrix = SimpleNamespace(rules=(), derived_rules=(), releases=())
    subject = Subject(architecture="gfx1100", torch="2.7.1", rocm="5.0", release=None)
    for python in ("3.12", None):
        assert of_subject(matrix, subject, python, ()).because == "no release joins these versions"


SUPPORTED = Judged(verdict="supported", because="AMD lists some", cards=("Ryzen 1",), others="expected")


def of_graphics(request, *, judged=SUPPORTED, card=None, gfx="gfx1103", processors=3, integrated=True):
    """Return the headline of graphics whose processors two lists name one each: of three the same, of four another."""
    tables = {"7.2": ("CPU 0", "a chip"), "7.14": (f"CPU {processors - 3}",)}

    def support_of(name, rocm):
        return support(cards=tables[rocm] if name == "gfx1103" else ())

    chips = ("a chip", "its graphics")
    names = (*(f"CPU {at}" for at in range(processors)), *chips)
    entry = SimpleNamespace(names=names, chips=chips, integrated=integrated)
    releases = [release(rocm=rocm) for rocm in (None, *tables)]
    matrix = SimpleNamespace(support_of=support_of, architectures={"gfx1103": entry}, releases=releases)
    subject = Subject(architecture=gfx, torch=None, rocm=None, release=None, card=card)
    return of_a_chip(matrix, request, subject, judged)


NAMED = Request(gpu="a chip")


def test_graphics_by_name_are_supported_where_half_the_processors_with_them_are_listed():
    assert of_graphics(NAMED, processors=4) == SUPPORTED
    found = of_graphics(NAMED, processors=3)
    assert (found.verdict, found.cards, found.others) == ("expected", SUPPORTED.cards, SUPPORTED.others)
    assert found.because.startswith("compiled in") and found.because.endswith(SUPPORTED.because)


@pytest.mark.parametrize(
    ("request_", "changes"),
    [
        (Request(), {}),
        (Request(gpu="auto"), {}),
        (Request(gpu="gfx1103"), {}),
        (Request(gpu="a chip", cell="any"), {}),
        (NAMED, {"card": "CPU 0"}),
        (NAMED, {"integrated": False}),
        (NAMED, {"judged": Judged(verdict="supported", because="AMD lists all")}),
        (NAMED, {"judged": Judged(verdict="untested", because="no card"), "gfx": None}),
    ],
)
def test_headline_of_other_requests_than_graphics_by_name_is_left_as_it_is(request_, changes):
    assert of_graphics(request_, **changes) == changes.get("judged", SUPPORTED)
