"""Views of data: tables between markers, and one page of all error codes."""

from pathlib import Path

import pytest

from rocmatrix.cli import generated_docs
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures.cells import MATRIX

ROOT = Path(__file__).resolve().parents[4]


def test_missing_markers_are_an_error_with_the_marker():
    with pytest.raises(RocmatrixError, match="begin support"):
        generated_docs.between("no markers", "support", "x")


def test_tables_hold_every_cell_and_every_rule_against_one():
    table = generated_docs.support_table(MATRIX)
    assert all(f"`{cell.name}`" in table for cell in MATRIX.cells)
    against = generated_docs.rules_table(MATRIX)
    assert all(rule.summary in against for rule in MATRIX.rules if rule.verdict == "broken" and rule.decides)
    assert "rocBLAS has no kernels for it" in against


def test_error_page_holds_both_catalogs():
    page = (ROOT / "docs/errors.md").read_text()
    codes = [line.split()[1] for line in page.splitlines() if line.startswith("## ")]
    assert len(codes) == len(set(codes))
    assert "RM001" in codes
    assert any(code.startswith("RM5") for code in codes)
