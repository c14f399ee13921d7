"""Names as people type them: draws whose answers were decided first, and no card of another architecture."""

import itertools
from pathlib import Path

import pytest
import yaml

from rocmatrix.matrix.card_names import architecture_of, card_of
from rocmatrix.matrix.naming.lookup import index_of
from rocmatrix.matrix.naming.reading import read
from rocmatrix.matrix.naming.text import core_of
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures.cells import MATRIX

ROOT = Path(__file__).resolve().parents[5]
ARCHITECTURES = MATRIX.architectures
DRAWS = yaml.load((ROOT / "tests/fixtures/card_names.yaml").read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
LEAST = 0.97


def answer(name):
    """Return the architecture of a name, or what the refusal states."""
    try:
        return architecture_of(ARCHITECTURES, name), ""
    except RocmatrixError as refusal:
        assert refusal.code == "RM010"
        return None, f"{refusal.what} {refusal.next}"


def right(settled, read_as, text):
    kind, *rest = settled.split()
    if kind == "refused":
        return read_as is None
    if kind == "other":
        return read_as is None and "another maker" in text
    if kind == "ask":
        return read_as == rest[0] or (read_as is None and any(card in text for card in ARCHITECTURES[rest[0]].names))
    if rest:
        return read_as is None and all(gfx in text for gfx in (kind, *rest))
    return read_as == kind


@pytest.mark.parametrize("draw", ["first", "second", "third"])
def test_names_of_a_draw_are_right_and_never_a_card_of_another_architecture(draw):
    answers = [(row, *answer(row["name"])) for row in DRAWS[draw]]
    foreign = [
        (row["name"], read_as) for row, read_as, _ in answers if read_as and read_as not in row["answer"].split()
    ]
    assert not foreign
    wrong = [(row["name"], read_as, text) for row, read_as, text in answers if not right(row["answer"], read_as, text)]
    assert 1 - len(wrong) / len(answers) >= LEAST, wrong


def test_draws_are_large_and_from_other_sources():
    first, second, third = DRAWS["first"], DRAWS["second"], DRAWS["third"]
    assert len(first) >= 150 and len(second) >= 60 and len(third) >= 150
    threads = [{row["from"] for row in draw if "#" in row["from"] or " PR " in row["from"]} for draw in (first, second)]
    assert not threads[0] & threads[1]


AROUND = [
    "{}", "AMD {}", "my {}", "2x {}", "dual {}", "{} x2", "(8x {})", "Sapphire Nitro+ {} OC", "{} 16GB GDDR6",
    "{} (rev c8)",
    "{} on Ubuntu 24.04, ROCm 6.4", "GPU: {}", "Intel Core i7-7700K with {}", "GeForce RTX 3090 and {}",
]  # fmt: skip


@pytest.mark.parametrize("gfx", ARCHITECTURES)
def test_name_within_other_words_stays_on_its_architecture_or_asks(gfx):
    typed = list(itertools.product(ARCHITECTURES[gfx].names, AROUND))
    readings = [(name, around, read(ARCHITECTURES, around.format(name)).architecture) for name, around in typed]
    assert not [row for row in readings if row[2] not in (gfx, None)]
    assert sum(row[2] == gfx for row in readings) >= 0.75 * len(typed)


SUFFIXES = ["XT", "XTX", "GRE", "M", "S", "X", "D", "HS", "U", "G", "X3D", "2048SP", "Ti", "50"]


@pytest.mark.parametrize("gfx", ARCHITECTURES)
def test_letters_behind_a_model_lead_to_a_card_of_that_model_or_to_none(gfx):
    known = index_of(ARCHITECTURES).models
    for name, suffix in itertools.product(ARCHITECTURES[gfx].names, SUFFIXES):
        glued = [f"{name}{suffix}"] if any(map(str.isdigit, name.split()[-1])) else []
        for typed in (f"{name} {suffix}", *glued):
            read_as = read(ARCHITECTURES, typed).architecture
            named = {model.gfx for model in known.get(core_of(typed), [])}
            assert read_as in (None, gfx) or read_as in named, typed


@pytest.mark.parametrize(
    ("name", "gfx"),
    [
        ("Vega 10 XT", "gfx900"),
        ("StrixHalo", "gfx1151"),
        ("CDNA3", "gfx942"),
        ("rdna 3 gfx1102", "gfx1102"),
        ("0X744C", "gfx1100"),
        ("Radon RX 7900 XT", "gfx1100"),
        ("RX 7900 XT / XTX", "gfx1100"),
        ("XFX MERC 310 Radeon RX 7900XT", "gfx1100"),
        ("RX 7900 XTX + Ryzen 9 5950X", "gfx1100"),
        ("Aqua Vanjaram [Instinct MI350X]", "gfx950"),
        ("RX 9070, RX 9070 XT", "gfx1201"),
        ("Ryzen AI 9 HX370", "gfx1150"),
        ("Ryzen 7600X", "gfx1036"),
        ("Ryzen 7 3700X with RX 6800 XT", "gfx1030"),
        ("RX 7900 XTX, 7800X3D", "gfx1100"),
        ("Radeon RX 6800, 6900 XT", "gfx1030"),
        ("Ryzen 5 2600X, RX 580", "gfx803"),
        ("RTX 4060 and Radeon 780M", "gfx1103"),
        ("Strix Halo vs RTX 5090", "gfx1151"),
        ("Instinct MI300A [1002:74a0]", "gfx942"),
        ("Radeon RX 7900 XTX [1002:ffff]", "gfx1100"),
        (r"PCI\VEN_1002&DEV_744C&SUBSYS_471E1DA2&REV_C8", "gfx1100"),
        ("\uff32\uff38 \uff17\uff19\uff10\uff10 XTX", "gfx1100"),
    ],
)
def test_name_of_each_kind_is_read(name, gfx):
    assert answer(name)[0] == gfx


@pytest.mark.parametrize(
    ("name", "stated"),
    [
        ("RDNA2", ["gfx1030", "gfx1031", "gfx1032", "gfx1034"]),
        ("RX 7000 series", ["gfx1100", "gfx1101", "gfx1102"]),
        ("RX 6800 laptop", ["gfx1030", "gfx1031", "gfx1032"]),
        ("RX 6750 XT gfx1032", ["gfx1031", "gfx1032"]),
        ("RX 7900 XT, MI50", ["gfx1100", "gfx906"]),
        ("RX 7900 XT + MI210", ["gfx1100", "gfx90a"]),
        ("Instinct MI50 and RX 7900 XT", ["gfx906", "gfx1100"]),
        ("RX 7900 XT and 780M", ["gfx1100", "gfx1103"]),
        ("7700", ["Radeon RX 7700", "Ryzen 7 7700"]),
        ("Vega 8", ["gfx902", "gfx90c"]),
        ("Pro 450", ["gfx803", "gfx1152"]),
        ("Aqua Vanjaram", ["gfx942", "gfx950"]),
        ("1002:13fe", ["gfx1013"]),
        ("1002:9999", ["1002:9999"]),
        ("10de:2684", ["another maker"]),
        (r"PCI\VEN_10DE&DEV_2684", ["another maker"]),
        ("gfx902", ["gfx902", "no release"]),
        ("Radeon Pro Vega 20", ["gfx904"]),
        ("R7 250", ["before GCN 3"]),
        ("Radeon HD 7770", ["before GCN 3"]),
        ("MI300Y", ["MI300X"]),
        ("RX 7900 XTZ", ["RX 7900 XTX"]),
        ("4090", ["another maker"]),
    ],
)
def test_card_name_that_is_unknown_or_ambiguous_returns_the_reason(name, stated):
    read_as, text = answer(name)
    assert read_as is None
    assert all(word in text for word in stated), text


@pytest.mark.parametrize(
    "name",
    ["Ryzen 5 5600", "Ryzen 5 7500F", "Ryzen 7 5700X", "i5-6600", "i7 7700", "R9 270", "FirePro W7100", "V7600",
     "HD7600", "RT 9070", "Legion Go S", "Legion Go 2", "Radeon Graphics", "RX 5990 XT", "GTX 860M",
     "GeForce GTX 780M", "GTX 880M", "GT 740M", "GeForce 610M", "Intel UHD Graphics 610", "NVIDIA 890",
     "ASUS Phoenix RTX 3060", "Adreno 680", "HD 680M", "RS780", "Radeon 610"],
)  # fmt: skip
def test_neighbour_of_a_card_in_spelling_is_none(name):
    assert answer(name)[0] is None


@pytest.mark.parametrize(
    ("name", "card"),
    [
        ("Radeon Pro 5600M", "Radeon Pro 5600M"),
        ("Ryzen AI Max+ PRO 395", "Ryzen AI Max+ PRO 395"),
        ("radeon pro w7900 dual slot 48gb", "Radeon Pro W7900 Dual Slot"),
        ("RX 6750", None),
        ("Navi 31", None),
        ("[1002:744c]", None),
    ],
)
def test_card_of_a_name_is_the_one_named(name, card):
    assert card_of(ARCHITECTURES, name, answer(name)[0]) == card


def test_name_of_the_matrix_in_full_is_its_own():
    several = {"Aqua Vanjaram", "Radeon 840M"}  # chips of two architectures
    read_as = {(name, gfx): answer(name)[0] for gfx, entry in ARCHITECTURES.items() for name in entry.names}
    assert {name for (name, gfx), found in read_as.items() if found != gfx} == several
