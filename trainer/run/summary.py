"""The end of a run as text."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

RUN = "{run}"  # stands for the run's folder in the commands of the `done` event: a container's is another outside


def summary(record: Mapping[str, Any], lines: Mapping[str, str]) -> str:
    """Return a run as text: device and reason, and the task's own `lines`.

    Args:
        record: content of metadata.json.
        lines: the task's own lines, by their label.
    """
    device = record["device"]
    where = f"{device['device']}, {device['name']} ({device['arch']}); {device['reason']}"
    return _labelled([("device", where), *lines.items()])


def where_to_go(record: Mapping[str, Any], folder: Path) -> str:
    """Return the run's folder and the next commands, for a person who started the trainer without `./invokew`.

    Args:
        record: content of metadata.json.
        folder: folder of the run.
    """
    place = shlex.quote(str(folder))
    commands = (("next", command.replace(RUN, place)) for command in next_commands(record))
    return _labelled([("folder", str(folder)), *commands])


def next_commands(record: Mapping[str, Any]) -> list[str]:
    """Return what a person does next with the model, as commands with RUN for its folder.

    Args:
        record: content of metadata.json.
    """
    if record.get("task") != "language":
        use = f"./invokew predict --model {RUN} --data NEW.csv --output forecasts.csv"
        return [use, f"./invokew report {RUN}"]
    converses = record["language"]["method"] != "pretrain"
    use = f"./invokew chat --model {RUN}" if converses else f"./invokew generate --model {RUN} --prompt 'Once'"
    if record["model"]["adapter"] == "none":
        tune = f"./invokew train --task lm --model {RUN} --adapter lora --data CHATS.jsonl"
        return [use, tune, f"./invokew gguf --model {RUN} --output model.gguf"]
    measure = f"./invokew evaluate --model {RUN} --data TEXT"
    return [use, measure, f"./invokew merge --model {RUN} --output MERGED"]


def _labelled(rows: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f"{label:<7} {text}" for label, text in rows)
