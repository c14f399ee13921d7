from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.data.bar import Bars
from trainer.data.dataset import Dataset
from trainer.data.loading.chunks import PIECE
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


def test_training_targets_have_seen_no_validation_bar(make_bars: Callable[..., Bars]) -> None:
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
def test_rows_that_are_too_few_are_refused_with_their_number(count: int, embargo: int) -> None:
    with pytest.raises(TrainerError, match="RM517") as caught:
        split_by_time(numbered(count), embargo)
    assert f"{count} usable rows" in caught.value.what


def test_parts_are_70_15_and_15_percent_less_the_embargo() -> None:
    split = split_by_time(numbered(200), 3)
    assert [part.target.tolist() for part in (split.train, split.validation, split.test)] == [
        list(range(137)),
        list(range(140, 167)),
        list(range(170, 200)),
    ]
    assert split.embargo == 3


def test_part_of_the_fewest_rows_is_enough_and_one_less_is_not() -> None:
    split = split_by_time(numbered(67), 0)
    assert [len(part) for part in (split.train, split.validation, split.test)] == [47, FEWEST, FEWEST]
    with pytest.raises(TrainerError) as caught:
        split_by_time(numbered(63), 0)
    assert caught.value.what == "63 usable rows split into 44 / 9 / 10 for train / validation / test"
    assert f"each part needs {FEWEST} rows after an embargo of 0" in caught.value.why


def test_embargo_longer_than_a_part_leaves_nothing_of_it() -> None:
    with pytest.raises(TrainerError, match="split into 0 / 0 / 15 for"):
        split_by_time(numbered(100), 80)
    with pytest.raises(TrainerError, match="split into 45 / 0 / 15 for"):
        split_by_time(numbered(100), 25)


def test_target_that_never_changes_is_refused() -> None:
    with pytest.raises(TrainerError, match="RM518") as caught:
        split_by_time(replace(numbered(500), target=np.full(500, -13.8)), 5)
    assert caught.value.what == "all 345 training targets are -13.8"
    target = np.arange(200.0)
    target[:137] = -13.8
    with pytest.raises(TrainerError, match="all 137 training targets are"):
        split_by_time(replace(numbered(200), target=target), 3)


def test_target_that_changes_in_the_training_part_alone_is_taken() -> None:
    target = np.arange(200.0)
    target[137:] = 5.0
    assert len(split_by_time(replace(numbered(200), target=target), 3).train) == 137


def test_scaling_is_fitted_and_undone() -> None:
    values = np.random.default_rng(0).normal(3, 7, (200, 4))
    scaler = Scaler.fit(values)
    scaled = scaler.scale(values)
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(scaled.std(axis=0), 1)
    np.testing.assert_allclose(scaler.unscale(scaled), values)


def test_rows_beyond_one_piece_and_of_32_bits_are_summed_in_64() -> None:
    values = np.full((3 * PIECE // 2, 2), 0.1, np.float32)
    values[::2, 1] = 0.3
    scaler = Scaler.fit(values)
    exact = values.astype(np.float64)
    np.testing.assert_allclose(scaler.mean, exact.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(scaler.std, [1.0, exact[:, 1].std()], rtol=1e-9)


def test_identity_scaler_leaves_values_unchanged() -> None:
    values = np.array([0.0, -3.0, 7.5])
    scaler = Scaler.identity()
    assert scaler.scale(values).tolist() == scaler.unscale(values).tolist() == values.tolist()
    assert (scaler.mean.shape, scaler.std.shape) == ((), ())


@pytest.mark.parametrize(("spread", "std"), [(1e-12, 1e-12), (9e-13, 1.0), (0.0, 1.0)])
def test_spread_below_a_billionth_of_a_thousandth_counts_as_zero(spread: float, std: float) -> None:
    assert Scaler.fit(np.array([spread, -spread])).std == std


def test_column_that_never_changes_is_only_centred() -> None:
    scaled = Scaler.fit(np.full((50, 1), 0.1)).scale(np.full((50, 1), 0.1))
    assert np.abs(scaled).max() < 1e-12
