"""A link of the KFD topology by its properties: what is not reported is unknown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmatrix.host.link import NO_ATOMICS_32, NO_ATOMICS_64, NO_PEER_DMA, Link


def link(direct=True, **properties):
    return Link.parse({"node_to": 2} | properties, node=1, direct=direct)


@given(st.integers(0, 31))
def test_flags_state_what_cannot_pass(flags):
    found = link(flags=flags)
    assert found.atomics == (not flags & NO_ATOMICS_32 and not flags & NO_ATOMICS_64)
    assert found.peer_dma == (not flags & NO_PEER_DMA)


@pytest.mark.parametrize(("number", "kind", "xgmi"), [(2, "PCIe", False), (11, "XGMI", True), (99, "type 99", False)])
def test_kind_is_named_or_kept_as_its_number(number, kind, xgmi):
    found = link(type=number)
    assert (found.kind, found.xgmi, found.source, found.target) == (kind, xgmi, 1, 2)


def test_bandwidth_of_zero_is_unknown():
    assert (link(max_bandwidth=0).most_bandwidth, link().most_bandwidth) == (None, None)


def test_text_names_what_is_known_and_what_is_missing():
    assert link(type=11, weight=15, max_bandwidth=50000).summary == "XGMI, weight 15, 50.0 GB/s"
    text = link(direct=False, type=2, flags=NO_ATOMICS_64 | NO_PEER_DMA).summary
    assert text == "PCIe, through another node, no atomics, no peer access"
