from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.fixtures.configs import rows_config
from tests.fixtures.synthetic_bars import write_synthetic, write_two_files
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


@pytest.fixture(scope="module")
def two_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with SYNTHETIC bars in one file with the VIX, and in two: es.csv and vix.csv."""
    return write_two_files(tmp_path_factory.mktemp("two"), 13_000)


def test_joined_file_gives_the_features_of_one_file(two_files: Path) -> None:
    whole = prepare(rows_config(data=two_files / "both.csv"))
    joined = prepare(rows_config(data=two_files / "es.csv", join=two_files / "vix.csv"))
    assert [each["name"] for each in whole.features] == [each["name"] for each in joined.features]
    np.testing.assert_array_equal(whole.split.train.features, joined.split.train.features)
    np.testing.assert_array_equal(whole.split.test.target, joined.split.test.target)
    (line,) = [line for line in joined.assumptions if line.startswith("joined: ")]
    assert "column vix_close of vix.csv" in line
    assert "13,000 bars" in line


def test_bars_without_a_vix_name_the_features_left_out(two_files: Path) -> None:
    alone = prepare(rows_config(data=two_files / "es.csv"))
    (line,) = [line for line in alone.assumptions if line.startswith("left out: ")]
    whole = prepare(rows_config(data=two_files / "both.csv"))
    names = {str(each["name"]) for each in whole.features} - {str(each["name"]) for each in alone.features}
    assert len(names) == 5
    assert all(name in line for name in names)
    assert "--join FILE" in line
    assert not [line for line in whole.assumptions if line.startswith("left out: ")]


def test_file_of_too_few_sessions_names_how_many_are_needed(tmp_path: Path) -> None:
    write_synthetic(tmp_path / "short.csv", 7_800)
    with pytest.raises(TrainerError, match=r"RM517[\s\S]*are 21 sessions[\s\S]*those of session 21") as caught:
        prepare(rows_config(data=tmp_path / "short.csv"))
    assert "--data-fraction" not in caught.value.next
    assert "more than 21 sessions" in caught.value.next


def test_zone_of_sessions_that_does_not_exist_is_named_for_days_too() -> None:
    with pytest.raises(TrainerError, match="RM573"):
        prepare(rows_config(session_zone="Mars/Phobos"))
