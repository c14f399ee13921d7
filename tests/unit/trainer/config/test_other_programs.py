"""The tables of other programs' flags do not contradict each other, and hide no setting."""

from __future__ import annotations

import pytest

from trainer.config.absent_flags import ABSENT
from trainer.config.other_programs import INSTEAD, TAKEN, WORDS
from trainer.config.train import settings


def test_names_of_other_programs_stand_in_one_table_once() -> None:
    names = [name for table in (TAKEN, INSTEAD, ABSENT) for _, listed in table for name in listed.split()]
    assert len(names) == len(set(names))
    assert not {*names} & {*settings()}


@pytest.mark.parametrize("setting", WORDS)
def test_words_of_other_programs_are_read_as_a_value_of_ours(setting: str) -> None:
    about = settings()[setting]
    for theirs, ours in WORDS[setting].items():
        assert about.parse(theirs) == about.parse(theirs.upper()) == about.parse(ours) == ours
