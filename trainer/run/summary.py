"""The end of a run as text."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def summary(record: Mapping[str, Any], lines: Mapping[str, str], folder: Path) -> str:
    """Return a run as text: device and reason, the task's own `lines`, place.

    `record` is the content of metadata.json.

    Args:
        record: content of metadata.json.
        lines: the task's own lines, by their label.
        folder: folder of the run.
    """
    device = record["device"]
    where = f"{device['device']}, {device['name']} ({device['arch']}); {device['reason']}"
    known = {"device": where, **lines, "folder": str(folder)}
    rows = [*known.items(), *(("next", text) for text in next_commands(record, folder))]
    return "\n".join(f"{label:<7} {text}" for label, text in rows)


def next_commands(record: Mapping[str, Any], folder: Path) -> list[str]:
    """Return what a person does next with a language model, as commands; nothing for another task's run.

    `record` is the content of metadata.json.
    """
    if record.get("task") != "language":
        return []
    place = shlex.quote(str(folder))
    converses = record["language"]["method"] != "pretrain"
    use = f"./invokew chat --model {place}" if converses else f"./invokew generate --model {place} --prompt 'Once'"
    if record["model"]["adapter"] == "none":
        tune = f"./invokew train --task lm --model {place} --adapter lora --data CHATS.jsonl"
        return [use, tune, f"./invokew gguf --model {place} --output model.gguf"]
    measure = f"./invokew evaluate --model {place} --data TEXT"
    return [use, measure, f"./invokew merge --model {place} --output MERGED"]
