"""Check that a resumed run has the callbacks that it began with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainer.runtime.events import emit, say


def hashes_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return what run.json holds of the users' callbacks in a run's record: each file's SHA-256; nothing for none."""
    hashes = {each["name"]: each["sha256"] for each in record.get("callbacks") or ()}
    return {"callbacks": hashes} if hashes else {}


def callback_changes(before: Any, now: Mapping[str, str]) -> list[str]:
    """Return, as text, each callback that is new, missing, or defined by other bytes than when the run began."""
    was = before if isinstance(before, Mapping) else {}
    return [
        *(f"{name} is not used any more" for name in was if name not in now),
        *(f"{name} is new" for name in now if name not in was),
        *(f"{name} has changed" for name in now if name in was and was[name] != now[name]),
    ]


def report_changed_callbacks(settings: Mapping[str, Any] | None, record: Mapping[str, Any]) -> None:
    """Report which callbacks of a resumed run are not those that it began with; `settings` is None for a new run."""
    if settings is None:
        return
    changes = callback_changes(settings.get("callbacks"), hashes_of(record).get("callbacks", {}))
    if changes:
        emit("callbacks_changed", changes=changes)
        say(f"resume  callbacks differ from those that the run began with: {'; '.join(changes)}")
