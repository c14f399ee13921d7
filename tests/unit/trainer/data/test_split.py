from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.data.bar import Bars
from trainer.data.dataset import Dataset
from trainer.data.split import FEWEST, Scaler, split_by_time
from trainer.runtime.errors import TrainerError
from trainer.tasks.bars import make_dataset


def numbered(count: int) -> Dataset:
    """Rows whose date, features and target all say which row they are."""
    numbers = np.arange(count, dtype=float)
    return Dataset(
        date=np.datetime64("2020-01-01T00:00:00") + np.arange(count) * np.timedelta64(1, "s"),
        features=numbers[:, np.newaxis],
        target=numbers,
        persistence=numbers,
    )


@given(count=st.integers(100, 2000), embargo=st.integers(1, 30))
def test_parts_are_in_order_and_an_embargo_apart(count: int, embargo: int) -> None:
    try:
        split = split_by_time(numbered(count), embargo)
    except TrainerError as error:
        assert error.code == "RM517"
        return
    train, validation, test = split.train.target, split.validation.target, split.test.target
    assert train[0] == 0
    assert validation[0] - train[-1] == embargo + 1
    assert test[0] - validation[-1] == embargo + 1
    assert test[-1] == count - 1
    assert min(len(train), len(validation), len(test)) >= FEWEST
    assert len(train) + len(validation) + len(test) + 2 * embargo == count


def test_no_training_target_has_seen_a_validation_bar(make_bars: Callable[..., Bars]) -> None:
    bars, horizon = make_bars(400), 5
    split = split_by_time(make_dataset(bars, horizon), embargo=horizon)
    later = {name: values.copy() for name, values in vars(bars).items()}
    begin = int(np.searchsorted(bars.date, split.validation.date[0]))
    later["close"][begin:] *= np.linspace(1, 2, 400 - begin)
    changed = split_by_time(make_dataset(Bars(**later), horizon), embargo=horizon)
    assert changed.train.target.tobytes() == split.train.target.tobytes()
    assert changed.train.features.tobytes() == split.train.features.tobytes()
    assert changed.validation.target.tobytes() != split.validation.target.tobytes()


@pytest.mark.parametrize(("count", "embargo"), [(0, 5), (1, 5), (60, 5), (500, 100)])
def test_too_few_rows_are_refused_with_their_number(count: int, embargo: int) -> None:
    with pytest.raises(TrainerError, match="RM517") as caught:
        split_by_time(numbered(count), embargo)
    assert f"{count} usable rows" in caught.value.what


def test_a_target_that_never_changes_is_refused() -> None:
    with pytest.raises(TrainerError, match="RM518"):
        split_by_time(replace(numbered(500), target=np.full(500, -13.8)), 5)


def test_scaling_is_fitted_and_undone() -> None:
    values = np.random.default_rng(0).normal(3, 7, (200, 4))
    scaler = Scaler.fit(values)
    scaled = scaler.scale(values)
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(scaled.std(axis=0), 1)
    np.testing.assert_allclose(scaler.unscale(scaled), values)


def test_a_column_that_never_changes_is_only_centred() -> None:
    scaled = Scaler.fit(np.full((50, 1), 0.1)).scale(np.full((50, 1), 0.1))
    assert np.abs(scaled).max() < 1e-12
