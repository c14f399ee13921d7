"""The resolver is total: a working cell, or a refusal that cites a rule or names what is near."""

import itertools
from pathlib import Path

import pytest

from rocmatrix import matrix_file
from rocmatrix.errors import RocmatrixError
from rocmatrix.resolve import Request, architecture_of, resolve

MATRIX = matrix_file.load(Path(__file__).resolve().parents[3])


@pytest.mark.parametrize(
    ("request_", "cards", "name"),
    [
        (Request(), (), "cpu-torch2.13.0"),
        (Request(rocm="6.3"), (), "rocm6.3-torch2.7.1-gfx1100"),
        (Request(rocm="6.3"), ("gfx906",), "rocm6.3-torch2.7.1-gfx906"),
        (Request(), ("gfx1100", "gfx1100"), "rocm7.2-torch2.12.1-gfx1100"),
        (Request(gpu="auto"), ("gfx1151",), "rocm7.2-torch2.12.1-gfx1151"),
        (Request(gpu="RX 7900 XT", torch="2.7.1"), (), "rocm6.3-torch2.7.1-gfx1100"),
        (Request(gpu="mi50"), (), "rocm6.3-torch2.7.1-gfx906"),
        (Request(gpu="cpu"), ("gfx1100",), "cpu-torch2.13.0"),
        (Request(cell="rocm6.0-torch2.4.1-gfx906"), (), "rocm6.0-torch2.4.1-gfx906"),
    ],
)
def test_a_request_ends_at_the_expected_cell(request_, cards, name):
    choice = resolve(MATRIX, request_, cards=cards)
    assert choice.cell.name == name
    assert choice.why


@pytest.mark.parametrize(
    ("name", "gfx"),
    [
        ("RX 7900 XT", "gfx1100"),
        ("AMD Radeon RX 7900 XTX", "gfx1100"),
        ("MI50", "gfx906"),
        ("Radeon VII", "gfx906"),
        ("Strix Halo", "gfx1151"),
        ("Ryzen AI Max+ 395", "gfx1151"),
        ("Radeon AI PRO R9700", "gfx1201"),
        ("mi300x", "gfx942"),
    ],
)
def test_cards_resolve_by_the_names_people_use(name, gfx):
    assert architecture_of(MATRIX, name) == gfx


def test_no_two_architectures_claim_one_card():
    cards = [card.casefold() for entry in MATRIX.architectures.values() for card in entry.cards]
    assert len(cards) == len(set(cards))


@pytest.mark.parametrize(
    ("request_", "code", "words"),
    [
        (Request(gpu="RX 7900 XTT"), "RM010", "RX 7900 XT"),
        (Request(rocm="6.33"), "RM010", "6.3"),
        (Request(cell="rocm6.3-torch2.7.1-gfx110"), "RM010", "rocm6.3-torch2.7.1-gfx1100"),
        (Request(gpu="gfx942", torch="2.4.1"), "RM011", "rocm7.2-torch2.12.1-gfx942"),
        (Request(gpu="gfx906", rocm="7.2"), "RM012", "gfx906-rocblas-from-6.4"),
        (Request(gpu="Strix Halo", rocm="6.3"), "RM012", "rocm7.2-torch2.12.1-gfx1151"),
    ],
)
def test_a_refusal_has_its_code_and_the_way_on(request_, code, words):
    with pytest.raises(RocmatrixError) as caught:
        resolve(MATRIX, request_)
    assert caught.value.code == code
    assert words in str(caught.value)


def test_every_combination_gives_a_working_cell_or_a_reasoned_refusal():
    rocm = [None, *{release.rocm for release in MATRIX.releases if release.rocm}]
    torch = [None, *{release.torch for release in MATRIX.releases}]
    for axes in itertools.product(rocm, torch, [None, "cpu", *MATRIX.architectures], [(), ("gfx906",), ("gfx1103",)]):
        request = Request(rocm=axes[0], torch=axes[1], gpu=axes[2])
        try:
            choice = resolve(MATRIX, request, cards=axes[3])
        except RocmatrixError as refusal:
            assert refusal.code in ("RM010", "RM011", "RM012"), refusal
            assert refusal.code != "RM012" or any(rule.id in refusal.where for rule in MATRIX.rules)
        else:
            assert not choice.cell.broken_by
            assert choice.cell.name not in [other.cell for other in choice.passed_over]
