from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from trainer.data.bar import Bars
from trainer.data.dataset import statistic, statistic_by_pieces
from trainer.data.features.daily_features import FEATURES, feature_matrix
from trainer.data.loading import chunks
from trainer.tasks.bars import make_dataset

LOOKBACK = max(feature.lookback for feature in FEATURES)


@pytest.mark.parametrize("horizon", [1, 5, 20])
def test_rows_join_the_features_of_a_bar_with_the_volatility_after_it(
    make_bars: Callable[..., Bars], horizon: int
) -> None:
    bars = make_bars(150)
    rows = make_dataset(bars, horizon)
    assert len(rows) == 150 - LOOKBACK - horizon
    for row in (0, len(rows) - 1):
        t = row + LOOKBACK
        returns = [math.log(bars.close[i] / bars.close[i - 1]) for i in range(t - horizon + 1, t + horizon + 1)]
        root_mean_square = [
            math.sqrt(sum(r * r for r in part) / horizon) for part in (returns[:horizon], returns[horizon:])
        ]
        assert rows.date[row] == bars.date[t]
        assert rows.persistence[row] == pytest.approx(math.log(root_mean_square[0]))
        assert rows.target[row] == pytest.approx(math.log(root_mean_square[1]))
        np.testing.assert_array_equal(rows.features[row], feature_matrix(bars)[t])


def test_targets_need_the_future_they_name_and_no_more(make_bars: Callable[..., Bars]) -> None:
    bars = make_bars(150)
    whole, shorter = make_dataset(bars, 5), make_dataset(bars[:140], 5)
    np.testing.assert_array_equal(shorter.target, whole.target[:-10])


@pytest.mark.parametrize("count", [1, LOOKBACK, LOOKBACK + 5])
def test_bars_that_are_too_few_give_no_rows(make_bars: Callable[..., Bars], count: int) -> None:
    rows = make_dataset(make_bars(count), 5)
    assert len(rows) == 0
    assert rows.features.shape == (0, len(FEATURES))


@pytest.mark.parametrize("target", ["volatility", "return", "direction"])
@pytest.mark.parametrize(("piece", "horizon"), [(64, 1), (64, 30), (7, 30), (1000, 5)])
def test_statistic_by_pieces_is_the_whole_ones_to_the_bit(
    target: str, piece: int, horizon: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "PIECE", piece)
    close = 100 * np.exp(np.cumsum(np.random.default_rng(2).normal(0, 1e-3, 500)))
    assert statistic_by_pieces(close, horizon, target).tobytes() == statistic(close, horizon, target).tobytes()
