from __future__ import annotations

import importlib

from trainer.diagnostics.probes import registry


def test_names_are_unique_and_limits_positive() -> None:
    names = [probe.name for probe in registry.PROBES]
    assert len(names) == len(set(names)) > 0
    assert all(probe.timeout_seconds > 0 and probe.summary for probe in registry.PROBES)


def test_modules_can_all_measure() -> None:
    for probe in registry.PROBES:
        assert callable(importlib.import_module(probe.module).measure)
