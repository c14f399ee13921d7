"""Batches of other sizes later in a run: the same order of rows, every way to take a step, and exact resume."""

from __future__ import annotations

from argparse import ArgumentTypeError
from pathlib import Path

import pytest

from trainer.config.batch_schedule import BatchSchedule, parse_batch_schedule
from trainer.config.recipe import as_recipe, from_assignment, from_recipe
from trainer.config.train import TrainConfig
from trainer.runtime.errors import TrainerError

GROWING = BatchSchedule(changes=((2, 16), (3, 50)))  # 7, 4 and 1 batches: steps 1 to 7, 8 to 11, 12


@pytest.mark.parametrize("text", ["10:64,30:256", "2:1", "none"])
def test_schedule_is_written_as_it_is_read(text: str) -> None:
    assert str(parse_batch_schedule(text)) == text


@pytest.mark.parametrize(
    "text",
    ["", "64", "ten:64", "10:64,", "30:256,10:64", "10:64,10:128", "10:0", "1:64", "10:-1", f"9:{2**31}", "²:3"],
)
def test_text_that_is_no_schedule_is_refused(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="is not"):
        parse_batch_schedule(text)


def test_recipes_and_set_give_it_as_the_flag_does(tmp_path: Path) -> None:
    config = TrainConfig.of(batch_schedule=GROWING)
    path = tmp_path / "mine.yaml"
    path.write_text(as_recipe(config))
    read = {given.name: given.value for given in from_recipe(path)}
    assert read["batch_schedule"] == GROWING
    assert from_assignment("train.batch_schedule=2:16,3:50").value == GROWING
    path.write_text("train:\n  batch_schedule: 10:64\n")
    assert from_recipe(path)[0].value == BatchSchedule(changes=((10, 64),))
    with pytest.raises(TrainerError, match="RM504"):
        from_assignment("train.batch_schedule=3:50,2:16")
