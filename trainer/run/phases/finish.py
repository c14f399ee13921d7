"""Phase 3, after the last step: the scores and the files of the trained network, and the report of the end."""

from __future__ import annotations

import sys
from typing import Any

from trainer.config.recipe import as_recipe
from trainer.engine.state import Epoch
from trainer.engine.training import Training
from trainer.run.artifacts import best_of, lasted, plain, save, scores
from trainer.run.checkpoint_writer import finish as remove_leftovers
from trainer.run.phases.attempt import Attempt
from trainer.run.phases.prepare import Prepared
from trainer.run.summary import summary, where_to_go
from trainer.runtime.events import emit, say
from trainer.storage.run_folder import RunFolder
from trainer.tasks.task import LearningTask


def finish(
    training: Training,
    prepared: Prepared,
    attempt: Attempt,
    folder: RunFolder,
    record: dict[str, Any],
    history: list[Epoch],
) -> None:
    """Measure the trained network and write its files.

    Args:
        record: content of metadata.json so far; completed here.
        history: measurements in order.
    """
    task, ranks = prepared.task, training.ranks
    record["metrics"] = {"best": best_of(history).facts(), **scores(training, task)}
    whole = ranks.full_state_dict(dict(prepared.model.state_dict()))
    if ranks.is_main:
        model = plain(whole, prepared.precision, prepared.network)
        files = task.files(model, record, attempt.config.run.export)
        save(folder, files | {"recipe.yaml": as_recipe(attempt.config).encode()}, history, record)


def complete(
    task: LearningTask, attempt: Attempt, folder: RunFolder, record: dict[str, Any], history: list[Epoch]
) -> None:
    """Remove what only a resume needs, and report the end; the folder has its final name.

    Args:
        record: content of metadata.json.
        history: measurements in order.
    """
    remove_leftovers(folder.final, attempt.config.run.keep)
    commands = task.next_commands(record)
    emit("done", run=folder.name, folder=str(folder.final), next=commands, **record["metrics"])
    say(summary(record, task.summary(record, lasted(history))))
    if sys.stdout.isatty():  # otherwise a program reads the event, and states the place as it is outside a container
        say(where_to_go(commands, folder.final))
