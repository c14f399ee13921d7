"""The learning task that a configuration describes: which rows, split how, scaled by what."""

from __future__ import annotations

import math
from dataclasses import dataclass

from trainer.config import TrainConfig
from trainer.data.bars import Bars, DataFile, read_bars
from trainer.data.dataset import make_dataset
from trainer.data.split import Scaler, Split, split_by_time


@dataclass(frozen=True, kw_only=True)
class Task:
    """Data made ready: `bars` are those used of the file's `file_rows`; both scalers know only `split.train`."""

    file: DataFile
    file_rows: int
    bars: Bars
    split: Split
    inputs: Scaler
    targets: Scaler


def prepare(config: TrainConfig) -> Task:
    """Read, cut, split and scale the data.

    Raises:
        TrainerError: RM510 to RM518, where the file is wrong or holds too little.
    """
    bars, file = read_bars(config.data)
    used = bars[len(bars) - math.ceil(len(bars) * config.data_fraction) :]
    split = split_by_time(make_dataset(used, config.horizon), embargo=config.horizon)
    return Task(
        file=file,
        file_rows=len(bars),
        bars=used,
        split=split,
        inputs=Scaler.fit(split.train.features),
        targets=Scaler.fit(split.train.target),
    )
