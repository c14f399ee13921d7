"""The tasks of `./invokew`, one module for each kind: a docstring, one call into rocmatrix, nothing else."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from invoke.collection import Collection
from invoke.tasks import Task


def collection() -> Collection:
    """Return every task of every module under its own name; tasks of one name are a defect of this package."""
    tasks = Collection()
    for found in iter_modules(__path__):
        module = import_module(f"{__name__}.{found.name}")
        for value in vars(module).values():
            if isinstance(value, Task) and value.body.__module__ == module.__name__:
                tasks.add_task(value)
    return tasks
