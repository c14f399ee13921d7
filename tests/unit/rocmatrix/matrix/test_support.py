"""AMD's lists are read by ROCm line and by card: a sister card's entry, or another line's, is none."""

import pytest

from rocmatrix.matrix.card_names import card_of
from rocmatrix.matrix.loading.load import dangling
from rocmatrix.matrix.support import Support, SupportTable, support
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures.cells import MATRIX


@pytest.mark.parametrize(
    ("gfx", "rocm", "card", "listing"),
    [
        ("gfx906", "5.7", "Instinct MI50", "listed"),
        ("gfx906", "6.0", "Instinct MI50", "maintained"),
        ("gfx906", "6.0", "Instinct MI60", "not listed"),
        ("gfx906", "6.3", "Instinct MI50", "not listed"),
        ("gfx1030", "6.4", "Radeon Pro W6800", "listed"),
        ("gfx1030", "6.4", "Radeon RX 6800 XT", "not listed"),
        ("gfx1101", "6.3", "Radeon RX 7800 XT", "not listed"),
        ("gfx1101", "6.4", "Radeon RX 7800 XT", "listed"),
        ("gfx1101", "6.4", "Radeon RX 7700 XT", "not listed"),
        ("gfx1101", "7.0", "Radeon RX 7700 XT", "listed"),
        ("gfx950", "6.4", None, "not listed"),
        ("gfx950", "7.0", None, "listed"),
        ("gfx1100", "1.0", None, "not read"),
        (None, "7.2", None, "not read"),
    ],
)
def test_card_is_listed_only_where_its_own_line_names_it(gfx, rocm, card, listing):
    assert MATRIX.support_of(gfx, rocm, card=card).listing == listing


def test_rocm_lines_of_a_release_have_a_list_that_was_read():
    lines = {release.rocm for release in MATRIX.releases if release.rocm}
    assert lines == {rocm for table in MATRIX.support for rocm in table.rocm}


def test_card_that_no_architecture_knows_is_a_mistake_with_its_place():
    table = MATRIX.support[0].model_copy(update={"listed": {"gfx906": ["Instinct MI5O"]}})
    broken = MATRIX.model_copy(update={"support": [table]})
    assert [path for path, _ in dangling(broken)] == [("support", 0, "listed", "gfx906", 0)]
    other = table.model_copy(update={"listed": {}, "rocm": ["6.9"]})
    assert [path for path, _ in dangling(MATRIX.model_copy(update={"support": [other]}))] == [("support", 0, "rocm")]


@pytest.mark.parametrize(
    ("name", "gfx", "card"),
    [
        ("RX 7900 XT", "gfx1100", "Radeon RX 7900 XT"),
        ("rx 7900 xtx 24GB", "gfx1100", "Radeon RX 7900 XTX"),
        ("7900 xt", "gfx1100", "Radeon RX 7900 XT"),
        ("Radeon Pro W7800 48GB", "gfx1100", "Radeon Pro W7800 48GB"),
        ("w7800", "gfx1100", "Radeon Pro W7800"),
        ("Strix Halo", "gfx1151", None),
        ("gfx1100", "gfx1100", None),
        (None, "gfx1100", None),
        ("RX 7900 XT", "gfx906", None),
    ],
)
def test_name_means_one_card_or_the_architecture(name, gfx, card):
    assert card_of(MATRIX.architectures, name, gfx) == card


def test_chips_are_names_of_their_architecture():
    for gfx, entry in MATRIX.architectures.items():
        assert set(entry.chips) <= set(entry.names), gfx


def test_listed_names_are_no_chips():
    for table in MATRIX.support:
        for gfx in {*table.listed, *table.maintained}:
            assert not set(table.cards(gfx)) & set(MATRIX.architectures[gfx].chips)


def test_unknown_card_is_an_error_and_never_unlisted():
    from rocmatrix.matrix.card_names import architecture_of

    with pytest.raises(RocmatrixError, match="RM010"):
        architecture_of(MATRIX.architectures, "RX 7900 XTT")


EVIDENCE = {"sources": ["made up"], "confidence": "derived", "date": "2026-11-21"}


def table(**fields):
    return SupportTable.model_validate({"rocm": ["6.3"], "listed": {}, "evidence": EVIDENCE} | fields)


ONE = table(listed={"gfx906": ["A", "B"]}, maintained={"gfx906": ["C"], "gfx1100": ["D"]})
TWO = table(listed={"gfx906": ["C", "E"]}, rocm=["6.3", "6.4"])


def test_cards_of_a_list_are_the_listed_and_then_the_maintained_ones():
    assert ONE.cards("gfx906") == ("A", "B", "C")
    assert ONE.cards("gfx1100") == ("D",)
    assert ONE.cards("gfx1101") == ()


@pytest.mark.parametrize(("cards", "named"), [(["A"], True), (["x", "D"], True), (["x"], False), ([], False)])
def test_list_names_a_card_of_any_architecture(cards, named):
    assert ONE.names(cards) is named


def test_support_is_read_from_every_list_of_the_line():
    whole = support([ONE, TWO], architecture="gfx906", rocm="6.3")
    assert whole == Support(listing="listed", cards=("A", "B", "C", "E"), tables=(ONE, TWO))
    assert support([ONE, TWO], architecture="gfx906", rocm="6.3", card="C").listing == "listed"  # by the second list
    assert support([ONE], architecture="gfx906", rocm="6.3", card="C").listing == "maintained"
    assert support([ONE], architecture="gfx1100", rocm="6.3").listing == "maintained"
    later = support([ONE, TWO], architecture="gfx906", rocm="6.4", card="A")
    assert later == Support(listing="not listed", cards=("C", "E"), tables=(TWO,))
    assert support([ONE], architecture="gfx906", rocm="7.0") == Support(listing="not read", cards=(), tables=())
    assert support([ONE], architecture=None, rocm="6.3") == Support(listing="not read", cards=(), tables=(ONE,))


@pytest.mark.parametrize(
    ("listing", "official"), [("listed", True), ("maintained", True), ("not listed", False), ("not read", False)]
)
def test_support_is_official_where_a_card_is_on_a_list(listing, official):
    assert Support(listing=listing, cards=("A",), tables=()).official is official


@pytest.mark.parametrize(
    ("listing", "cards", "card", "words"),
    [
        ("not listed", (), "A", "no card of gfx906 is listed"),
        ("listed", ("A", "B"), None, "listed are A, B"),
        ("maintained", ("A",), None, "listed are A, in maintenance (AMD calls it deprecated)"),
        ("listed", ("A",), "A", "the A is listed"),
        ("maintained", ("A",), "A", "the A is listed, in maintenance (AMD calls it deprecated)"),
        ("not listed", ("A", "B"), "C", "the C is not listed, A, B are"),
    ],
)
def test_support_as_text_names_the_cards(listing, cards, card, words):
    assert Support(listing=listing, cards=cards, tables=()).summary("gfx906", card) == words


def test_lists_to_cite_are_those_that_name_a_card_else_all():
    assert Support(listing="listed", cards=("E",), tables=(ONE, TWO)).speaking == (TWO,)
    assert Support(listing="not listed", cards=(), tables=(ONE, TWO)).speaking == (ONE, TWO)
