"""Micro-batch sizes, allocator settings and the report of a device's memory."""

from __future__ import annotations

from collections.abc import Callable

import torch
from hypothesis import given
from hypothesis import strategies as st

from trainer.device.memory import allocator_settings, first_size, report


@given(st.integers(1, 10_000), st.lists(st.booleans(), max_size=60))
def test_size_stays_between_one_and_the_limit(limit: int, events: list[bool]) -> None:
    micro_batch = first_size(None, limit)
    for shrinks in events:
        step: Callable[[], None] = micro_batch.shrink if shrinks else micro_batch.grow
        step()
        assert 1 <= micro_batch.size <= limit


def test_allocator_settings_are_recorded() -> None:
    environment = {"PYTORCH_HIP_ALLOC_CONF": "expandable_segments:True", "PYTORCH_ALLOC_CONF": "", "PATH": "/bin"}
    assert allocator_settings(environment) == {"PYTORCH_HIP_ALLOC_CONF": "expandable_segments:True"}
    assert allocator_settings({}) == {}


def test_cpu_has_no_report() -> None:
    assert report(torch.device("cpu")) is None
