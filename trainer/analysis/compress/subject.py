"""The model to be made smaller, with the very data that it was trained on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from trainer.analysis.predict import load_network, read_metadata
from trainer.config.sections.network import MlpConfig
from trainer.config.sections.tokens import TokensConfig
from trainer.config.train import TrainConfig
from trainer.data.readers.data_file import digest_of
from trainer.run.stored_settings import values_of
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

    @property
    def model(self) -> MlpConfig:
        """The settings of the network; a folder of rows is read, which a decoder's is not."""
        assert isinstance(self.config.model, MlpConfig)
        return self.config.model


def config_of(stored: Mapping[str, Any], data: Path | None) -> TrainConfig:
    """Return the settings that metadata.json holds; those that this trainer does not know are left out."""
    try:
        values = values_of(stored)
    except ValueError as error:
        raise TrainerError("RM546", what="a setting in metadata.json cannot be used", why=str(error)) from error
    return TrainConfig.of(**(values | ({"data": data} if data else {})))


def read_subject(model: Path, data: Path | None) -> Subject:
    """Read a run's folder and the data it was trained on: `data`, else where its settings say.

    Raises:
        TrainerError: RM546, RM547 for the folder, RM524 where the data are other ones or not there.
    """
    metadata = read_metadata(model)
    network = load_network(model, metadata)
    config = config_of(metadata.config, data)
    file = config.data.data
    if not _is_file(file):
        raise TrainerError("RM524", what="the data are not there", where=str(file))
    # Before anything is read of it: metadata.json names a path, and a file that is not the run's is none of ours.
    try:
        found = digest_of(file)
    except OSError as error:
        raise TrainerError("RM524", what=f"the data: {error.strerror}", where=str(file)) from error
    if found != metadata.data.sha256:
        why = f"SHA-256 {found[:12]}…, the run was trained on {metadata.data.sha256[:12]}…"
        raise TrainerError("RM524", what="the file holds other data", where=str(file), why=why)
    if isinstance(config.data, TokensConfig):
        raise TrainerError("RM546", what="its settings are a language model's", where=str(model / "metadata.json"))
    task = prepare(config.data)
    require_fitting_task(metadata, task, model)
    return Subject(folder=model, config=config, metadata=metadata, network=network, task=task)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()  # a pipe, which would be waited for, and a device are none
    except ValueError:  # a name that no file can have
        return False


def require_fitting_task(metadata: Metadata, task: Task, folder: Path) -> None:
    """Raise RM546 where the settings make other inputs or classes of the data than metadata.json records.

    Args:
        folder: folder of the run, for the message.
    """
    here = [feature["name"] for feature in task.features], task.labels
    labels = metadata.target.labels
    recorded = [feature.name for feature in metadata.features], tuple(labels) if labels is not None else None
    if here != recorded:
        what = "its settings make other inputs or classes than it names"
        raise TrainerError("RM546", what=what, where=str(folder / "metadata.json"))
