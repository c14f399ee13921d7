"""A typed name in parts: identifiers, and the words that are left when sizes, counts and places are gone."""

import pytest

from rocmatrix.matrix.naming import text


def words(name):
    return [" ".join(word.text for word in part) for part in text.segments(text.plain(name))]


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("2x RX 7900 XTX 24GB", ["rx 7900 xtx"]),
        ("RX7900XTX (rev c8), PCIe 4.0 x16", ["rx 7900 xtx"]),
        ("a pair of MI300X 192GB", ["mi 300 x"]),
        ("W7900 Dual Slot", ["w 7900 dual slot"]),
        ("Vega 10 XT", ["vega 10 xt"]),
        ("RX 6800/6800 XT or 6900 XT", ["rx 6800", "6800 xt", "6900 xt"]),
        ("Radeon(TM) 780M on Ubuntu 24.04, ROCm 6.4.1", ["radeon 780 m on"]),
        ("Radoen RX 580's", ["radeon rx 580"]),
        ("Radeon Pro Vega 64X", ["radeon pro vega 64 x"]),
        ("dual R9700s", ["r 9700"]),
        ("2x R9700S", ["r 9700 s"]),
        ("RX6800s", ["rx 6800 s"]),
        ("1x RX6800s", ["rx 6800 s"]),
        ("RTX 3090 and RX 580", ["rx 580"]),
    ],
)
def test_words_of_a_name_are_those_of_models(name, parts):
    assert words(name) == parts


def test_identifiers_are_found_in_a_text():
    assert text.targets("agent gfx1100, GFX1036".casefold()) == ("gfx1100", "gfx1036")
    assert text.device_ids("[1002:744c] and 0x73bf") == (0x744C, 0x73BF)
    assert text.device_ids("gfx1151 (0x1151)") == () and text.device_ids("0x1002") == ()
    assert text.of_another_maker("[10de:2684]") == "10de" and text.of_another_maker("1002:744c") is None


@pytest.mark.parametrize(
    ("card", "core"),
    [
        ("Ryzen 7 7840U", ("7840", "u")),
        ("Ryzen AI Max+ PRO 395", ("max", "395")),
        ("Radeon Pro W7800 48GB", ("w", "7800")),
        ("Instinct MI300X", ("mi", "300", "x")),
        ("Vega FE", ("vega", "frontier", "edition")),
    ],
)
def test_core_of_a_card_leaves_brands_lines_and_sizes_out(card, core):
    assert text.core_of(card) == core
