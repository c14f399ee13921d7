"""Resume an unfinished run: under its own settings, on its own data, or not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from trainer.config.batch_schedule import CONSTANT
from trainer.config.setting import OnResume, shown
from trainer.config.train import TrainConfig
from trainer.config.train import settings as known_settings
from trainer.run.memory_plan.start_size import StartSize
from trainer.run.metadata import versions
from trainer.run.same_run import unrecorded, version_changes
from trainer.run.stored_settings import values_of
from trainer.runtime.errors import TrainerError
from trainer.storage.run_folder import SETTINGS, RunFolder
from trainer.tasks.task import LearningTask

START, CHOICES = "micro_batch", "rank_choices"  # keys of run.json: the first plan of memory; each --ranks auto


def named(*kinds: OnResume) -> list[str]:
    """Return the settings with which resuming does one of these."""
    return [name for name, each in known_settings().items() if each.resume in kinds]


def stays() -> list[str]:
    """Return the settings that a resumed run has from the one that it resumes, unless another value is given."""
    return named(OnResume.FIXED, OnResume.LENGTH, OnResume.KEPT, OnResume.ROUNDING)


def fixed_under(stored: Mapping[str, Any]) -> list[str]:
    """Return the settings that no resume of a run with the settings `stored` may change."""
    return named(OnResume.FIXED, OnResume.LENGTH) if ends_with_run(stored) else named(OnResume.FIXED)


def given(config: TrainConfig) -> dict[str, Any]:
    """Return the settings that were given, at their default, too: by a flag, --set, a recipe, or code.

    What code sets in a section counts as given where it is not the default.
    """
    known = known_settings()
    otherwise = {name: value for name, value in config.values().items() if value != known[name].default}
    return {**config.given, **otherwise}


def settings_of(config: TrainConfig, data_sha256: str, *, world_size: int) -> dict[str, Any]:
    """Return the content of run.json.

    Args:
        data_sha256: hash of the data file.
        world_size: number of ranks.
    """
    return {"config": config.as_dict(), "data_sha256": data_sha256, "world_size": world_size}


def checked(settings: Any) -> dict[str, Any] | None:
    """Return the settings that a file holds where they are of the right form; None where they are not.

    Values that decide the run must be ones that their settings take: a changed file must not end in a traceback.
    """
    if not isinstance(settings, dict) or not isinstance(settings.get("config"), dict):
        return None
    whole = settings.get("world_size")
    sound = isinstance(settings.get("data_sha256"), str) and isinstance(whole, int) and whole > 0
    try:
        values_of(settings["config"], stays())
    except ValueError:
        return None
    complete = set(named(OnResume.FIXED)) - {"batch_schedule"} - unrecorded().keys() <= settings["config"].keys()
    return settings if sound and complete else None


def write_settings(folder: RunFolder, settings: dict[str, Any]) -> None:
    """Write run.json.

    Raises:
        OSError: where it cannot be written.
    """
    folder.write(SETTINGS, (json.dumps(settings, indent=2) + "\n").encode())


def with_settings_of(config: TrainConfig, name: str, settings: dict[str, Any]) -> TrainConfig:
    """Return `config` with what was not given taken from the unfinished run `name`.

    Args:
        name: name of the unfinished run.
        settings: content of its run.json.

    Raises:
        TrainerError: RM551 where a setting that decides the weights was given and differs.
    """
    stored = {name: value for name, value in unrecorded().items() if name in stays()}
    # earlier trainers knew no schedule of batches
    stored |= values_of({"batch_schedule": str(CONSTANT)} | settings["config"], stays())
    requested = given(config)
    differing = [
        key for key in fixed_under(stored) if key in requested and key in stored and requested[key] != stored[key]
    ]
    if differing:
        was = ", ".join(f"--{key.replace('_', '-')} {shown(stored[key])}" for key in differing)
        raise TrainerError("RM551", what=f"run {name} was started with {was}")
    return config.having(**(stored | requested | {"run": name}))


def ends_with_run(stored: Mapping[str, Any]) -> bool:
    """Return whether the learning rate of every step depends on the number of all steps."""
    return stored.get("schedule") in ("cosine", "linear", "wsd") or stored.get("warmup_ratio") is not None


def planned_before(settings: Mapping[str, Any] | None) -> StartSize | None:
    """Return the micro-batch that an unfinished run was planned to start with; None where none is on record.

    Args:
        settings: content of its run.json.
    """
    facts = (settings or {}).get(START)
    if not isinstance(facts, Mapping):
        return None
    rows, why = facts.get("rows"), facts.get("why")
    if not isinstance(why, str) or not (rows is None or (type(rows) is int and rows > 0)):
        return None
    sizes = (facts.get(name) for name in ("needed_bytes", "budget_bytes"))
    needed, budget = (each if type(each) is int else None for each in sizes)
    return StartSize(rows=rows, why=why, needed_bytes=needed, budget_bytes=budget)


def rank_choices(config: TrainConfig, settings: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Return what `--ranks auto` came to at the run's start and at each resume, in order; equal ones in a row are one.

    Args:
        settings: content of run.json; None for a new run.
    """
    now = config.provenance.rank_choice
    before = _choices_before(settings or {})
    latest = [json.loads(now)] if now is not None else []
    return before if latest == before[-1:] else [*before, *latest]


def _choices_before(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    kept = settings.get(CHOICES)
    if isinstance(kept, list):
        return [each for each in kept if isinstance(each, dict)]
    # earlier trainers recorded the first among the settings alone
    first = (settings.get("config") or {}).get("rank_choice")
    try:
        found = json.loads(first) if isinstance(first, str) else None
    except ValueError:
        return []
    return [found] if isinstance(found, dict) else []


def recorded_choice(choices: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what metadata.json holds of at least one choice: the first, and those of resumes with it."""
    first, *later = choices
    return first | ({"resumed": later} if later else {})


def require_same_data(task: LearningTask, name: str, settings: dict[str, Any]) -> None:
    """Raise RM551 where the data file has other bytes than the run began with.

    Args:
        name: name of the unfinished run.
        settings: content of its run.json.
    """
    if task.data_sha256 != settings["data_sha256"]:
        why = f"SHA-256 {task.data_sha256[:12]}…, the run began with {settings['data_sha256'][:12]}…"
        raise TrainerError("RM551", what=f"run {name} was started on other data", where=task.data_name, why=why)


def require_epochs(name: str, *, requested: int, trained: int) -> None:
    """Raise RM551 where the run has trained more epochs than it is to have: its record would state too few.

    Args:
        name: name of the unfinished run.
        requested: value of `--epochs`.
        trained: epochs that it has trained.
    """
    if trained > requested:
        what = f"run {name} has trained {trained} epochs, more than --epochs {requested}"
        why = "Epochs that were trained cannot be undone."
        raise TrainerError("RM551", what=what, why=why, next=f"Give --epochs {trained} or more, or start a new run.")


def require_steps(name: str, *, requested: int | None, taken: int) -> None:
    """Raise RM551 where the run has taken more steps than it is to have.

    Args:
        name: name of the unfinished run.
        requested: value of `--max-steps`; None without a limit.
        taken: steps that it has taken.
    """
    if requested is not None and taken > requested:
        what = f"run {name} has taken {taken:,} steps, more than --max-steps {requested}"
        why = "Steps that were taken cannot be undone."
        raise TrainerError("RM551", what=what, why=why, next=f"Give --max-steps {taken} or more, or start a new run.")


def longer(settings: dict[str, Any] | None, config: TrainConfig) -> dict[str, Any] | None:
    """Return what the run was started with, but for its length, which a resume may change for all that follow."""
    if settings is None:
        return None
    length = {name: value for name, value in config.as_dict().items() if name in named(OnResume.LENGTH)}
    return {**settings, "config": {**settings["config"], **length}}


def rounding_changes(config: TrainConfig, world_size: int, settings: dict[str, Any]) -> list[str]:
    """Return, as text, what now differs and makes the rest of the run equal only up to rounding.

    Args:
        world_size: number of ranks.
        settings: content of run.json.
    """
    now = config.as_dict() | {"world_size": world_size}
    before = settings["config"] | {"world_size": settings["world_size"]}
    changes = [
        f"{key} {before.get(key)} is now {now[key]}"
        for key in (*named(OnResume.ROUNDING), "world_size")
        if before.get(key) != now[key]
    ]
    return changes + version_changes(settings.get("versions"), versions())
