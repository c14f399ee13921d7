from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from trainer.config.sections.bars import BarsConfig
from trainer.config.sections.network import MlpConfig
from trainer.config.sections.run import ProvenanceConfig
from trainer.config.train import TrainConfig
from trainer.data.features.daily_features import FEATURES
from trainer.device.accelerator import Accelerator
from trainer.run.metadata import absent, finite
from trainer.run.metadata import metadata as metadata_of
from trainer.tasks.bars import Task, prepare
from trainer.tasks.row_task import BarTask

CARD = Accelerator(device="cuda:0", kind="rocm", name="Radeon", arch="gfx1100", memory_bytes=1, reason="why")


@pytest.fixture(scope="module")
def task() -> Task:
    return prepare(BarsConfig())


def metadata(run: str, config: TrainConfig, data: Task, card: Accelerator) -> dict[str, Any]:
    assert isinstance(config.model, MlpConfig)
    made = BarTask(data=data, model=config.model)
    return metadata_of(run, config, made.describe(made.network()), card)


def test_everything_is_json(task: Task) -> None:
    record = metadata("one", TrainConfig.of(), task, CARD)
    assert json.loads(json.dumps(record, allow_nan=False))["device"]["arch"] == "gfx1100"


def test_features_scaler_and_network_have_the_same_width(task: Task) -> None:
    record = metadata("one", TrainConfig.of(hidden_layers=(8,)), task, CARD)
    width = len(FEATURES)
    assert len(record["features"]) == len(record["scaler"]["mean"]) == len(record["scaler"]["std"]) == width
    assert record["model"]["widths"] == [width, 8, 1]


def test_settings_are_kept_as_resolved(task: Task) -> None:
    record = metadata("named-at-start", TrainConfig.of(seed=3), task, CARD)
    assert record["config"] == TrainConfig.of(seed=3, run="named-at-start").as_dict()


def test_null_fields_have_their_reason(task: Task) -> None:
    assert absent(ProvenanceConfig(cell="c", image="i", commit="g"), "a source") == {}
    unknown = replace(task, file=replace(task.file, source=None))
    record = metadata("one", TrainConfig.of(cell="c"), unknown, CARD)
    assert record["data"]["source"] is record["image"] is record["git_commit"] is None
    assert record["absent"].keys() == {"data.source", "image", "git_commit"}


def test_figures_that_are_not_finite_become_null_with_a_reason() -> None:
    record = {"a": [1.0, float("nan")], "b": {"c": float("-inf"), "d": "x"}, "absent": {"e": "why"}}
    whole = finite(record)
    assert (whole["a"], whole["b"]) == ([1.0, None], {"c": None, "d": "x"})
    assert whole["absent"].keys() == {"a.1", "b.c", "e"}
    assert finite({"a": 1.0, "absent": {}}) == {"a": 1.0, "absent": {}}
