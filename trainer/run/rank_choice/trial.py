"""One trial of `--ranks auto`: the run's own steps for some seconds, in processes that write no run and then end.

The trial reads the data and takes the steps as the run does: the same network, batches, feed, precision and step
strategy, validation included. It writes no folder, takes no checkpoint and calls no user's callback.
"""

from __future__ import annotations

import contextlib
import os
import time
from argparse import ArgumentTypeError
from pathlib import Path
from typing import Any

import torch

from trainer.config.batch_schedule import CONSTANT
from trainer.config.parsing import number
from trainer.config.sections.bars import BarsConfig
from trainer.config.train import TrainConfig
from trainer.device.accelerator import Accelerator, alike_cards, choose
from trainer.distributed.collectives import Ranks
from trainer.distributed.parallel.join import connect
from trainer.engine.callbacks.callback import Callback, TakenSteps
from trainer.engine.callbacks.nan_check import NanCheck
from trainer.engine.instrumentation import guard_of
from trainer.engine.loop import fit
from trainer.engine.steps.compile import compile_if_worth_it
from trainer.engine.steps.step_strategy import choose_step, wait
from trainer.engine.training import StoppedError, Training
from trainer.run.phases.assemble import training_of
from trainer.run.phases.attempt import Attempt
from trainer.run.phases.prepare import Prepared, prepare, read
from trainer.run.rank_choice.choice import CARDS, FEWEST_BATCHES, LOOK, RATE, TRIAL
from trainer.run.rank_setup import joined
from trainer.runtime.errors import TrainerError
from trainer.runtime.events import emit, say
from trainer.storage.run_folder import folder_of

SECONDS, WARM = 3.0, 1 / 3  # of one measurement unless LENGTH sets another, and the share of it that warms up before
LENGTH = "TRAINER_RANK_TRIAL_SECONDS"
STEPS = 3  # at least, of the warm-up and of what is measured
ENDLESS = 100_000  # epochs: the trial ends by the clock
STAND_IN = 2  # gloo ranks on a CPU, where two cards are to be imitated


class Stopwatch(Callback):
    """Counts rows over a stretch of the loop, then asks it to stop; validation within the stretch counts."""

    accepts_launches = True

    def __init__(self, seconds: float) -> None:
        self.began: float | None = None
        self.steps = self.rows = 0
        self.seconds = 0.0
        self._first, self._least = time.perf_counter(), seconds

    def on_step_end(self, run: Any, taken: TakenSteps) -> None:
        """Begin to count after the warm-up; once it is enough, ask for a stop, which the ranks vote on."""
        if run.stop.requested:
            return
        self.steps += len(taken.rows)
        self.rows += sum(map(len, taken.rows))
        now = time.perf_counter()
        since, least = (self._first, WARM * self._least) if self.began is None else (self.began, self._least)
        if self.steps < STEPS or now - since < least:
            return
        wait(run.device)
        if self.began is None:
            self.began, self.steps, self.rows = time.perf_counter(), 0, 0
        else:
            self.seconds = time.perf_counter() - self.began
            run.stop.requested = True


def measure(config: TrainConfig) -> None:
    """Take the steps of `config` for some seconds and print their rate as an event; alone or as one rank of several.

    Without torchrun, one rank is measured where several are possible, and the event states the number of all.

    Raises:
        TrainerError: what a run of `config` would raise before or in its first steps.
    """
    bootstrap = connect()
    try:
        cards = 0
        if bootstrap.world_size == 1:
            found = here(config)
            emit(CARDS, **found)
            cards = found["cards"]
        if cards == 1 or LOOK in os.environ:
            return
        rates = measured(without_traces(config), bootstrap)
        if bootstrap.is_main:
            emit(RATE, **rates)
    finally:
        bootstrap.close()


def here(config: TrainConfig) -> dict[str, Any]:
    """Return how many ranks are possible on this machine, why no more, and whether they stand in for cards."""
    requested = config.compute.device
    if requested.startswith("cuda:"):
        return {"cards": 1, "why": f"--device {requested} names one card"}
    accelerator = choose(requested)
    if accelerator.kind == "cpu":
        return {"cards": STAND_IN, "stand_in": True}
    return usable(accelerator) | {"stand_in": False}


def usable(accelerator: Accelerator) -> dict[str, Any]:
    """Return the number of cards that a run of several ranks would take, and where it is 1, the reason."""
    alike = alike_cards(accelerator)
    visible = torch.cuda.device_count()
    if len(alike) == visible > 1:
        return {"cards": visible}
    if visible == 1:
        return {"cards": 1, "why": f"one card is here: {accelerator.name} ({accelerator.arch})"}
    others = f"{visible} cards are here, {len(alike)} of them {accelerator.arch}"
    return {
        "cards": 1,
        "why": f"{others}: ranks take cards alike; hide the others with --cards or ROCR_VISIBLE_DEVICES",
    }


def without_traces(config: TrainConfig) -> TrainConfig:
    """Return `config` without what leaves traces; what it writes while it runs goes to the trial's own folder."""
    folder = Path(os.environ[TRIAL])
    kept = isinstance(config.data, BarsConfig) and config.data.inputs.cache is None
    cache: dict[str, Any] = {"cache": folder / "features"} if kept else {}
    return config.having(output=folder, resume=None, run=None, callback=(), track=(), export=(), **cache)


def measured(config: TrainConfig, bootstrap: Ranks) -> dict[str, Any]:
    """Return the rates of a few seconds: with the run's batch, and among ranks with its rows on each of them."""
    task, attempt = read(Attempt(config=config, name=None, settings=None, bootstrap=bootstrap))
    prepared = prepare(attempt, task)
    config = prepared.attempt.config  # with the micro-batch that was planned, as the run has it
    if bootstrap.world_size == 1:
        return rate(prepared, config, bootstrap)
    with joined(bootstrap, prepared.accelerator.device, config.distributed, None) as ranks:
        same = rate(prepared, config, ranks)
        larger = larger_batch(config, rows=task.train_rows, ranks=ranks.world_size)
        more = attempted(prepared, larger, ranks) if larger else None
        return same | {"comms": transport_of(ranks)} | ({"larger": more} if more else {})


def larger_batch(config: TrainConfig, *, rows: int, ranks: int) -> TrainConfig | None:
    """Return `config` with as many rows on each rank as one rank has alone; None where that is no sensible training.

    It takes data parallel ranks, one size of batch, and enough rows for some batches an epoch.

    Args:
        rows: rows of the training part.
        ranks: number of ranks.
    """
    size = ranks * config.loop.batch_size
    plain = config.distributed.parallel == "ddp" and config.loop.batch_schedule == CONSTANT
    return config.having(batch_size=size) if plain and rows >= FEWEST_BATCHES * size else None


def attempted(prepared: Prepared, config: TrainConfig, ranks: Ranks) -> dict[str, Any] | None:
    """Return the rate, or None where it cannot be measured on any rank: it is advice, and decides nothing."""
    try:
        return rate(prepared, config, ranks)
    except TrainerError as error:
        say(f"ranks   batch {config.loop.batch_size:,} was not measured: {error.code} {error.what}")
        return None


def rate(prepared: Prepared, config: TrainConfig, ranks: Ranks) -> dict[str, Any]:
    """Return the rows a second over all ranks of `config`'s steps, and how they were taken."""
    endless = config.having(max_steps=None, epochs=ENDLESS, patience=None)
    training = training_of(prepared, endless, ranks, Callback())
    against = prepared.gates.refusals().get("compile", "")
    compile_if_worth_it(training, config.compute.compile, config.distributed.parallel, against=against)
    choice = choose_step(config.compute.step, training)
    watch = watched(training, prepared, config)
    with contextlib.suppress(StoppedError):
        fit(training)
    return {
        "ranks": ranks.world_size,
        "batch_size": config.loop.batch_size,
        "rows_per_second": float(f"{watch.rows / watch.seconds:.5g}") if ranks.is_main else 0.0,
        "steps": watch.steps,
        "seconds": round(watch.seconds, 3),
        "step": choice.name,
        "device": prepared.accelerator.device.partition(":")[0],
        "name": prepared.accelerator.name,
        "arch": prepared.accelerator.arch,
    }


def watched(training: Training, prepared: Prepared, config: TrainConfig) -> Stopwatch:
    """Give `training` the callbacks that cost time in a run, and on rank 0 the one that measures; return that."""
    watch, own = Stopwatch(length()), []
    if config.telemetry.nan_guard:
        architecture = prepared.network.description | prepared.task.replay_settings()
        folder = folder_of(config.run.output, "trial")
        own.append(NanCheck(guard_of(training, config.telemetry.nan_guard, folder, architecture)))
    training.callbacks = training.callbacks.after(*own, *([watch] if training.ranks.is_main else []))
    return watch


def length() -> float:
    """Return the seconds of one measurement. Raises RM500 where the variable that sets them is no number above zero."""
    text = os.environ.get(LENGTH, str(SECONDS))
    try:
        return float(number(1e6)(text))
    except ArgumentTypeError as error:
        raise TrainerError("RM500", what=str(error), where=LENGTH) from None


def transport_of(ranks: Ranks) -> str:
    """Return the name of the transport that gradients take between the ranks."""
    member = getattr(ranks, "member", None)
    return str(member.choice.transport.name) if member else "none"
