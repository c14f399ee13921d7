"""A derived cell that is kept becomes a written one, and nothing else of matrix.yaml changes."""

import shutil
from pathlib import Path

import pytest

from rocmatrix.matrix.loading import append
from rocmatrix.matrix.loading import load as matrix_file
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures.cells import MATRIX

ROOT = Path(__file__).resolve().parents[5]


@pytest.fixture
def checkout(tmp_path):
    shutil.copy(ROOT / "matrix.yaml", tmp_path)
    shutil.copytree(ROOT / "matrix", tmp_path / "matrix")
    return tmp_path


@pytest.mark.parametrize(
    "name", ["rocm7.1-torch2.10.0-gfx1100", "rocm7.2-torch2.12.1-gfx1100-py3.13", "cpu-torch2.13.0-py3.14"]
)
def test_kept_cell_is_the_derived_one_written(checkout, name):
    derived, before = MATRIX.cell(name), (checkout / "matrix.yaml").read_text()
    append.add(MATRIX, derived, checkout, today="2026-11-22")
    again = matrix_file.load(checkout)
    kept = again.cell(name)
    assert kept.written
    assert kept.model_copy(update={"written": False, "evidence": derived.evidence}) == derived
    assert [cell.name for cell in again.cells] == [*MATRIX.cell_names, name]
    assert (checkout / "matrix.yaml").read_text().startswith(before.rstrip("\n")[:-1])


def test_written_cell_is_not_kept_twice(checkout):
    with pytest.raises(RocmatrixError, match="RM015"):
        append.add(MATRIX, MATRIX.cells[1], checkout, today="2026-11-22")
