"""A name that a form takes out is removed wherever the text has it; keys are judged by their last word."""

import re

import pytest

from rocmatrix.evidence.bundle.clean import clean
from rocmatrix.evidence.bundle.identity import Identity
from rocmatrix.evidence.bundle.learned import FORMS, Learner


@pytest.mark.parametrize(
    "line", ["   BatchHost=asus", "   AllocNode:Sid=dell-7920:2292", "$ ssh ncn-w005", "jobOwner=zeyer"]
)
def test_key_by_its_last_word_loses_its_value(line):
    assert "<name>" in Learner().apply(line, FORMS)


@pytest.mark.parametrize(
    "line", ["node: 3", "host=localhost", "user: root", "num_nodes=2", "kernel_host=gfx1100", "nodes=None"]
)
def test_number_or_switch_below_such_a_key_stays(line):
    assert Learner().apply(line, FORMS) == line


def test_name_that_a_form_took_out_is_removed_everywhere():
    text = "Feb 25 18:25:04 ncn-w005 kernel: x\nTested on ncn-w005 twice\nother-w005 stays"
    cleaned = clean(text, Identity())
    assert "ncn-w005" not in cleaned
    assert cleaned.endswith("other-w005 stays")


def test_word_of_the_language_is_not_learned():
    learner = Learner()
    learner.apply("host compute\nhost c-12", [(re.compile(r"(?<=host )\S+"), "<host>")])
    assert learner.names == {"c-12"}
