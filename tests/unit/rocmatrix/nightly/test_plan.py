"""A night's cells are chosen by name or architecture, in the order of building."""

import pytest

from rocmatrix.nightly import plan
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures import cells


def test_cells_are_chosen_by_name_or_architecture_and_unlocked_ones_named():
    chosen, left_out = plan.choose(cells.MATRIX, ["gfx1100", "cpu"])
    assert {cell.architecture for cell in chosen} == {"gfx1100", None}
    assert all(cell.unlocked_because is None for cell in chosen)
    assert any(line.startswith("rocm10.0-torch2.13.0-gfx1100") for line in left_out)
    everything = plan.choose(cells.MATRIX, [])[0]
    places = [cell.base.reference for cell in everything]
    assert places == sorted(places)
    for words, code in ((["gfx1101x"], "RM010"), (["gfx1103"], "RM631")):
        with pytest.raises(RocmatrixError) as caught:
            plan.choose(cells.MATRIX, words)
        assert caught.value.code == code
