"""Settings that a file holds, as values of their kind: nothing of a wrong type or out of bounds comes out of it."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from trainer.config.name_list import written
from trainer.config.setting import Setting, shown
from trainer.config.train import settings


def values_of(stored: Any, names: Iterable[str] | None = None) -> dict[str, Any]:
    """Return the settings that `stored` holds, those in `names` alone where given; unknown ones are left out.

    Raises:
        ValueError: naming the setting, where its value is none that the setting takes.
    """
    if not isinstance(stored, Mapping):
        raise ValueError(f"the settings are {type(stored).__name__}, not names and values")
    chosen = settings() if names is None else {name: settings()[name] for name in names}
    return {name: value_of(setting, stored[name]) for name, setting in chosen.items() if name in stored}


def value_of(setting: Setting, value: Any) -> Any:
    """Return one value in JSON's types as its setting has it.

    Raises:
        ValueError: naming the setting, for a value that it does not take.
    """
    if value is None and _takes_none(setting):
        return None
    if setting.is_switch != isinstance(value, bool) or not isinstance(value, str | bool | int | float | list | tuple):
        raise ValueError(f"{setting.name} is {type(value).__name__}")
    if isinstance(value, list | tuple) and not all(isinstance(each, str | int) for each in value):
        raise ValueError(f"{setting.name} is a list of something else")
    try:
        return setting.parse(_typed(setting, value))
    except (ArgumentTypeError, OverflowError) as error:
        raise ValueError(f"{setting.name}: {str(error)[:200]}") from None


def _typed(setting: Setting, value: Any) -> str:
    """Return a value as a person would type it."""
    if isinstance(value, list | tuple):
        return written(value) or ("none" if setting.name == "hidden_layers" else "")
    return shown(value)


def _takes_none(setting: Setting) -> bool:
    if isinstance(setting.default, Path):
        return False
    for word in ("auto", "off"):
        try:
            if setting.parse(word) is None:
                return True
        except (ArgumentTypeError, ValueError):
            continue
    return setting.default is None
