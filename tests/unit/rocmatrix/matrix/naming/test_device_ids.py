"""PCI device ids to architectures: one architecture an id."""

import pytest

from rocmatrix.matrix.naming.device_ids import _BY_NAME, architecture
from rocmatrix.matrix.naming.vocabulary import UNSERVED
from tests.fixtures.cells import MATRIX

KNOWN = {0x66A1: "gfx906", 0x66AF: "gfx906", 0x744C: "gfx1100", 0x1586: "gfx1151"}
# functions that a virtual machine is given, and ids that owners' listings had and this table had not
KNOWN |= {0x7410: "gfx90a", 0x74B6: "gfx942", 0x74BD: "gfx942", 0x75B3: "gfx950", 0x1435: "gfx1033", 0x67B1: "gfx701"}
KNOWN |= {0x67D4: "gfx803", 0x698F: "gfx803", 0x749F: "gfx1102"}  # in pci.ids of 2026 and not in this table
NONE = (None, 0, 0x2684, 0x9999)


@pytest.mark.parametrize(("number", "gfx"), [*KNOWN.items(), *((number, None) for number in NONE)])
def test_device_id_leads_to_its_architecture(number, gfx):
    assert architecture(number) == gfx


def test_device_id_stands_for_one_architecture_that_the_matrix_has_or_excludes():
    numbers = [number for numbers in _BY_NAME.values() for number in numbers]
    assert len(numbers) == len(set(numbers))
    assert all(architecture(number) == name for name, own in _BY_NAME.items() for number in own)
    assert set(_BY_NAME) <= {*MATRIX.architectures, *UNSERVED}
