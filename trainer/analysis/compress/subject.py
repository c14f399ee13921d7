"""The model to be made smaller, with the very data that it was trained on."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from trainer.analysis.predict import load_network, read_metadata
from trainer.config.train import TrainConfig, settings
from trainer.runtime.errors import TrainerError
from trainer.storage.metadata_schema import Metadata
from trainer.tasks.bars import prepare
from trainer.tasks.prepared import Task


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A finished run, read back: its folder, settings, metadata, network on the CPU, and task."""

    folder: Path
    config: TrainConfig
    metadata: Metadata
    network: nn.Module
    task: Task


def config_of(stored: Mapping[str, Any], data: Path | None) -> TrainConfig:
    """Return the settings that metadata.json holds; those that this trainer does not know are left out."""
    values: dict[str, Any] = {}
    for name, setting in settings().items():
        if name in stored:
            value = stored[name]
            try:
                value = setting.parse(value) if isinstance(value, str) else value
            except ArgumentTypeError as error:
                raise TrainerError("RM546", what=f"the setting {name} cannot be used", why=str(error)) from error
            values[name] = tuple(value) if isinstance(value, list) else value
    return TrainConfig(**(values | ({"data": data} if data else {})))


def read_subject(model: Path, data: Path | None) -> Subject:
    """Read a run's folder and the data it was trained on: `data`, else where its settings say.

    Raises:
        TrainerError: RM546, RM547 for the folder, RM524 where the data are other ones or not there.
    """
    metadata = read_metadata(model)
    network = load_network(model, metadata)
    config = config_of(metadata.config, data)
    if not config.data.is_file():
        raise TrainerError("RM524", what="the data are not there", where=str(config.data))
    task = prepare(config)
    if task.file.sha256 != metadata.data.sha256:
        why = f"SHA-256 {task.file.sha256[:12]}…, the run was trained on {metadata.data.sha256[:12]}…"
        raise TrainerError("RM524", what="the file holds other data", where=str(config.data), why=why)
    return Subject(folder=model, config=config, metadata=metadata, network=network, task=task)
