"""Advice without the clauses that a command cannot follow."""

import pytest

from trainer.runtime.advice import fitted


@pytest.mark.parametrize(
    ("advice", "flags", "left"),
    [
        ("Take less.", [], "Take less."),
        ("Give --a.", ["--a"], "Give --a."),
        ("Give --a.", [], ""),
        ("Give --a; or take less.", [], "Take less."),
        ("Give --a, or --b.", ["--a"], "Give --a."),
        ("Give --a. Then look.", [], "Then look."),
        ("Drop or repair such rows with --a.", ["--a"], "Drop or repair such rows with --a."),
        ("Read `train --help=all`.", [], "Read `train --help=all`."),
        ("Give `--a`.", [], ""),
        ("Give --a-b.", ["--a"], ""),
        ("", [], ""),
    ],
)
def test_clause_of_an_option_that_the_command_lacks_is_left_out(advice, flags, left):
    assert fitted(advice, flags) == left
