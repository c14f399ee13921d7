"""The table of known problems in docs/language-models.md: each has tests, and each test named there exists."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests/unit/trainer"
PAGE = (ROOT / "docs/language-models.md").read_text()
NAMED = sorted(set(re.findall(r"`([\w/]+\.py)::(\w+)`", PAGE)))
PROBLEMS = {int(row[0]): row for row in re.findall(r"^\| (\d+) \| (.*)$", PAGE, re.MULTILINE)}


@lru_cache
def functions(path: str) -> set[str]:
    """Names of the test functions of a file below tests/unit/trainer."""
    tree = ast.parse((TESTS / path).read_text())
    return {each.name for each in tree.body if isinstance(each, ast.FunctionDef)}


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_test_that_the_page_names_exists(path, name):
    assert name in functions(path)


@pytest.mark.parametrize("number", range(1, 21))
def test_known_problem_in_the_table_names_an_existing_test(number):
    assert "::test_" in PROBLEMS[number][1]
