"""The end of a run as text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any


def summary(record: Mapping[str, Any], lines: Mapping[str, str], folder: Path) -> str:
    """Return a run as text: device and reason, the task's own `lines`, place.

    `record` is the content of metadata.json.
    """
    device = record["device"]
    where = f"{device['device']}, {device['name']} ({device['arch']}); {device['reason']}"
    return "\n".join(f"{label:<7} {text}" for label, text in {"device": where, **lines, "folder": str(folder)}.items())
