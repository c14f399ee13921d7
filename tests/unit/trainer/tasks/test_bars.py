from __future__ import annotations

import numpy as np
import pytest

from tests.fixtures.configs import rows_config
from trainer.runtime.errors import TrainerError
from trainer.tasks.bars import prepare


def test_scaling_knows_the_training_part_alone() -> None:
    task = prepare(rows_config())
    np.testing.assert_array_equal(task.inputs.mean, task.split.train.features.mean(axis=0))
    np.testing.assert_array_equal(task.targets.std, task.split.train.target.std())


def test_embargo_is_the_horizon() -> None:
    assert prepare(rows_config(horizon=7)).split.embargo == 7


@pytest.mark.parametrize(("share", "bars"), [(1.0, 1257), (0.5, 629), (0.3, 378)])
def test_share_of_the_data_is_its_latest_bars(share: float, bars: int) -> None:
    task = prepare(rows_config(data_fraction=share))
    assert (task.file_rows, len(task.dates)) == (1257, bars)
    assert str(task.dates[-1]) == "2018-12-31T00:00:00"


def test_share_that_is_too_small_is_refused() -> None:
    with pytest.raises(TrainerError, match="RM517"):
        prepare(rows_config(data_fraction=1e-9))
