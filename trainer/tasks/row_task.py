"""Bars and tables as learning tasks: rows of numbers with scalers, one target, three parts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch

from trainer.config.sections.network import MlpConfig
from trainer.config.sections.optimizer import LoopConfig
from trainer.data.bar import Floats
from trainer.data.dataset import Dataset
from trainer.models.build import build, fitting_layers
from trainer.models.losses import CROSS_ENTROPY, SQUARED_ERROR, batch_weight_of, loss_sum_of
from trainer.tasks import export
from trainer.tasks.metrics.comparison import simpler_models
from trainer.tasks.metrics.score import as_numbers, baselines_by_part, confusions_of, score_of
from trainer.tasks.metrics.summary import row_lines
from trainer.tasks.prepared import Task
from trainer.tasks.records.rows import model_record, row_records
from trainer.tasks.scaling import load_partitions, scaled
from trainer.tasks.tables.defaults import table_defaults
from trainer.tasks.task import (
    RUN,
    AttentionShape,
    BatchWeight,
    Evaluation,
    LossSum,
    NetworkSpec,
    Partitions,
    Placement,
    Trained,
)


@dataclass(frozen=True, kw_only=True)
class RowTask:
    """A task whose data are one matrix of numbers, read and split already; see `LearningTask` for the methods."""

    data: Task
    model: MlpConfig = field(default_factory=MlpConfig)
    kind: str = "rows"
    baselines: str = "none"

    @property
    def data_name(self) -> str:
        """Name of the data file."""
        return self.data.file.name

    @property
    def data_sha256(self) -> str:
        """SHA-256 of the data file."""
        return self.data.file.sha256

    @property
    def train_rows(self) -> int:
        """Number of rows of the training part."""
        return len(self.data.split.train)

    def defaults(self, loop: LoopConfig, given: Collection[str]) -> dict[str, Any]:
        """Return nothing: bars are trained as every run's defaults have it."""
        return {}

    def network(self) -> NetworkSpec:
        """Return the network from these inputs to the target."""
        description = model_record(self.model, self.data)
        return NetworkSpec(
            description=description,
            build=partial(build, description),
            attention=attention_of(description),
            remedy=lambda most: f"--hidden-layers {','.join(map(str, fitting_layers(description, most)))} would fit",
        )

    def partitions(self, placement: Placement) -> Partitions:
        """Return the scaled rows, held as --feed wants them."""
        train, validation, feed = load_partitions(self.data, placement)
        return Partitions(train=train, validation=validation, feed=feed.name, reason=feed.reason, workers=feed.workers)

    def precomputed(self, rows: Partitions, evaluation: Evaluation) -> Partitions:
        """Return the rows: nothing is computed of them before a step."""
        return rows

    def loss(self) -> LossSum:
        """Return cross entropy for classes, squared error for a number."""
        return loss_sum_of(CROSS_ENTROPY if self.data.labels else SQUARED_ERROR, self.data.class_weights)

    def batch_weight(self) -> BatchWeight | None:
        """Return the sum of the class weights of a batch, None where all rows weigh the same."""
        return batch_weight_of(self.data.class_weights)

    def evaluate(self, evaluation: Evaluation) -> dict[str, Any]:
        """Return the figures on the validation and the test part, in the weights' precision, and simpler models'."""
        split = self.data.split
        parts = {"validation": split.validation, "test": split.test}
        outputs = {name: (part, outputs_of(self.data, part, evaluation)) for name, part in parts.items()}
        against = baselines_by_part(self.data, parts)
        figures: dict[str, Any] = {name: score_of(self.data, *each, against[name]) for name, each in outputs.items()}
        confusions = confusions_of(self.data, outputs)
        figures |= {"confusion": confusions} if confusions else {}
        if self.baselines == "none":
            return figures
        return figures | {"baselines": simpler_models(self.data, outputs, against, self.baselines)}

    def describe(self, network: NetworkSpec) -> dict[str, Any]:
        """Return the entries of metadata.json that the first schema has."""
        return row_records(self.data, network.description)

    def replay_settings(self) -> dict[str, Any]:
        """Return the class weights."""
        return {"class_weights": self.data.class_weights}

    def files(self, model: torch.nn.Module, record: dict[str, Any], formats: Sequence[str]) -> dict[str, bytes]:
        """Return weights and what --export asks for.

        Args:
            model: trained network on the CPU.
            record: content of metadata.json.
            formats: values of `--export`.
        """
        return export.files(model, record, formats)

    def summary(self, record: Mapping[str, Any], trained: Trained) -> dict[str, str]:
        """Return the lines on data, best epoch and scores."""
        return row_lines(record, trained)

    def next_commands(self, record: Mapping[str, Any]) -> list[str]:
        """Return how to forecast with the model, and how to see the run as a page."""
        return [f"./invokew predict --model {RUN} --data NEW.csv --output forecasts.csv", f"./invokew report {RUN}"]


class BarTask(RowTask):
    """Forecast of the next bars from features of those before them."""


class TableTask(RowTask):
    """One column of a table from the others."""

    def defaults(self, loop: LoopConfig, given: Collection[str]) -> dict[str, Any]:
        """Return learning rate, epochs and patience by the number of training rows, where they are not `given`."""
        return table_defaults(loop, self.train_rows, given)


@torch.no_grad()
def outputs_of(task: Task, part: Dataset, evaluation: Evaluation) -> Floats:
    """Return the network's raw outputs for `part`, shape (rows, outputs)."""
    rows = scaled(part, task, evaluation.dtype)
    return np.concatenate([as_numbers(evaluation.forward(each.inputs.to(evaluation.device))) for each in rows])


def attention_of(description: Mapping[str, Any]) -> AttentionShape | None:
    """Return the shape of a transformer over columns: one token each and one for the answer; None for others."""
    if "heads" not in description:
        return None
    heads = description["heads"]
    width = description["token_width"] // heads
    return AttentionShape(heads=heads, length=description["widths"][0] + 1, width=width, causal=False)
