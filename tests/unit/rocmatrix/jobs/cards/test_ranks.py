"""More ranks than cards are refused wherever their number is named: by a flag, --set or a recipe."""

from contextlib import nullcontext

import pytest

from rocmatrix.jobs.cards import ranks
from rocmatrix.runtime.errors import RocmatrixError
from trainer.config.recipe import keys


def recipe(folder, text):
    (folder / "own.yaml").write_text(text)
    return {"recipe": str(folder / "own.yaml")}


@pytest.mark.parametrize(
    ("options", "cards", "refused"),
    [
        ({"ranks": "3"}, 2, True),
        ({"ranks": 3, "device": "auto"}, 2, True),
        ({"ranks": "2"}, 2, False),
        ({"ranks": "auto"}, 2, False),
        ({}, 2, False),
        ({"ranks": "3", "device": "cpu"}, 2, False),
        ({"ranks": "3"}, 0, False),
        ({"set": ["ranks.ranks=3"]}, 2, True),
        ({"set": ["ranks.ranks=3", "ranks.ranks = 2"]}, 2, False),
        ({"ranks": "3", "set": ["run.device=cpu"]}, 2, False),
        ({"recipe": "lm-rx7900xt-x2-lora-3b"}, 1, True),
        ({"recipe": "lm-rx7900xt-x2-lora-3b"}, 2, False),
        ({"recipe": "lm-rx7900xt-x2-lora-3b", "ranks": "1"}, 1, False),
        ({"recipe": "no such recipe"}, 1, False),
    ],
)
def test_more_ranks_than_cards_are_refused_and_never_put_on_the_cpu_unseen(options, cards, refused):
    with pytest.raises(RocmatrixError, match="RM404") if refused else nullcontext():
        ranks.check(options, cards=cards)


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("ranks:\n  ranks: 3\n", True),
        ('ranks: {ranks: "3"}\n', True),
        ("ranks:\n  ranks: 3\nrun:\n  device: cpu\n", False),
        ("ranks:\n  ranks: auto\n", False),
        ("ranks: 3\n", False),
        ("- ranks\n", False),
        ("{", False),
    ],
)
def test_recipe_of_a_file_is_read_and_a_damaged_one_is_left_to_the_trainer(tmp_path, text, refused):
    with pytest.raises(RocmatrixError, match=r"recipe own.yaml: ranks 3, and 2") if refused else nullcontext():
        ranks.check(recipe(tmp_path, text), cards=2)


def test_option_of_a_scheduler_is_named_as_it_was_typed():
    with pytest.raises(RocmatrixError, match="Take --processes 2 or fewer"):
        ranks.check({"ranks": 4}, cards=2, flag="--processes")


def test_keys_are_those_of_the_trainers_recipes():
    assert {*ranks.KEYS.values()} <= {*keys()}


@pytest.mark.parametrize(
    ("options", "refused"),
    [
        ({"ranks": "4"}, True),
        ({"set": ["ranks.ranks=4"]}, True),
        ({"ranks": "1"}, True),
        ({"ranks": "2"}, False),
        ({"ranks": 6}, False),
        ({"ranks": "auto"}, False),
        ({}, False),
        ({"recipe": "lm-rx7900xt-x2-lora-3b"}, False),
    ],
)
def test_typed_ranks_that_a_scheduler_does_not_start_are_refused(options, refused):
    with pytest.raises(RocmatrixError, match="RM404") if refused else nullcontext():
        ranks.check_of_scheduler(options, processes=2, nodes=3)
