"""Check that a run resumes from its own state: the checkpoint, the inputs as computed now, the versions.

A run's record before training begins (`metadata.metadata`) is plain data, so nothing here asks what kind of task it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from trainer.config.batch_schedule import CONSTANT
from trainer.config.train import settings as known_settings
from trainer.runtime.errors import TrainerError

CLOSE = 1e-6  # of a figure: sums of the same values round differently on another processor, and no more than this
DECIDE_BITS = ("torch", "hip", "cuda", "numpy", "trainer")  # versions whose change may round differently


def origin_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return what run.json and each checkpoint state of versions and inputs, from a run's record."""
    return {"versions": dict(record["versions"]), "inputs": _inputs(record)}


def _inputs(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return what identifies the features (names, formulas, rows, means, deviations) and an adapter by peft."""
    split, scaler, target = (record.get(name) or {} for name in ("split", "scaler", "target"))
    rows = {name: part["rows"] for name, part in split.items() if isinstance(part, Mapping) and "rows" in part}
    adapter = (record.get("model") or {}).get("peft")
    return {
        "features": [[each.get("name"), each.get("formula")] for each in record.get("features") or ()],
        "rows": rows,
        **({"adapter": adapter} if adapter else {}),
        "figures": {
            **{f"mean of input {place}": value for place, value in enumerate(scaler.get("mean") or ())},
            **{f"deviation of input {place}": value for place, value in enumerate(scaler.get("std") or ())},
            **{f"{name} of the target": target[name] for name in ("mean", "std") if target.get(name) is not None},
        },
    }


def require_same_inputs(name: str, before: Any, now: Mapping[str, Any]) -> None:
    """Raise RM593 where the rows that this trainer makes of the data are not those that run `name` began with.

    Args:
        name: name of the unfinished run.
        before: its record, as JSON.
        now: record of the present attempt.
    """
    if not isinstance(before, Mapping):
        return  # a run of an earlier trainer, which did not record it
    differing = _difference(before, now)
    if differing:
        raise TrainerError("RM593", what=f"run {name} began with other inputs", why=differing)


def _difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    if before.get("features") != now["features"]:
        return "the features have other names or formulas"
    if before.get("rows") != now["rows"]:
        return f"the parts have {now['rows']} rows, and had {before.get('rows')}"
    if before.get("adapter") and before["adapter"] != now.get("adapter"):
        return f"the adapter is {now.get('adapter')}, and was {before['adapter']}"
    figures = before.get("figures")
    if not isinstance(figures, Mapping) or figures.keys() != now["figures"].keys():
        return "there are other columns"
    away = [name for name, value in now["figures"].items() if not _close(figures[name], value)]
    return f"{away[0]} is {now['figures'][away[0]]!r}, and was {figures[away[0]]!r}" if away else ""


def _close(before: Any, now: Any) -> bool:
    if isinstance(before, bool) or not isinstance(before, int | float) or not isinstance(now, int | float):
        return False
    return math.isclose(before, now, rel_tol=CLOSE, abs_tol=1e-12)


def version_changes(before: Any, now: Mapping[str, Any]) -> list[str]:
    """Return, as text, each version that may make the rest of the run equal only up to rounding."""
    if not isinstance(before, Mapping):
        return []
    return [
        f"{name} {before[name]} is now {now.get(name)}"
        for name in DECIDE_BITS
        if name in before and before[name] != now.get(name)
    ]


def unrecorded() -> dict[str, Any]:
    """Return the values of the settings that a run records only where they are not the default."""
    return {each.name: each.default for each in known_settings().values() if each.sparse}


def require_own(path: Path, facts: Any, own: Mapping[str, Any], fixed: Iterable[str]) -> None:
    """Raise RM591 where the checkpoint at `path` is of another run than the one whose settings are `own`.

    Args:
        path: folder of the checkpoint, for the message.
        facts: content of the checkpoint's manifest, as JSON.
        own: settings of this run.
        fixed: names of the settings that no run may change.
    """
    recorded = facts.get("settings") if isinstance(facts, Mapping) else None
    if not isinstance(recorded, Mapping) or not isinstance(recorded.get("config"), Mapping):
        raise TrainerError("RM591", what="it does not state which run it is of", where=str(path))
    theirs, ours = (_decisive(each, fixed) for each in (recorded, own))
    differing = [name for name in ours if theirs.get(name) != ours[name]]
    if differing:
        words = ", ".join(f"{name} {theirs.get(name)!r} (this run: {ours[name]!r})" for name in differing[:4])
        raise TrainerError("RM591", what=f"it was taken under {words}", where=str(path))


def _decisive(settings: Mapping[str, Any], fixed: Iterable[str]) -> dict[str, Any]:
    # earlier trainers knew no schedule of batches
    config = unrecorded() | {"batch_schedule": str(CONSTANT)} | dict(settings["config"])
    named = {name: _plain(config[name]) for name in fixed if name in config}
    return named | {"data_sha256": settings.get("data_sha256")}


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
