"""Settings of the optimizer, and of the loop: how long a run is and when it is measured.

Sparse settings came after the first metadata: where they are not used, they appear neither there nor in a recipe.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated, ClassVar

from trainer.config.batch_schedule import CONSTANT, MOST_EPOCHS, MOST_ROWS, BatchSchedule, parse_batch_schedule
from trainer.config.choices import BEST_ON, OPTIMIZERS, SCHEDULES, WEIGHTS
from trainer.config.other_programs import WORDS
from trainer.config.parsing import Reader, number, one_of, or_none, share, whole, zero_or_more
from trainer.config.setting import Flag, OnResume

MOST_STEPS = 2**40
_fixed = partial(Flag, resume=OnResume.FIXED)
_schedule = Reader(parse_batch_schedule, "EPOCH:ROWS,...|none")
_steps = or_none(whole(1, MOST_STEPS))


@dataclass(frozen=True, kw_only=True)
class OptimizerConfig:
    """The optimizer, its learning-rate schedule, and the limit of its gradients."""

    title: ClassVar[str] = "Optimizer"
    optimizer: Annotated[
        str,
        _fixed(
            "adamw8bit: moments in 8 bits; adamw-host: moments in the host's memory; "
            "muon: for matrices of hidden layers, with AdamW for the rest",
            one_of(*OPTIMIZERS, also=WORDS["optimizer"]),
            common=True,
            sparse=True,
        ),
    ] = "adamw"
    learning_rate: Annotated[
        float, _fixed("learning rate of AdamW; of a table by its rows unless given", number(10), common=True)
    ] = 5e-5
    muon_learning_rate: Annotated[
        float | None,
        _fixed(
            "learning rate of Muon's matrices, the spectral norm of an update "
            "(default: --learning-rate at the size of AdamW's updates; 0.02 for a new language model)",
            or_none(number(10)),
            sparse=True,
        ),
    ] = None
    weight_decay: Annotated[float, _fixed("AdamW weight decay", zero_or_more(10), common=True)] = 0.01
    schedule: Annotated[
        str, _fixed("learning-rate schedule; a decay is to 0", one_of(*SCHEDULES, also=WORDS["schedule"]), common=True)
    ] = "constant"
    warmup_steps: Annotated[
        int | None, _fixed("steps over which the learning rate rises (default: none)", _steps, sparse=True)
    ] = None
    warmup_ratio: Annotated[
        float | None, _fixed("warm-up steps as a share of all steps (default: none)", or_none(share), sparse=True)
    ] = None
    decay_ratio: Annotated[
        float, _fixed("share of the steps in which wsd decays, at the end", number(1), sparse=True)
    ] = 0.1
    clip_norm: Annotated[
        float | None,
        _fixed(
            "largest norm of all gradients; larger ones are scaled down (default: none)",
            or_none(number(1e30)),
            sparse=True,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class LoopConfig:
    """Settings of the loop: length of a run, batch size, validation, and the weights that are kept."""

    title: ClassVar[str] = "Loop"
    epochs: Annotated[
        int,
        Flag(
            "passes over the training rows; of a table by their number unless given",
            whole(1, MOST_EPOCHS),
            resume=OnResume.LENGTH,
            common=True,
        ),
    ] = 300
    max_steps: Annotated[
        int | None,
        Flag(
            "optimizer steps to take, in place of --epochs (default: none)",
            _steps,
            resume=OnResume.LENGTH,
            common=True,
            sparse=True,
        ),
    ] = None
    batch_size: Annotated[int, _fixed("rows per optimizer step", whole(1, MOST_ROWS), common=True)] = 32
    batch_schedule: Annotated[
        BatchSchedule,
        _fixed("batch size from an epoch on, as 10:64,30:256", _schedule),
    ] = CONSTANT
    seed: Annotated[int, _fixed("seed of weights and of the order of rows", whole(0, 2**32 - 1), common=True)] = 0
    eval_every: Annotated[
        int | None, _fixed("steps between validations (default: none, one each epoch)", _steps, sparse=True)
    ] = None
    patience: Annotated[
        int | None,
        _fixed("end the run after so many validations without a lower loss (default: none)", _steps, sparse=True),
    ] = None
    weights: Annotated[str, _fixed("weights to keep; best: of the best validation loss", one_of(*WEIGHTS))] = "best"
    best_on: Annotated[
        str, Flag("where the best weights are kept", one_of(*BEST_ON), resume=OnResume.KEPT, sparse=True)
    ] = "device"
