"""Words to models, on a SYNTHETIC pair of architectures."""

import pytest

from rocmatrix.matrix.naming.lookup import Index
from rocmatrix.matrix.naming.text import words_of

INDEX = Index(
    (
        ("gfx1", ("Radeon RX 100", "Radeon RX 100 XT", "Radeon Pro 560M", "Big Chip"), ("Big Chip",)),
        ("gfx2", ("Ryzen 7 100", "Ryzen AI 9 HX 370", "Radeon RX 560M"), ()),
        ("gfx3", ("Radeon AI PRO R9700", "Radeon AI PRO R9700S", "Radeon Pro W9700"), ()),
    )
)


def hits(name):
    return [sorted({model.gfx for model in models}) for models in INDEX.read(words_of(name)).hits]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("rx 100", [["gfx1"]]),
        ("ryzen 7 100", [["gfx2"]]),
        ("100", [["gfx1", "gfx2"]]),
        ("100 xt", [["gfx1"]]),
        ("ryzen 100 xt", []),
        ("rx 100 gre", []),
        ("rx 100s", [["gfx1"]]),
        ("560m", [["gfx1", "gfx2"]]),
        ("pro 560m", [["gfx1"]]),
        ("bigchip", [["gfx1"]]),
        ("ryzen ai 370", [["gfx2"]]),
        ("instinct 100", []),
        ("rx 100 ryzen 7 100", [["gfx1"], ["gfx2"]]),
        ("ai pro 9700", [["gfx3"]]),
        ("ai pro 9700s", [["gfx3"]]),
        ("pro 9700", []),
        ("ryzen ai pro 9700", []),
    ],
)
def test_models_of_words_fit_their_lines(name, found):
    assert hits(name) == found


@pytest.mark.parametrize(
    ("name", "left"),
    [("board 310 rx 100", []), ("rx 310 rx 100", ["310"]), ("v100", ["v"]), ("rx 100 foo gre", ["gre"]),
     ("rt 100", ["rt"])],
)  # fmt: skip
def test_words_that_may_make_another_model_are_left_over(name, left):
    assert INDEX.read(words_of(name)).unexplained == left


def test_lone_suffix_belongs_to_the_number_before_it():
    assert INDEX.read(words_of("xt"), number="100").hits[0][0].name == "Radeon RX 100 XT"


def test_letter_left_out_of_a_number_names_the_card_of_its_line():
    assert [model.name for model in INDEX.read(words_of("ai pro 9700")).hits[0]] == ["Radeon AI PRO R9700"]
    assert [model.name for model in INDEX.read(words_of("ai pro 9700s")).hits[0]] == ["Radeon AI PRO R9700S"]
