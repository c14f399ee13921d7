"""The model to be made smaller, with the data that it was trained on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from trainer.analysis.predict import load_network, read_metadata, require_bars
from trainer.config.sections.bars import BarsConfig
from trainer.config.sections.network import MlpConfig
from trainer.config.sections.tokens import TokensConfig
from trainer.config.train import TrainConfig
from trainer.data.readers.data_file import digest_of
from trainer.run.stored_settings import values_of
from trainer.runtime.errors import TrainerError
from trainer.tasks.bars import prepare
from trainer.tasks.prepared import Task
from trainer.tasks.records.row_schema import Metadata


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


@dataclass(frozen=True, kw_only=True)
class Given:
    """Present paths of a run's files, and columns by role; what is not given is as the run recorded it."""

    data: Path | None = None
    join: Path | None = None
    columns: tuple[str, ...] = ()

    @property
    def settings(self) -> dict[str, Any]:
        """What is given, by the name of the setting."""
        return {name: value for name, value in vars(self).items() if value}


def config_of(stored: Mapping[str, Any], given: Given) -> TrainConfig:
    """Return the settings that metadata.json holds; those that this trainer does not know are left out."""
    try:
        values = values_of(stored)
    except ValueError as error:
        raise TrainerError("RM546", what="a setting in metadata.json cannot be used", why=str(error)) from error
    return TrainConfig.of(**(values | given.settings))


def read_subject(model: Path, given: Given) -> Subject:
    """Read a run's folder and the data it was trained on: as `given`, else at the path in its settings.

    Raises:
        TrainerError: RM546, RM547 for the folder, RM524 where a file is another one or not there, RM500 where columns
            or a second file are given that the run did not have.
    """
    metadata = read_metadata(model)
    network = load_network(model, metadata)
    require_own_options(metadata, given)
    config = config_of(metadata.config, given)
    # Before anything is read of them: metadata.json names paths, and a file that is not the run's is none of ours.
    require_own_bytes(config.data.data, metadata.data.sha256, "the data")
    if (second := joined_file(config)) is not None:
        joined = metadata.data.read.get("joined")
        recorded = joined.get("sha256") if isinstance(joined, dict) else None
        require_own_bytes(second, recorded, "the joined file", option="--join")
    if isinstance(config.data, TokensConfig):
        raise TrainerError("RM546", what="its settings are a language model's", where=str(model / "metadata.json"))
    task = prepare(config.data)
    require_fitting_task(metadata, task, model)
    require_same_columns(metadata, task, given)
    return Subject(folder=model, config=config, metadata=metadata, network=network, task=task)


def files_of(config: TrainConfig) -> dict[str, Path]:
    """Return the files that a run reads, by their flags."""
    second = joined_file(config)
    return {"--data": config.data.data} | ({"--join": second} if second else {})


def joined_file(config: TrainConfig) -> Path | None:
    """Return the file that is joined to bars; None where there is none."""
    return config.data.inputs.second.join if isinstance(config.data, BarsConfig) else None


def require_own_options(metadata: Metadata, given: Given) -> None:
    """Raise RM500 where options of bars are given for a table, or a second file for a run of one."""
    require_bars(metadata, given.join, given.columns)
    if given.join and not metadata.data.read.get("joined"):
        what = f"--join is given, and {metadata.run} was trained on one file"
        raise TrainerError("RM500", what=what, where=str(given.join), next="Leave --join out.")


def require_own_bytes(file: Path, recorded: Any, name: str, *, option: str = "--data") -> None:
    """Raise RM524 where a file is not there or is not, byte for byte, the one that the run was trained on.

    Args:
        file: path of the file.
        recorded: its SHA-256 in metadata.json; None where that has none.
        name: what the file is, for the message.
        option: the option that names it.
    """
    advice = f"Give the file that the run was trained on with {option}."
    if not _is_file(file):
        raise TrainerError("RM524", what=f"{name}: no file", where=str(file), next=advice)
    try:
        found = digest_of(file)
    except OSError as error:
        raise TrainerError("RM524", what=f"{name}: {error.strerror}", where=str(file), next=advice) from error
    if found != recorded:
        why = f"SHA-256 {found[:12]}…, the run was trained on {str(recorded)[:12]}…"
        raise TrainerError("RM524", what=f"{name}: other bytes", where=str(file), why=why, next=advice)


def require_same_columns(metadata: Metadata, task: Task, given: Given) -> None:
    """Raise RM500 where columns are given that are not those of the run: its figures would be of other inputs."""
    before, now = (read.get("columns") for read in (metadata.data.read, task.file.read))
    if given.columns and before != now:
        roles = before if isinstance(before, dict) else {}
        recorded = ",".join(f"{role}={name}" for role, name in roles.items())
        what = f"--columns: the run {metadata.run} was trained with {recorded}"
        raise TrainerError("RM500", what=what, next="Leave --columns out; the run's own are recorded.")


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
