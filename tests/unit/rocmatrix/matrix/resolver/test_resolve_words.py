"""What a choice states: why it was taken, what was passed over and why, and what a refusal leaves to do."""

import pytest

from rocmatrix.matrix.resolver import resolve as resolving
from rocmatrix.matrix.resolver.request import Request
from rocmatrix.matrix.resolver.resolve import answer, resolve, with_hardware
from rocmatrix.matrix.rule import Rule
from rocmatrix.matrix.statement import Evidence, Selector
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures.cells import MATRIX

CELLS = {cell.name: cell for cell in MATRIX.cells}
CELL, CPU = CELLS["rocm6.3-torch2.7.1-gfx1100"], CELLS["cpu-torch2.13.0"]
EVIDENCE = Evidence(sources=["this test"], confidence="measured here", date="2026-11-21")


def rule(verdict="broken", *, name="x", reason="so", **when):
    return Rule(id=name, when=Selector(**when), verdict=verdict, reason=reason, evidence=EVIDENCE, expires="2027-01-01")


def plain(**fields):
    return CELL.model_copy(update={"recommended": False, "official": False, "rules": (), "why": "written so"} | fields)


@pytest.mark.parametrize(
    ("recommended", "official", "words"),
    [
        (False, False, "written so"),
        (True, False, "recommended for its architecture; written so"),
        (False, True, "AMD lists cards of it for this ROCm; written so"),
        (True, True, "recommended for its architecture, AMD lists cards of it for this ROCm; written so"),
    ],
)
def test_merits_of_a_cell_are_its_marks_and_its_reason(recommended, official, words):
    assert resolving._merits(plain(recommended=recommended, official=official)) == words


class Unlocked:
    """A cell as it is judged: without a lock."""

    def __init__(self, cell):
        self.cell = cell
        self.unlocked_because = "no hash"

    def __getattr__(self, name):
        return getattr(self.cell, name)


OLDER = CELL.release.model_copy(update={"torch": "2.6.0", "rocm": "6.2"})
CAUTION = rule("degraded", reason="beware", given="it rains")
RULES = (rule("degraded", reason="slow"), rule("works", reason="fine"), CAUTION, rule("degraded", reason="hot"))


@pytest.mark.parametrize(
    ("cell", "best", "words"),
    [
        (Unlocked(plain()), plain(), "unlocked: no hash"),
        (Unlocked(plain(rules=RULES)), Unlocked(plain()), "slow; hot"),
        (plain(rules=RULES), Unlocked(plain()), "slow; hot"),
        (plain(), plain(official=True), "AMD lists no card of gfx1100 for ROCm 6.3"),
        (plain(official=True, rules=RULES), plain(official=True), "slow; hot"),
        (plain(official=True, rules=RULES), plain(), "slow; hot"),
        (plain(), plain(recommended=True), "not the recommended cell of its architecture"),
        (plain(recommended=True, rules=RULES), plain(recommended=True), "slow; hot"),
        (plain(recommended=True, rules=RULES), plain(), "slow; hot"),
        (plain(architecture="gfx906"), plain(), "for gfx906; name it with --gpu gfx906"),
        (plain(release=OLDER), plain(), "older: torch 2.6.0, ROCm 6.2"),
        (plain(rules=RULES), plain(), "slow; hot"),
    ],
)
def test_rejected_cell_is_worse_for_the_first_reason_that_holds(cell, best, words):
    assert resolving._why_less(cell, best) == words


def test_rejected_cell_is_written_or_of_the_same_card():
    choice = resolve(MATRIX, Request(gpu="gfx1100", rocm="7.1"))  # derived: no cell is written for it
    same = {other.cell for other in choice.passed_over}
    assert same
    assert all(name.startswith("rocm7.1-") and "-gfx1100" in name for name in same)
    open_card = {other.cell for other in resolve(MATRIX, Request(rocm="7.1")).passed_over}
    assert open_card
    assert all("-gfx1100" in name for name in open_card)
    written = {other.cell for other in resolve(MATRIX, Request(rocm="7.2")).passed_over}
    assert {"rocm7.2-torch2.12.1-gfx942", "rocm7.2-torch2.12.1-gfx1151"} <= written


@pytest.mark.parametrize(
    ("axes", "cards", "filled", "words"),
    [
        ({}, (), {"gpu": "cpu"}, "no AMD card was found; "),
        ({"rocm": "6.3"}, (), {}, "no AMD card was found, so the best-supported architecture was taken; "),
        ({"torch": "2.7.1", "gpu": "auto"}, (), {"gpu": None}, "no AMD card was found, so the best"),
        ({"gpu": "cpu"}, ("gfx1100",), {"gpu": "cpu"}, ""),
        ({"gpu": " CPU "}, (), {"gpu": "cpu"}, ""),
        ({"gpu": "none"}, (), {"gpu": "cpu"}, ""),
        ({"rocm": "none"}, ("gfx1100",), {"gpu": "cpu", "rocm": None}, ""),
        ({"rocm": "cpu", "gpu": "auto"}, (), {"gpu": "cpu", "rocm": None}, ""),
        ({"gpu": "GFX1100"}, (), {"gpu": "gfx1100"}, ""),
        ({"gpu": " GFX90A "}, (), {"gpu": "gfx90a"}, ""),
        ({"gpu": "RX 7900 XT"}, ("gfx906",), {"gpu": "gfx1100"}, ""),
        ({"rocm": "6.3"}, ("gfx909", "gfx906", "gfx1100"), {"gpu": "gfx906"}, "this machine has a gfx906; "),
        ({"gpu": "auto"}, ("gfx1036",), {"gpu": "cpu"}, "this machine's gfx1036 has no locked cell that works; "),
        ({}, ("gfx803", "gfx803"), {"gpu": "cpu"}, "this machine's gfx803 has no locked cell that works; "),
        ({"gpu": "auto", "rocm": "6.3"}, ("gfx1036",), {"gpu": "gfx1036"}, "this machine has a gfx1036; "),
        ({"rocm": "6.3"}, ("gfx909", "gfx1036"), {"gpu": "gfx1036"}, "this machine has a gfx1036; "),  # first known
        ({"rocm": "6.3"}, ("gfx803", "gfx1100"), {"gpu": "gfx1100"}, "this machine has a gfx1100; "),
        ({"torch": "2.7.1"}, ("gfx1100", "gfx906"), {"gpu": "gfx1100"}, "this machine has a gfx1100; "),
        ({}, ("gfx1036", "gfx1100"), {"gpu": "gfx1100"}, "this machine has a gfx1100; "),
        ({}, ("gfx803",), {"gpu": "cpu"}, "this machine's gfx803 has no locked cell that works; "),
    ],
)
def test_card_is_the_one_named_else_this_machines_else_open(axes, cards, filled, words):
    request, found = with_hardware(MATRIX, Request(**axes), cards)
    assert request == Request(**(axes | filled))
    assert found.startswith(words) if words else found == ""


@pytest.mark.parametrize(
    ("cards", "named"),
    [(("gfx1032", "gfx1035"), "gfx1032"), (("gfx803", "gfx1152"), "gfx1152"), (("gfx1033",), ""), (("gfx803",), "")],
)
def test_card_that_only_an_unlocked_cell_serves_is_given_its_cell(cards, named):
    choice = resolve(MATRIX, Request(), cards=cards)
    assert choice.unserved == f"this machine's {', '.join(cards)} has no locked cell that works"
    assert (choice.unlocked or "").endswith(f"-{named}" if named else "")
    if named:
        assert resolve(MATRIX, Request(cell=choice.unlocked)).cell.unlocked_because
    else:
        assert choice.unlocked is None


@pytest.mark.parametrize(
    ("axes", "cards"), [({}, ()), ({}, ("gfx1100",)), ({"gpu": "cpu"}, ("gfx803",)), ({"rocm": "cpu"}, ("gfx803",))]
)
def test_cpu_that_was_named_or_is_all_there_is_stands_for_no_card(axes, cards):
    choice = resolve(MATRIX, Request(**axes), cards=cards)
    assert (choice.unserved, choice.unlocked) == (None, None)


@pytest.mark.parametrize(
    ("cards", "taken"),
    [(("gfx803", "gfx1032", "gfx1035"), "gfx1032"), (("gfx1032", "gfx1100"), "gfx1100"), (("gfx803",), None)],
)
def test_unlocked_cell_serves_a_card_that_no_other_does_where_that_is_allowed(cards, taken):
    choice = resolve(MATRIX, Request(), cards=cards, allow_unlocked=True)
    assert (choice.cell.architecture, choice.unserved is None, choice.unlocked) == (taken, taken is not None, None)


def test_answer_is_a_choice_or_its_refusal_and_an_unknown_name_is_raised():
    request = Request(rocm="6.3")
    assert answer(MATRIX, request, ("gfx906",)) == (resolve(MATRIX, request, cards=("gfx906",)), None)
    choice, refusal = answer(MATRIX, Request(gpu="gfx803"))
    assert (choice, refusal.code) == (None, "RM012")
    with pytest.raises(RocmatrixError, match="RM010"):
        answer(MATRIX, Request(gpu="gfx1"))


@pytest.mark.parametrize(
    "cards",
    [(), ("gfx1100",), ("gfx900", "gfx1102"), ("gfx803", "gfx1201"), ("gfx1036",), ("gfx803",), ("gfx909", "gfx906")],
)
@pytest.mark.parametrize("axes", [{}, {"rocm": "6.3"}, {"torch": "2.7.1"}])
def test_auto_and_no_card_named_agree(cards, axes):
    try:
        plain = with_hardware(MATRIX, Request(**axes), cards)
    except RocmatrixError as refusal:
        with pytest.raises(RocmatrixError, match=refusal.code):
            with_hardware(MATRIX, Request(**axes, gpu="auto"), cards)
        return
    (auto, words) = with_hardware(MATRIX, Request(**axes, gpu="auto"), cards)
    assert (auto, words) == plain


@pytest.mark.parametrize("axes", [{}, {"gpu": "auto"}, {"rocm": "6.3"}, {"torch": "2.7.1"}])
def test_card_that_is_there_and_unusable_is_never_reported_as_absent(axes):
    words = with_hardware(MATRIX, Request(**axes), (), unusable="1 AMD card is there: no driver")[1]
    assert words.startswith("1 AMD card is there: no driver")
    assert "no AMD card" not in words
    served = with_hardware(MATRIX, Request(**axes), ("gfx1100",), unusable="1 AMD card is there: no driver")[1]
    assert served == "this machine has a gfx1100; 1 AMD card is there: no driver; "
    assert resolve(MATRIX, Request(**axes), unusable="1 AMD card is there: no driver").why.startswith(words)


def test_unknown_card_is_named_as_it_was_typed():
    with pytest.raises(RocmatrixError, match="RM010") as caught:
        with_hardware(MATRIX, Request(gpu="RX 7900 XTT"), ())
    assert "'RX 7900 XTT'" in caught.value.what


def test_card_of_this_machine_that_nothing_is_known_of_is_refused_by_its_name():
    with pytest.raises(RocmatrixError, match="RM010") as caught:
        with_hardware(MATRIX, Request(rocm="6.3"), ("gfx909", "gfx9999"))
    assert "gfx909" in caught.value.what


@pytest.mark.parametrize(
    ("axes", "near"),
    [
        ({"gpu": "cpu", "rocm": "6.3"}, "--cell rocm6.3-torch2.7.1-gfx1100"),
        ({"gpu": "gfx906", "rocm": "cpu"}, "--cell rocm6.3-torch2.7.1-gfx906"),
        ({"gpu": "gfx1151", "rocm": "none"}, "--cell rocm7.2-torch2.12.1-gfx1151"),
        ({"gpu": "cpu", "rocm": "6.0"}, "--cell rocm6.0-torch2.4.1-gfx906"),
    ],
)
def test_cpu_and_a_card_together_are_refused_with_the_nearest_cells_of_the_card(axes, near):
    request = Request(**axes)
    with pytest.raises(RocmatrixError, match="RM011") as caught:
        resolve(MATRIX, request)
    lines = caught.value.next.splitlines()
    assert lines[0] == "leave out one of them"
    assert lines[1].startswith(near)
    assert caught.value.what == f"{request} contradict each other"


@pytest.mark.parametrize("gpu", ["auto", None, "AUTO", "RX 7900 XTX"])
def test_named_cell_agrees_with_its_own_card_and_with_one_left_open(gpu):
    assert resolve(MATRIX, Request(cell=CELL.name, gpu=gpu), cards=("gfx906",)).cell.name == CELL.name


@pytest.mark.parametrize(
    ("cell", "axes", "words"),
    [
        (CELL, {"rocm": "7.2"}, "is ROCm 6.3 on gfx1100, torch 2.7.1, Python 3.12"),
        (CELL, {"gpu": "gfx906"}, "is ROCm 6.3 on gfx1100, torch 2.7.1, Python 3.12"),
        (CPU, {"torch": "2.12.1"}, f"is the CPU build, torch 2.13.0, Python {CPU.python}"),
        (CPU, {"gpu": "gfx1100"}, f"is the CPU build, torch 2.13.0, Python {CPU.python}"),
    ],
)
def test_named_cell_that_another_axis_contradicts_states_what_it_is(cell, axes, words):
    request = Request(cell=cell.name, **axes)
    with pytest.raises(RocmatrixError, match="RM011") as caught:
        resolve(MATRIX, request)
    assert caught.value.why == f"{cell.name} {words}"
    assert caught.value.next.splitlines()[0] == "leave out one of them"
    assert caught.value.next.splitlines()[1].startswith(f"--cell {cell.name}: ")


def test_broken_cell_that_is_named_is_refused_by_its_name():
    broken = MATRIX.model_copy(update={"rules": [rule(architectures=["gfx1100"], rocm="==6.3")]})
    with pytest.raises(RocmatrixError, match="RM012") as caught:
        resolve(broken, Request(cell=CELL.name))
    assert caught.value.what == f"{CELL.name}: so"


def test_written_cell_without_hashes_does_not_keep_derived_ones_out():
    written = [cell for cell in MATRIX.cells if cell.unlocked_because and not cell.broken_by]
    cell = next(cell for cell in written if cell.architecture == "gfx1031")
    found = resolving._candidates(MATRIX, Request(gpu="gfx1031"))
    assert cell in found
    assert len(found) > len([each for each in MATRIX.cells if each.architecture == "gfx1031"])


def test_force_that_has_nothing_to_build_states_so_before_the_cells_and_keeps_the_rest():
    request = Request(rocm="6.3", torch="2.5.1", gpu="gfx1100")
    with pytest.raises(RocmatrixError) as refused:
        resolve(MATRIX, request)
    with pytest.raises(RocmatrixError) as forced:
        resolve(MATRIX, request, force=True)
    before, after = refused.value, forced.value
    assert (after.code, after.what, after.where, after.why) == (before.code, before.what, before.where, before.why)
    assert after.code == "RM012"
    assert after.next.startswith("--force has nothing to build: ")
    assert after.next.split("\n", 1)[1] == before.next


@pytest.mark.parametrize(
    ("axes", "words", "near"),
    [
        ({"rocm": "6.33"}, "no release has ROCm '6.33'", "6.3"),
        ({"torch": "2.99"}, "no release has torch '2.99'", "2."),
        ({"python": "3.7"}, "no release has Python '3.7'", "3."),
    ],
)
def test_version_that_no_release_has_is_named_with_its_axis_and_the_nearest(axes, words, near):
    with pytest.raises(RocmatrixError, match="RM010") as caught:
        resolve(MATRIX, Request(**axes))
    assert caught.value.what == words
    assert near in caught.value.next
