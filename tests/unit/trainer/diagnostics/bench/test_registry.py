"""Benchmarks have a limit and a place of their own."""

from __future__ import annotations

from importlib.util import find_spec

from trainer.diagnostics.bench.registry import BENCHMARKS


def test_benchmarks_have_a_limit_and_a_place_of_their_own() -> None:
    names = [each.name for each in BENCHMARKS]
    assert len(names) == len(set(names))
    assert all(each.timeout_seconds > 0 and each.module.startswith("trainer.diagnostics.bench.") for each in BENCHMARKS)
    assert len({each.module for each in BENCHMARKS}) == len(names)
    assert all(find_spec(each.module) for each in BENCHMARKS)
