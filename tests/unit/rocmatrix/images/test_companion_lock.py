"""Companion packages are locked with their hashes."""

from rocmatrix.images import companion_lock
from tests.fixtures.companion_locks import CELL, MATRIX, lock, versions


def test_file_is_locked_with_hashes_next_to_the_cells_own_wheels(python_index, tmp_path):
    python_index.add("rich", "13.9", "Requires-Dist: torch>=1", "Requires-Dist: mdurl")
    python_index.add("mdurl", "0.1")
    python_index.add("torch", "99.0")  # what pip would take for the ROCm build
    python_index.add("windows-only", "1.0")
    locked = lock(tmp_path, "rich>=13\ntorch>=2\nnumpy\nwindows-only; sys_platform=='win32'\n")
    assert versions(locked) == {"rich": "13.9", "mdurl": "0.1"}
    assert all(row in locked.wheels for row in CELL.wheels)
    assert all(len(wheel.sha256) == 64 for _, wheel in locked.wheels)
    again = MATRIX.cell(locked.name)
    assert companion_lock.locked(MATRIX, again, tmp_path) == locked
