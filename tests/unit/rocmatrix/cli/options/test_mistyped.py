"""Words of a command line that are no flag or task as they stand."""

import pytest

from rocmatrix.cli.options import mistyped


@pytest.mark.parametrize(
    ("typed", "word", "shown"),
    [
        ("train —epochs 3", "—epochs", "--epochs"),  # a dash as pages and editors write `--`
        ("train \u2013-epochs=3", "\u2013-epochs", "--epochs"),
        ("train \u2212seed 3", "\u2212seed", "--seed"),
        ("\u2013gpu MI50 explain", "\u2013gpu", "--gpu"),
        ("train -epochs 3", "-o", "--epochs"),  # a parser has split it into letters, and taken some
        ("train -batch-size=3", "-a", "--batch-size"),
        ("train --epochs = 3", "3", "--epochs=3"),
        ("train epochs=3", "epochs", "--epochs"),
        ("model train", "model", ""),  # no flag in front of its task
        ("--epochs 3 train", "--epochs", "./invokew train --epochs"),
        ("--epochs 3 cells", "--epochs", ""),
        ("cells —epochs 3", "—epochs", ""),  # no flag of this task
        ("train -x 3", "-x", ""),
        ("train = 3", "3", ""),
        ("train 3", "3", ""),
    ],
)
def test_word_that_no_parser_takes_is_named_with_its_flag(typed, word, shown):
    advice = mistyped.intended(word, typed.split())
    assert advice.endswith(shown) if shown else advice == ""


def test_flag_of_other_tasks_names_them():
    assert mistyped.owners("--epochs") == "it is a flag of compress, submit, train"
    assert (mistyped.owners("--dry-run"), mistyped.owners("--epoch")) == ("", "")  # many, none
