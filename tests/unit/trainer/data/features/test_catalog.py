"""The list of features: each described once."""

from __future__ import annotations

from tests.fixtures.intraday_bars import whole
from trainer.data.features.catalog import CATALOG, NAMES


def test_features_are_54_each_described_once() -> None:
    assert len(NAMES) == len(set(NAMES)) == 54 == whole().shape[1]
    assert all(feature.formula and feature.unit for feature in CATALOG)
    assert sum(feature.needs_vix for feature in CATALOG) == 5
