"""A cell without recorded hashes is built only where a person says so."""

from pathlib import Path

import pytest

from rocmatrix.images import build
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures.cells import MATRIX

ROOT = Path(__file__).resolve().parents[4]


def test_unlocked_cell_is_refused_before_anything_is_done(tmp_path):
    cell = MATRIX.cell("rocm10.0-torch2.13.0-gfx1100")
    with pytest.raises(RocmatrixError, match="RM102") as caught:
        build.build(cell, root=tmp_path)
    assert "--allow-unlocked" in caught.value.next
    assert "torch 2.13.0 on Python 3.12" in caught.value.why
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("dry_run", [True, False])
def test_dry_run_is_refused_as_the_build_would_be(dry_run):
    with pytest.raises(RocmatrixError, match="RM102"):
        build.build(MATRIX.cell("rocm7.14-torch2.14.1-gfx942"), root=ROOT, dry_run=dry_run)


@pytest.mark.parametrize(
    ("name", "allow"),
    [("rocm10.0-torch2.13.0-gfx1100", True), ("rocm7.2-torch2.12.1-gfx1100", False), ("cpu-torch2.13.0", False)],
)
def test_allowed_unlocked_cell_is_planned(name, allow, capsys):
    planned = build.build(MATRIX.cell(name), root=ROOT, dry_run=True, allow_unlocked=allow)
    assert planned.image is None
    assert f"rocmatrix:{name}" in capsys.readouterr().out
