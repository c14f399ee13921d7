"""The resolver is total: a working cell, or a refusal that cites a rule or names what is near."""

import itertools
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocmatrix.matrix.resolver.request import preference
from rocmatrix.matrix.resolver.resolve import Request, answer, architecture_of, resolve
from rocmatrix.matrix.rule import Rule
from rocmatrix.matrix.statement import Evidence, Selector
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures.cells import MATRIX
from tests.left_out import WHOLE, examples

ROOT = Path(__file__).resolve().parents[5]
RULES = {rule.id: rule for rule in (*MATRIX.rules, *MATRIX.derived_rules)}
ROCM = sorted({release.rocm for release in MATRIX.releases if release.rocm})
TORCH = sorted({release.torch for release in MATRIX.releases})
NAMES = [name for entry in MATRIX.architectures.values() for name in entry.names]


@pytest.mark.parametrize(
    ("request_", "cards", "name"),
    [
        (Request(), (), "cpu-torch2.13.0"),
        (Request(rocm="6.3"), (), "rocm6.3-torch2.7.1-gfx1100"),
        (Request(rocm="6.3"), ("gfx906",), "rocm6.3-torch2.7.1-gfx906"),
        (Request(), ("gfx1100", "gfx1100"), "rocm7.2-torch2.12.1-gfx1100"),
        (Request(), ("gfx1151",), "rocm7.2-torch2.12.1-gfx1151"),
        (Request(gpu="auto"), ("gfx1151",), "rocm7.2-torch2.12.1-gfx1151"),
        (Request(gpu="RX 7900 XT", torch="2.7.1"), (), "rocm6.3-torch2.7.1-gfx1100"),
        (Request(gpu="mi50"), (), "rocm6.3-torch2.7.1-gfx906"),
        (Request(gpu="cpu"), ("gfx1100",), "cpu-torch2.13.0"),
        (Request(gpu="RX 7600"), (), "rocm7.2-torch2.12.1-gfx1102"),
        (Request(gpu="R9700", rocm="10.0"), (), "rocm10.0-torch2.13.0-gfx1201"),
        (Request(gpu="RX 6700 XT"), (), "rocm10.0-torch2.13.0-gfx1031"),
        (Request(cell="rocm6.0-torch2.4.1-gfx906"), (), "rocm6.0-torch2.4.1-gfx906"),
        # what no cell is written for is derived: first what has hashes
        (Request(gpu="gfx1100", rocm="7.1", torch="2.10"), (), "rocm7.1-torch2.10.0-gfx1100"),
        (Request(gpu="gfx1100", rocm="6.2", torch="2.5.1"), (), "rocm6.2-torch2.5.1-gfx1100"),
        (Request(gpu="gfx1100", rocm="5.7"), (), "rocm5.7-torch2.3.1-gfx1100"),
        (Request(gpu="RX 7900 XTX", rocm="7.0"), (), "rocm7.0-torch2.10.0-gfx1100"),
        (Request(gpu="gfx906", torch="2.8.0"), (), "rocm6.3-torch2.8.0-gfx906"),  # ROCm 6.4 is broken, 6.3 is not
        (Request(gpu="gfx942", torch="2.4.1"), (), "rocm6.0-torch2.4.1-gfx942"),
        (Request(gpu="gfx1034"), (), "rocm10.0-torch2.13.0-gfx1034"),
        (Request(rocm="7.1"), (), "rocm7.1-torch2.10.0-gfx1100"),
        (Request(), ("gfx900",), "rocm6.3-torch2.9.0-gfx900"),
        (Request(gpu="gfx1100", python="3.13"), (), "rocm7.2-torch2.12.1-gfx1100-py3.13"),
        (Request(gpu="gfx1100", rocm="7.2", torch="2.12.0"), (), "rocm7.2-torch2.12.0-gfx1100-py3.14"),  # its one lock
        (Request(gpu="cpu", python="3.12"), (), "cpu-torch2.13.0-py3.12"),
        (Request(cell="rocm7.1-torch2.10.0-gfx1100"), (), "rocm7.1-torch2.10.0-gfx1100"),
        (Request(cell="rocm7.2-torch2.12.1-gfx1100-py3.11"), (), "rocm7.2-torch2.12.1-gfx1100-py3.11"),
    ],
)
def test_request_ends_at_the_expected_cell(request_, cards, name):
    choice = resolve(MATRIX, request_, cards=cards)
    assert choice.cell.name == name
    assert choice.why


def test_locked_cell_comes_before_an_unlocked_one():
    choice = resolve(MATRIX, Request(gpu="gfx1100"))
    assert choice.cell.unlocked_because is None
    reasons = {other.cell: other.why for other in choice.passed_over}
    assert reasons["rocm10.0-torch2.13.0-gfx1100"].startswith("unlocked: no hash is recorded for torch 2.13.0")


@pytest.mark.parametrize(
    ("request_", "code", "words"),
    [
        (Request(gpu="RX 7900 XTT"), "RM010", "RX 7900 XT"),
        (Request(rocm="6.33"), "RM010", "6.3"),
        (Request(cell="rocm6.3-torch2.7.1-gfx110"), "RM010", "rocm6.3-torch2.7.1-gfx1100"),
        (Request(gpu="cpu", torch="2.5.1"), "RM011", "no release joins these axes"),
        (Request(gpu="gfx1100", python="3.10"), "RM014", "bases bring Python 3.11, 3.12, 3.13, 3.14"),
        (Request(gpu="gfx1100", python="3.7"), "RM010", "no release has Python '3.7'"),
        (Request(cell="rocm6.3-torch2.7.1-gfx1100-py3.12"), "RM010", "rocm6.3-torch2.7.1-gfx1100"),
        (Request(cell="rocm6.3-torch2.7.1-gfx906", python="3.13"), "RM011", "Python 3.12"),
        (Request(gpu="gfx906", rocm="7.2"), "RM012", "gfx906-rocblas-from-6.4"),
        (Request(gpu="gfx906", rocm="6.2", torch="2.5.1"), "RM012", "gfx906-mi50-torch-2.5.1"),
        (Request(gpu="Strix Halo", rocm="6.3"), "RM012", "rocm7.2-torch2.12.1-gfx1151"),
        (Request(gpu="RX 580"), "RM012", "gfx803-in-no-release"),
        (Request(gpu="RX 580"), "RM012", "--cell cpu-torch2.13.0"),
        (Request(gpu="780M", rocm="7.2"), "RM012", "gfx1103-rocblas-before-7.14"),
        (Request(torch="2.5.1", rocm="6.3"), "RM012", "the rocm6.3 index begins with torch 2.7"),
        (Request(torch="2.3.1", rocm="6.2"), "RM012", "rocm-versions-of-torch-2.3.1"),
        (Request(gpu="RX 6600", rocm="7.2"), "RM012", "HSA_OVERRIDE_GFX_VERSION=10.3.0 runs the code of gfx1030"),
        (Request(torch="2.15.0"), "RM014", "was built for no Python known here"),
    ],
)
def test_refusal_has_its_code_and_a_next_step(request_, code, words):
    with pytest.raises(RocmatrixError) as caught:
        resolve(MATRIX, request_)
    assert caught.value.code == code
    assert words in str(caught.value)


def check_total(request, cards):
    """Resolve, and assert that the answer is one of those that are allowed."""
    try:
        choice = resolve(MATRIX, request, cards=cards)
    except RocmatrixError as refusal:
        assert refusal.code in ("RM010", "RM011", "RM012", "RM014"), refusal
        if refusal.code == "RM012":
            rule = RULES[refusal.where.removeprefix("rule ")]
            assert rule.verdict == "broken"
            assert rule.decides
            assert all(source in refusal.why for source in rule.evidence.sources)
        if refusal.code != "RM010":
            near = [line.split()[1].rstrip(":") for line in refusal.next.splitlines() if line.startswith("--cell ")]
            assert near
            assert not any(MATRIX.cell(name).broken_by for name in near)
        return refusal.code
    assert not choice.cell.broken_by
    assert choice.cell.name not in [other.cell for other in choice.passed_over]
    assert all(other.why for other in choice.passed_over)
    return "cell"


def test_axes_in_any_combination_give_a_working_cell_or_a_reasoned_refusal():
    gpus = [None, "cpu", *(MATRIX.architectures if WHOLE else list(MATRIX.architectures)[::3])]
    found = {
        check_total(Request(rocm=r, torch=t, gpu=g), ()) for r in [None, *ROCM] for t in [None, *TORCH] for g in gpus
    }
    assert found == {"cell", "RM011", "RM012", "RM014"}


def test_cards_at_hand_give_a_working_cell_or_a_reasoned_refusal():
    for cards in itertools.chain(((gfx,) for gfx in MATRIX.architectures), [("gfx909",), ("gfx1036", "gfx1100")]):
        check_total(Request(), cards)
        check_total(Request(gpu="auto"), cards)


@settings(max_examples=examples(200), deadline=None)
@given(
    rocm=st.none() | st.sampled_from(ROCM) | st.text(max_size=8),
    torch=st.none() | st.sampled_from(TORCH) | st.text(max_size=8),
    gpu=st.none() | st.sampled_from(NAMES) | st.sampled_from(["auto", "cpu", "none"]) | st.text(max_size=12),
    cards=st.lists(st.sampled_from([*MATRIX.architectures, "gfx909"]), max_size=3).map(tuple),
)
def test_request_of_any_text_is_answered(rocm, torch, gpu, cards):
    check_total(Request(rocm=rocm, torch=torch, gpu=gpu), cards)


def test_caution_never_blocks_and_a_verdict_does():
    request = Request(gpu="gfx1100")
    chosen = resolve(MATRIX, request).cell
    evidence = Evidence(sources=["this test"], confidence="measured here", date="2026-11-21")

    def with_rule(**when):
        selector = Selector(architectures=["gfx1100"], rocm=f"=={chosen.release.rocm}", **when)
        rule = Rule(id="x", when=selector, verdict="broken", reason="so", evidence=evidence, expires="2027-01-01")
        return MATRIX.model_copy(update={"rules": [rule]})  # what was computed is computed again

    assert resolve(with_rule(given="it rains"), request).cell.name == chosen.name
    assert resolve(with_rule(), request).cell.name != chosen.name


def forced_or_refused(request):
    """Resolve twice, with and without force: only a citation of a rule is ever overridden."""
    try:
        plain = resolve(MATRIX, request)
    except RocmatrixError as refusal:
        try:
            choice = resolve(MATRIX, request, force=True)
        except RocmatrixError as stays:
            assert (stays.code, stays.where) == (refusal.code, refusal.where)
            assert ("--force has nothing to build" in stays.next) == (stays.code == "RM012")
            return refusal.code
        assert refusal.code == "RM012"
        assert choice.forced == choice.cell.broken_by
        assert choice.forced
        return "forced"
    assert resolve(MATRIX, request, force=True) == plain
    assert plain.forced == ()
    return "cell"


def test_force_overrides_rules_and_nothing_else():
    gpus = [None, "cpu", *MATRIX.architectures]
    found = [forced_or_refused(Request(gpu=gpu, torch=torch)) for gpu in gpus for torch in [None, *TORCH]]
    assert set(found) == {"cell", "forced", "RM011", "RM012", "RM014"}
    assert forced_or_refused(Request(rocm="6.3", torch="2.5.1", gpu="gfx1100")) == "RM012"  # nothing was built


def test_forced_request_gets_a_cell_that_the_matrix_lacks():
    choice = resolve(MATRIX, Request(gpu="MI50", rocm="7.2"), force=True)
    assert choice.cell.name == "rocm7.2-torch2.14.1-gfx906"
    assert choice.cell.unlocked_because is None  # the release is locked for other cards
    assert choice.cell not in MATRIX.cells
    assert [rule.id for rule in choice.forced] == ["gfx906-rocblas-from-6.4"]


def test_broken_cell_is_forced_by_name_and_by_axes():
    cell = resolve(MATRIX, Request(gpu="gfx1100", rocm="6.3")).cell
    evidence = Evidence(sources=["this test"], confidence="measured here", date="2026-11-21")
    selector = Selector(architectures=["gfx1100"], rocm="==6.3")
    rule = Rule(id="x", when=selector, verdict="broken", reason="so", evidence=evidence, expires="2027-01-01")
    broken = MATRIX.model_copy(update={"rules": [rule]})
    for request in (Request(cell=cell.name), Request(gpu="gfx1100", rocm="6.3")):
        with pytest.raises(RocmatrixError, match="RM012"):
            resolve(broken, request)
        choice = resolve(broken, request, force=True)
        assert (choice.cell.name, choice.forced) == (cell.name, (rule,))


@pytest.mark.parametrize("cards", [("gfx803",), ("gfx1036",), ("gfx1103",)])
def test_card_that_no_locked_cell_serves_leaves_the_cpu_and_reports_it(cards):
    choice = resolve(MATRIX, Request(), cards=cards)
    assert choice.cell.architecture is None
    assert cards[0] in choice.why


def test_card_that_is_served_comes_before_one_that_is_not():
    assert resolve(MATRIX, Request(), cards=("gfx1036", "gfx1100")).cell.architecture == "gfx1100"


@pytest.mark.parametrize(("name", "architecture"), [("GFX1100", "gfx1100"), ("CPU", None)])
def test_letter_case_does_not_matter(name, architecture):
    assert resolve(MATRIX, Request(gpu=name)).cell.architecture == architecture


@pytest.mark.parametrize(
    "request_",
    [
        Request(cell="cpu-torch2.13.0", gpu="gfx1100"),
        Request(cell="rocm6.3-torch2.7.1-gfx1100", rocm="7.2"),
        Request(cell="rocm6.3-torch2.7.1-gfx1100", torch="2.12.1"),
        Request(cell="rocm6.3-torch2.7.1-gfx1100", gpu="cpu"),
        Request(gpu="cpu", rocm="6.3"),
        Request(gpu="gfx1100", rocm="cpu"),
    ],
)
def test_axes_that_contradict_each_other_are_refused_and_all_are_kept(request_):
    with pytest.raises(RocmatrixError, match="contradict each other") as caught:
        resolve(MATRIX, request_)
    assert caught.value.code == "RM011"


@pytest.mark.parametrize("axes", [{"gpu": "RX 7900 XT"}, {"gpu": "auto"}, {"rocm": "6.3"}, {"torch": "2.7.1"}])
def test_cell_may_be_named_with_axes_that_agree(axes):
    name = "rocm6.3-torch2.7.1-gfx1100"
    assert resolve(MATRIX, Request(cell=name, **axes)).cell.name == name


def offered(request):
    """The cell that a request ends at, None where it is refused."""
    try:
        return resolve(MATRIX, request).cell
    except RocmatrixError:
        return None


def broken(architecture, release):
    return any(rule.verdict == "broken" and rule.decides for rule in MATRIX.rules_on(architecture, release))


SQUARES = [(gfx, release) for gfx in MATRIX.architectures for release in MATRIX.releases if release.rocm]


def test_image_is_offered_on_exactly_the_squares_that_no_rule_calls_broken():
    for gfx, release in SQUARES:
        cell = offered(Request(gpu=gfx, rocm=release.rocm, torch=release.torch))
        assert (cell is not None) == (bool(release.pythons) and not broken(gfx, release)), (gfx, release.name)
        if cell is not None:
            assert (cell.architecture, cell.release, cell.broken_by) == (gfx, release, ())
            assert MATRIX.cell(cell.name) == cell  # its name leads back to it


def test_recorded_locks_with_a_python_of_a_base_are_images():
    brought = {base.python for base in MATRIX.bases.values()}
    seen = 0
    for gfx, release in SQUARES:
        for python in brought & set(MATRIX.locks.get(release.lock_name(gfx), {})):
            cell = offered(Request(gpu=gfx, rocm=release.rocm, torch=release.torch, python=python))
            assert (cell is not None) == (not broken(gfx, release)), (gfx, release.name, python)
            if cell is not None:
                assert (cell.python, cell.unlocked_because) == (python, None)
            seen += cell is not None
    assert seen > 400


@settings(max_examples=examples(300), deadline=None)
@given(
    rocm=st.none() | st.sampled_from(ROCM),
    torch=st.none() | st.sampled_from(TORCH),
    gpu=st.sampled_from([*MATRIX.architectures, *(name for name in NAMES if NAMES.count(name) == 1)]),
)
def test_request_that_leaves_axes_open_is_offered_where_one_of_its_squares_is(rocm, torch, gpu):
    cell = offered(Request(rocm=rocm, torch=torch, gpu=gpu))
    gfx = architecture_of(MATRIX, gpu)
    releases = [r for r in MATRIX.releases if r.rocm and r.rocm == (rocm or r.rocm) and r.torch == (torch or r.torch)]
    assert (cell is not None) == any(release.pythons and not broken(gfx, release) for release in releases)


def test_name_with_companions_leads_to_the_cell_with_them():
    cell = MATRIX.cell("rocm6.3-torch2.7.1-gfx906-with-accelerate-flash-attn-peft")
    assert cell.companions == ("accelerate", "flash-attn", "peft")
    assert cell.release.name == "rocm6.3-torch2.7.1"


@pytest.mark.parametrize("words", ["peft-accelerate", "peftaccelerate", "peft-", "", "nothing", "peft-peft"])
def test_name_with_other_words_than_companions_in_order_is_unknown(words):
    with pytest.raises(RocmatrixError, match="RM010"):
        MATRIX.cell(f"rocm6.3-torch2.7.1-gfx906-with-{words}")


def test_degraded_cell_of_two_equal_ones_comes_last():
    (cell,) = [cell for cell in MATRIX.cells if cell.name == "rocm6.3-torch2.7.1-gfx1100"]
    rule = next(rule for rule in MATRIX.rules if rule.verdict == "degraded" and rule.decides)
    worse = cell.model_copy(update={"name": "worse", "rules": (rule,)})
    better = cell.model_copy(update={"name": "better", "rules": ()})
    assert (worse.verdict, better.verdict) == ("degraded", "untested")
    for request in (Request(gpu="gfx1100"), Request()):
        for both in ([worse, better], [better, worse]):
            assert [each.name for each in sorted(both, key=preference(request))] == ["better", "worse"]


def test_release_without_a_caution_comes_before_a_newer_one_with_one():
    assert resolve(MATRIX, Request(gpu="MI300X", torch="2.6.0")).cell.name == "rocm6.1-torch2.6.0-gfx942"
    assert resolve(MATRIX, Request(gpu="MI300X", torch="2.6.0", rocm="6.2.4")).cell.verdict == "degraded"


@pytest.mark.parametrize(
    ("rocm", "gpu", "release"),
    [("6", "gfx1100", "6.3"), ("7", "gfx1100", "7.2"), ("6", "gfx906", "6.3"), ("5", "gfx906", "5.7"),
     ("7", "gfx1151", "7.2")],
)  # fmt: skip
def test_series_takes_the_cell_of_a_request_without_a_version_among_its_own(rocm, gpu, release):
    assert resolve(MATRIX, Request(rocm=rocm, gpu=gpu)).cell.release.rocm == release


def test_answer_to_an_open_request_names_the_card_that_is_there_and_cannot_be_used():
    choice, refusal = answer(MATRIX, Request(), unusable="gfx1100 without a driver")
    assert refusal is None and choice is not None
    assert choice.unserved == "gfx1100 without a driver" and "gfx1100 without a driver" in choice.why
