"""The kernel's number, LLVM's name and the dotted form must agree on real chips."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmatrix.matrix import gfx

# Numbers read in recorded topologies of real machines.
RECORDED = {
    90006: "gfx906",
    90010: "gfx90a",
    90012: "gfx90c",
    90402: "gfx942",
    90500: "gfx950",
    100303: "gfx1033",
    110000: "gfx1100",
    110003: "gfx1103",
    110500: "gfx1150",
    110501: "gfx1151",
    120001: "gfx1201",
}


@pytest.mark.parametrize(("number", "name"), RECORDED.items())
def test_recorded_numbers_decode(number, name):
    assert gfx.from_target_version(number) == name


@pytest.mark.parametrize(("name", "dotted"), [("gfx90a", "9.0.10"), ("gfx1100", "11.0.0"), ("gfx1151", "11.5.1")])
def test_isa_version_is_decimal(name, dotted):
    assert gfx.from_isa_version(dotted) == name


@given(st.integers(1, 99), st.integers(0, 15), st.integers(0, 15))
def test_name_and_number_are_the_same_thing(major, minor, step):
    name = gfx.from_target_version(major * 10000 + minor * 100 + step)
    assert gfx.from_isa_version(f"{major}.{minor}.{step}") == name


@pytest.mark.parametrize("number", [0, -1, 999, 111600, 110016])
def test_number_that_is_no_target_version_is_refused(number):
    with pytest.raises(ValueError, match="not a gfx_target_version"):
        gfx.from_target_version(number)
