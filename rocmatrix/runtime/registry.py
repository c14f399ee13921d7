"""A room as a registry: each of its modules states what it adds, and no list names the modules again."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any


def modules(room: ModuleType) -> Iterator[ModuleType]:
    """Import and yield every module of a room, by name."""
    for found in iter_modules(room.__path__):
        yield import_module(f"{room.__name__}.{found.name}")


def registered(room: ModuleType, attribute: str) -> Iterator[Any]:
    """Yield the value of `attribute` of each module of a room that has one.

    Args:
        attribute: name of a module's constant, such as SCHEDULER.
    """
    for module in modules(room):
        if (value := getattr(module, attribute, None)) is not None:
            yield value
