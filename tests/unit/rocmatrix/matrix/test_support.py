"""AMD's lists are read by ROCm line and by card: a sister card's entry, or another line's, is none."""

import pytest

from rocmatrix.matrix.card_names import card_of
from rocmatrix.matrix.loading.load import dangling
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
