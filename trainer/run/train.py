"""The main job: from a data file to a run folder with a model, its metadata and its scores."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import asdict

from trainer.config.sections.run import RunConfig
from trainer.config.train import TrainConfig
from trainer.data.loading.sampler import steps_of
from trainer.distributed.collectives import Ranks
from trainer.distributed.parallel.join import connect
from trainer.distributed.watchdog.guard import guarded
from trainer.engine.instrumentation import callbacks_of
from trainer.engine.loop import fit
from trainer.engine.state import Epoch
from trainer.engine.steps.batch_size_probe import suggest_batch_size
from trainer.engine.steps.compile import compile_if_worth_it
from trainer.engine.steps.step_strategy import choose_step
from trainer.engine.training import StoppedError, Training
from trainer.run.artifacts import size_estimate
from trainer.run.phases.assemble import assemble, begin_record, resume_if_requested
from trainer.run.phases.attempt import Attempt
from trainer.run.phases.finish import complete, finish
from trainer.run.phases.prepare import Prepared, prepare, read
from trainer.run.rank_setup import attempt_of, joined, limits_of
from trainer.run.repeated_faults.mark import marked
from trainer.run.repeated_faults.remedy import Treatment, after_deaths, apply, kind_of
from trainer.run.resume_point import (
    finalize_if_complete,
    report_nothing_to_resume,
)
from trainer.run.resume_settings import (
    checked,
    with_settings_of,
)
from trainer.runtime.errors import TrainerError
from trainer.runtime.events import emit, say
from trainer.runtime.signals import stop_on_sigterm
from trainer.storage.run_folder import RunFolder, folder_of, open_run, to_resume


def train(config: TrainConfig) -> None:
    """Run the job, alone or as one rank of several; the run folder appears only if all of it succeeds.

    Raises:
        TrainerError: for everything the user can put right; RM554 where the run was asked to end.
        OSError: where a file cannot be written.
    """
    ranks = connect()
    try:
        config = attempt_of(config, ranks)
        if ranks.run_on_main(lambda: finalize_if_complete(config.run)):
            return
        requested = config.run
        name = ranks.run_on_main(
            lambda: to_resume(requested.output, requested.resume, requested.run) if requested.resume else None
        )
        if requested.resume and not name and ranks.is_main:
            report_nothing_to_resume(requested)
        settings = ranks.run_on_main(lambda: folder_of(requested.output, name).settings(checked)) if name else None
        config = with_settings_of(config, name, settings) if name and settings else config
        treatment = Treatment.of(ranks.run_on_main(lambda: asdict(treatment_of(config, name))))
        apply(treatment)
        run(Attempt(config=config, name=name, settings=settings, bootstrap=ranks, treatment=treatment))
    finally:
        ranks.close()


def treatment_of(config: TrainConfig, name: str | None) -> Treatment:
    """Return what is done about deaths of the unfinished run that is resumed; nothing for a new one.

    Args:
        name: name of the unfinished run; None for a new one.
    """
    if name is None:
        return Treatment()
    return after_deaths(folder_of(config.run.output, name).partial, kind_of(config.compute.device))


def run(attempt: Attempt) -> None:
    """Train in four phases: prepare, assemble, resume if asked to, finish."""
    task, attempt = read(attempt)
    prepared = prepare(attempt, task)
    attempt = prepared.attempt
    config, bootstrap = attempt.config, attempt.bootstrap
    needed = size_estimate(prepared.model, config.loop.epochs, steps_of(config.loop, prepared.task.train_rows))
    with (
        open_on(bootstrap, config.run, attempt.name, need_bytes=needed) as folder,
        stop_on_sigterm() as stop,
        marked(folder.partial, bootstrap, attempt.treatment.faults) as mark,
        guarded(folder.partial / "watchdog", limits=limits_of(config.distributed)) as heartbeat,
        joined(bootstrap, prepared.accelerator.device, config.distributed, heartbeat) as ranks,
    ):
        record = begin_record(prepared, attempt, folder, ranks)
        training = assemble(prepared, attempt, folder, ranks, record)
        training.stop = stop
        resume_if_requested(training, prepared, attempt, folder, record)
        training.callbacks = training.callbacks.after(mark)
        history = trained(training, prepared, attempt, folder)
        finish(training, prepared, attempt, folder, record, history)
    if bootstrap.is_main:
        complete(prepared.task, attempt, folder, record, history)


@contextlib.contextmanager
def open_on(ranks: Ranks, config: RunConfig, name: str | None, *, need_bytes: int) -> Iterator[RunFolder]:
    """Open the run's folder on rank 0 for all ranks.

    Args:
        name: name of an unfinished run to resume; None for a new one.
        need_bytes: free space that the run needs.
    """
    with contextlib.ExitStack() as stack:

        def enter() -> str:
            opened = open_run(config.output, name or config.run, need_bytes=need_bytes, resume=name is not None)
            return stack.enter_context(opened).name

        yield folder_of(config.output, ranks.run_on_main(enter))
        ranks.barrier()


def trained(training: Training, prepared: Prepared, attempt: Attempt, folder: RunFolder) -> list[Epoch]:
    """Choose how steps are taken, take them, and return the measurements; the best weights are in place.

    Raises:
        TrainerError: RM554 where the run was asked to end, and what `fit` raises.
    """
    config = attempt.config
    against = prepared.gates.refusals().get("compile", "")
    compile_if_worth_it(training, config.compute.compile, config.distributed.parallel, against=against)
    select_step_strategy(training, config.compute.step)
    architecture = prepared.network.description | prepared.task.replay_settings()
    own = callbacks_of(training, config.telemetry, folder, prepared.accelerator, architecture, config.as_dict())
    training.callbacks = training.callbacks.after(*own)
    try:
        return fit(training)
    except StoppedError:
        raise TrainerError("RM554", what=f"stopped after step {training.state.step:,}") from None


def select_step_strategy(training: Training, requested: str) -> None:
    """Choose how steps are taken, report why, and at a run's beginning what a larger batch would gain."""
    choice = choose_step(requested, training)
    if training.ranks.is_main:
        emit("step", **vars(choice))
        say(f"step    {choice.name}: {choice.reason}")
    suggestion = suggest_batch_size(training, choice) if training.state.step == 0 else None
    if suggestion:
        emit("advice", **vars(suggestion))
        say(f"advice  {suggestion.message()}")
