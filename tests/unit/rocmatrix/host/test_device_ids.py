"""PCI device ids to gfx names: one name an id, each name known to the matrix."""

import pytest
from rocmatrix.host.device_ids import _BY_NAME, architecture

from tests.fixtures.cells import MATRIX


@pytest.mark.parametrize(("number", "name"), [(0x66A1, "gfx906"), (0x744C, "gfx1100"), (0x1586, "gfx1151")])
def test_known_card_has_its_architecture(number, name):
    assert architecture(number) == name


@pytest.mark.parametrize("number", [None, 0, 0x2684])
def test_id_of_no_known_card_has_none(number):
    assert architecture(number) is None


def test_device_id_stands_for_one_architecture_that_the_matrix_has_or_excludes():
    numbers = [number for numbers in _BY_NAME.values() for number in numbers]
    assert len(numbers) == len(set(numbers))
    assert all(architecture(number) == name for name, own in _BY_NAME.items() for number in own)
    assert set(MATRIX.architectures) & set(_BY_NAME)
