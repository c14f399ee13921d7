"""The end of a run as text."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from trainer.tasks.task import RUN


def summary(record: Mapping[str, Any], lines: Mapping[str, str]) -> str:
    """Return a run as text: device and reason, and the task's own `lines`.

    Args:
        record: content of metadata.json.
        lines: the task's own lines, by their label.
    """
    device = record["device"]
    where = f"{device['device']}, {device['name']} ({device['arch']}); {device['reason']}"
    return _labelled([("device", where), *lines.items()])


def where_to_go(commands: Iterable[str], folder: Path) -> str:
    """Return the run's folder and the next commands, for a person who started the trainer without `./invokew`.

    Args:
        commands: the task's own, with `RUN` for the folder.
        folder: folder of the run.
    """
    place = shlex.quote(str(folder))
    named = (("next", command.replace(RUN, place)) for command in commands)
    return _labelled([("folder", str(folder)), *named])


def _labelled(rows: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f"{label:<7} {text}" for label, text in rows)
