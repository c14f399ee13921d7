"""Choice of the learning task that a configuration describes."""

from __future__ import annotations

from pathlib import Path

from trainer.config.sections.decoder import DecoderConfig
from trainer.config.sections.network import MlpConfig
from trainer.config.sections.tokens import TokensConfig
from trainer.config.train import TrainConfig
from trainer.runtime.events import say
from trainer.tasks.task import LearningTask


def task_of(config: TrainConfig, *, shown: bool = False) -> LearningTask:
    """Read the data and return the task; every rank does so by itself.

    `shown`: features are computed with a progress line, and what was assumed about the data is reported.

    Raises:
        TrainerError: RM510 to RM518, RM571 to RM583, RM700 to RM717, where the data are wrong or hold too little.
    """
    if isinstance(config.data, TokensConfig):
        from trainer.tasks.language_model import language_task

        model = config.model
        assert isinstance(model, DecoderConfig)  # by --task, as the data are
        return language_task(config.data, model, folder=config.run.output, loop=config.loop)
    return _row_task(config, shown=shown)


def _row_task(config: TrainConfig, *, shown: bool) -> LearningTask:
    """Return the task of bars or a table. Their readers need polars, which a language model does without."""
    from trainer.tasks.bars import prepare
    from trainer.tasks.row_task import BarTask, TableTask

    assert isinstance(config.model, MlpConfig)
    assert not isinstance(config.data, TokensConfig)
    data = prepare(config.data, disk=disk_of(config), shown=shown)
    if shown and data.assumptions:
        say("\n".join(data.assumptions))
    if data.horizon is None:
        return TableTask(data=data, model=config.model, kind="table", baselines=config.data.baselines)
    return BarTask(data=data, model=config.model, kind="bars", baselines=config.data.baselines)


def disk_of(config: TrainConfig) -> Path | None:
    """Return the folder for rows that are mapped: that of the runs, as /tmp may be memory. None where they are not."""
    return config.run.output if config.compute.feed == "mapped" else None
