"""PCI device ids to architectures."""

import pytest

from rocmatrix.matrix.naming.device_ids import architecture


@pytest.mark.parametrize(("number", "gfx"), [(0x744C, "gfx1100"), (0x66AF, "gfx906"), (0x9999, None), (None, None)])
def test_device_id_leads_to_its_architecture(number, gfx):
    assert architecture(number) == gfx
