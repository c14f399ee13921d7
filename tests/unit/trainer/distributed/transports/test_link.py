from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.distributed.transports.link import LARGEST, SMALLEST, UNMEASURED, WORTH, Link, bucket_bytes, measured


def test_bus_bandwidth_is_what_each_link_carries() -> None:
    assert measured(ranks=2, small_s=1e-5, large_bytes=32_000_000, large_s=0.01).bus_bytes_per_s == pytest.approx(3.2e9)
    assert measured(ranks=8, small_s=1e-5, large_bytes=32_000_000, large_s=0.01).bus_bytes_per_s == pytest.approx(5.6e9)


def test_known_links_get_known_buckets() -> None:
    assert bucket_bytes(None) == UNMEASURED
    pcie = Link(latency_s=30e-6, bus_bytes_per_s=6.5e9)  # 1.95 MB would take ten times the latency
    assert bucket_bytes(pcie) == 2 << 20
    nvlink = Link(latency_s=20e-6, bus_bytes_per_s=300e9)
    assert bucket_bytes(nvlink) == 64 << 20
    assert bucket_bytes(Link(latency_s=1e-9, bus_bytes_per_s=1e6)) == SMALLEST
    assert bucket_bytes(Link(latency_s=1.0, bus_bytes_per_s=1e12)) == LARGEST


@given(latency=st.floats(1e-7, 1e-2), bandwidth=st.floats(1e7, 1e12))
def test_bucket_is_worth_its_start_unless_capped_and_never_twice_too_large(latency: float, bandwidth: float) -> None:
    size = bucket_bytes(Link(latency_s=latency, bus_bytes_per_s=bandwidth))
    worth = WORTH * latency * bandwidth
    assert SMALLEST <= size <= LARGEST
    assert size.bit_count() == 1
    assert size == LARGEST or size >= int(worth)
    assert size == SMALLEST or size < 2 * worth


def test_bucket_is_the_least_power_of_two_that_is_worth_its_start() -> None:
    assert WORTH == 10.0
    assert bucket_bytes(Link(latency_s=0.8, bus_bytes_per_s=2**21 / 8)) == 2**21
    assert bucket_bytes(Link(latency_s=0.8, bus_bytes_per_s=(2**21 + 1) / 8)) == 2**22
    assert bucket_bytes(Link(latency_s=0.0, bus_bytes_per_s=1e9)) == SMALLEST


def test_link_is_described_by_its_latency_and_bandwidth() -> None:
    link = measured(ranks=2, small_s=1e-5, large_bytes=100, large_s=0.0)
    assert link.as_dict() == {"latency_s": 1e-5, "bus_bytes_per_s": 100 / 1e-9}
