"""Versions in their order, and what is on record of each."""

from rocmatrix.nightly.bisection import history
from tests.fixtures import cells

VERSIONS = history.versions(cells.MATRIX, "gfx1100")


def test_versions_stand_in_the_order_of_their_releases():
    assert len(VERSIONS) > 2
    assert {cell.architecture for cell, _ in VERSIONS} == {"gfx1100"}
    assert all(cell.unlocked_because is None for cell, _ in VERSIONS)
    assert any(of_matrix for _, of_matrix in VERSIONS)
