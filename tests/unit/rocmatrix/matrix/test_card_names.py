"""Cards answer to the names people use, and a name that could be several is refused with all of them."""

import pytest

from rocmatrix.matrix.card_names import architecture_of, card_of, unserved
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures.cells import MATRIX

ARCHITECTURES = MATRIX.architectures


@pytest.mark.parametrize(
    ("name", "gfx"),
    [
        ("RX 7900 XT", "gfx1100"),
        ("AMD Radeon RX 7900 XTX", "gfx1100"),
        ("rx7900xtx", "gfx1100"),
        ("7900 XT", "gfx1100"),
        ("W7900", "gfx1100"),
        ("MI50", "gfx906"),
        ("AMD Instinct MI50", "gfx906"),
        ("Radeon VII", "gfx906"),
        ("Strix Halo", "gfx1151"),
        ("Ryzen AI Max+ 395", "gfx1151"),
        ("Radeon 8060S", "gfx1151"),
        ("Radeon AI PRO R9700", "gfx1201"),
        ("R9700", "gfx1201"),
        ("RX 9070 XT", "gfx1201"),
        ("mi300x", "gfx942"),
        ("780M", "gfx1103"),
        ("RX 6600", "gfx1032"),
        ("RX 6700 XT", "gfx1031"),
        ("RX 580", "gfx803"),
        ("Vega 64", "gfx900"),
        ("Steam Deck", "gfx1033"),
        ("gfx90c", "gfx90c"),
        ("gfx906:sramecc+:xnack-", "gfx906"),
        ("RX 7900 XT 20GB", "gfx1100"),
        ("vega 64 LC", "gfx900"),
        ("rx 6900 xt lc", "gfx1030"),
        ("xfx merc 319 6800", "gfx1030"),  # a line of boards: no Ryzen 7 6800H
        ("gigabyte eagle 7600", "gfx1102"),
        ("sapphire nitro+ 6800", "gfx1030"),
        ("sapphire mi50", "gfx906"),
        ("AMD Radeon RX 9070 XT 16 GB", "gfx1201"),
        ("Navi 31 [Radeon RX 7900 XT/7900 XTX/7900M] (rev c8)", "gfx1100"),
        ("HX 370", "gfx1150"),
        ("7840HS", "gfx1103"),
        ("8845HS", "gfx1103"),
        ("5700G", "gfx90c"),
        ("9950X", "gfx1036"),
        ("MI350", "gfx950"),
        ("MI300", "gfx942"),
        ("MI300X VF", "gfx942"),
        ("AMD Instinct MI60 / MI50", "gfx906"),
        ("AMD Instinct MI250X / MI250", "gfx90a"),
        ("AI MAX 395", "gfx1151"),
        ("AMD Radeon(TM) 8060S Graphics", "gfx1151"),
        ("Radeon (TM) PRO WX 8200", "gfx900"),
        ("WX 7100", "gfx803"),
        ("Radeon RX 580 Series", "gfx803"),
        ("Polaris 10", "gfx803"),
        ("W6900X", "gfx1030"),
        ("ROG Ally", "gfx1103"),
        ("Legion Go", "gfx1103"),
        ("Sapphire Nitro+ RX 7900 XTX", "gfx1100"),
        ("ASRock Radeon RX 6950 XT Phantom Gaming OC", "gfx1030"),
        ("AMD Custom GPU 0405", "gfx1033"),
        ("TUF-RX7900XTX-O24G-GAMING", "gfx1100"),  # a board's part number has its memory
        ("RX6750GRE12G", "gfx1031"),
        ("RX7900GRE 16G-E/OC", "gfx1100"),
        ("RX7900XT PG 20GO", "gfx1100"),
        ("AMD Radeon Graphics (RADV GFX1103_R1)", "gfx1103"),
        ("Standard_ND96isr_MI300X_v5", "gfx942"),
        ("HP Z2 Mini G1a", "gfx1151"),  # no Ryzen Z2, which is a gfx1103
        ("Ryzen Z2", "gfx1103"),
        ("The XT 5500", "gfx1012"),
        ("Advanced Micro Devices, Inc. [AMD/ATI] Vega 20 [Radeon Pro VII/Radeon Instinct MI50 32GB]", "gfx906"),
    ],
)
def test_cards_answer_to_the_names_people_use(name, gfx):
    assert architecture_of(ARCHITECTURES, name) == gfx


@pytest.mark.parametrize(
    ("name", "gfx", "card"),
    [
        ("AMD Ryzen AI 9 HX 470 w/ Radeon 890M", "gfx1150", "Ryzen AI 9 HX 470"),  # a processor and its own GPU
        ("AMD RYZEN AI MAX+ 395 w/ Radeon 8060S", "gfx1151", "Ryzen AI Max+ 395"),
        ("Ryzen AI Max 395", "gfx1151", "Ryzen AI Max+ 395"),
        ("Intel Core i7 with RX 6600", "gfx1032", "Radeon RX 6600"),
        ("AMD Radeon(TM) 890M Graphics", "gfx1150", None),
        ("4x AMD Radeon AI PRO R9700", "gfx1201", "Radeon AI PRO R9700"),
        ("2 x RX 7900 XT", "gfx1100", "Radeon RX 7900 XT"),
        ("Framework Laptop 16 7700S", "gfx1102", "Radeon RX 7700S"),
        ("Sapphire Nitro+ RX 7900 XTX", "gfx1100", "Radeon RX 7900 XTX"),
        ("PowerColor Red Devil RX7800XT 16GB", "gfx1101", "Radeon RX 7800 XT"),
        ("ASUS ROG Strix RX 6700 XT", "gfx1031", "Radeon RX 6700 XT"),
        ("Instinct MI300X VF", "gfx942", "Instinct MI300X"),
        ("W7900DS", "gfx1100", "Radeon Pro W7900 Dual Slot"),
        ("Vega VII", "gfx906", "Radeon VII"),
        ("RX 6800 M", "gfx1031", "Radeon RX 6800M"),  # not the RX 6800
        ("Gigabyte Radeon RX 9070 Gaming OC 16G", "gfx1201", "Radeon RX 9070"),
        ("AMD Instinct MI250X/MI250", "gfx90a", "Instinct MI250X"),
        ("Sapphire Pulse AMD Radeon RX 7800 XT 16GB GDDR6", "gfx1101", "Radeon RX 7800 XT"),
        ("AMD Instinct MI300X (8x)", "gfx942", "Instinct MI300X"),
        ("RX7900XTX 24GB x2", "gfx1100", "Radeon RX 7900 XTX"),
        ("ROG Ally Z1 Extreme", "gfx1103", "Ryzen Z1 Extreme"),
        ("AMD Radeon Graphics (gfx1036)", "gfx1036", None),
        ("Navi 21 [Radeon RX 6800/6800 XT / 6900 XT] (rev c1)", "gfx1030", "Radeon RX 6800"),
        ("AMD Ryzen 9 8999HS w/ Radeon 780M Graphics", "gfx1103", "amd ryzen 9 8999hs"),  # in no list
        ("Radeon 780M", "gfx1103", None),
    ],
)
def test_name_with_words_around_it_is_the_same_card(name, gfx, card):
    assert architecture_of(ARCHITECTURES, name) == gfx
    assert card_of(ARCHITECTURES, name, gfx) == card


@pytest.mark.parametrize(
    "name",
    ["RX 6800 XTX", "RX 580 4096SP", "RTX 7900 XT", "GTX 580", "Vega 8", "laptop", "gpu", "RX 16", "4x", "with", "+"],
)
def test_name_with_a_word_that_changes_it_is_no_card(name):
    with pytest.raises(RocmatrixError, match="RM010"):
        architecture_of(ARCHITECTURES, name)


def test_processor_next_to_a_card_of_another_architecture_names_both():
    with pytest.raises(RocmatrixError, match="RM010") as caught:
        architecture_of(ARCHITECTURES, "Ryzen 9 7900X with RX 7900 XT")
    assert "Ryzen 9 7900X (gfx1036)" in caught.value.what and "Radeon RX 7900 XT (gfx1100)" in caught.value.what


@pytest.mark.parametrize("gfx", ARCHITECTURES)
def test_names_of_an_architecture_lead_to_it_or_name_its_rivals(gfx):
    for name in ARCHITECTURES[gfx].names:
        try:
            assert architecture_of(ARCHITECTURES, name) == gfx
        except RocmatrixError as refusal:
            assert f"{name} ({gfx})" in refusal.what


@pytest.mark.parametrize(
    ("name", "candidates"),
    [
        ("7900", ["Radeon RX 7900 XT (gfx1100)", "Radeon RX 7900 XTX (gfx1100)", "Ryzen 9 7900X (gfx1036)"]),
        ("RX 6700", None),
        ("6700", None),
        ("840M", ["Radeon 840M (gfx1152)", "Radeon 840M (gfx1153)"]),
        ("Instinct", None),
        ("MI30", ["Instinct MI300X (gfx942)"]),
        ("MI25/50/60", ["Instinct MI25 (gfx900)", "Instinct MI50 (gfx906)", "Instinct MI60 (gfx906)"]),
        ("W6800/7900", ["W6800 (gfx1030)", "W7900 (gfx1100)"]),
        ("90", None),
        ("Vega", None),
        ("", None),
    ],
)
def test_name_that_could_be_several_cards_lists_them(name, candidates):
    if name in ("RX 6700", "6700"):  # a card of exactly that name exists
        assert architecture_of(ARCHITECTURES, name) == "gfx1031"
        return
    with pytest.raises(RocmatrixError, match="RM010") as caught:
        architecture_of(ARCHITECTURES, name)
    for candidate in candidates or []:
        assert candidate in caught.value.what


def test_long_list_of_candidates_is_cut_with_a_count():
    with pytest.raises(RocmatrixError, match=r"and \d+ more"):
        architecture_of(ARCHITECTURES, "RX 6")


def test_unknown_name_gets_the_nearest():
    with pytest.raises(RocmatrixError, match="did you mean Radeon RX 7900 XT"):
        architecture_of(ARCHITECTURES, "Radeon RX 7990 XT")


@pytest.mark.parametrize("name", ["RTX 4090", "GeForce GTX 1080", "H100", "NVIDIA A100", "Intel Arc B580"])
def test_name_of_another_makers_card_gets_no_card_of_amds_as_the_nearest(name):
    with pytest.raises(RocmatrixError, match="RM010") as caught:
        architecture_of(ARCHITECTURES, name)
    assert "another maker's" in caught.value.next
    assert "did you mean" not in caught.value.next


@pytest.mark.parametrize(
    "name", ["0", "0,1", "0-3", "all", "Any", "card 1", "gpu0", "cuda:0", "igpu", "renderD128", "03:00.0"]
)
def test_place_in_a_machine_names_no_kind_of_card(name):
    with pytest.raises(RocmatrixError, match="names no kind of card") as caught:
        architecture_of(ARCHITECTURES, name)
    assert "--gpu auto" in caught.value.next


@pytest.mark.parametrize(("name", "gfx"), [("BC-250", "gfx1013"), ("Raven Ridge", "gfx902"), ("R9 390X", "gfx701")])
def test_card_that_no_release_was_built_for_is_named_so(name, gfx):
    with pytest.raises(RocmatrixError, match=f"is a {gfx}, for which no release was built") as caught:
        architecture_of(ARCHITECTURES, name)
    assert "no wheel has code for it" in caught.value.next
    assert unserved(ARCHITECTURES, name) == gfx and unserved(ARCHITECTURES, "gfx1100") is None


@pytest.mark.parametrize(
    ("name", "card"),
    [
        ("dual R9700s", "Radeon AI PRO R9700"),
        ("2x R9700S", "Radeon AI PRO R9700S"),
        ("AI Pro 9700", "Radeon AI PRO R9700"),
    ],
)
def test_cards_of_several_are_the_card_and_not_another_with_an_s(name, card):
    assert card_of(ARCHITECTURES, name, "gfx1201") == card


def test_family_of_several_cards_of_one_architecture_is_that_architecture():
    assert architecture_of(ARCHITECTURES, "Vega M") == "gfx803"


@pytest.mark.parametrize("name", ["Nitro+", "Sapphire", "Radeon RX 7990 XT Pulse", "RX 5700XTX", "Ryzen 9 7950X4D"])
def test_words_of_a_board_or_a_number_near_one_name_no_card(name):
    with pytest.raises(RocmatrixError, match="RM010"):
        architecture_of(ARCHITECTURES, name)
