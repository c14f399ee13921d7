"""Checks enter the register where they are defined, each under a code of its own."""

import re
from pathlib import Path

import pytest

from rocmatrix.doctor import catalog
from rocmatrix.doctor.examination import CHECKS, TOPICS


def test_check_with_a_taken_code_is_refused():
    with pytest.raises(ValueError, match="D101 is the code of loaded"):
        catalog.check("D101", title="t", why="w", source="s")(lambda host: [])


def test_check_defined_in_a_topic_is_examined():
    defined = {
        topic.__name__: re.findall(r'@check\(\s*"(D\d{3})"', Path(topic.__file__).read_text("utf-8"))
        for topic in TOPICS
    }
    assert all(defined.values())
    assert sorted(code for codes in defined.values() for code in codes) == [check.code for check in CHECKS]
