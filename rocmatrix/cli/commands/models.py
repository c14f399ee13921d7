"""The commands for what is done with a trained model: natively on the CPU, as such networks are small."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rocmatrix.cli.commands.predict import after_training
from rocmatrix.runtime.console import edge
from rocmatrix.runtime.errors import RocmatrixError


@edge
def compress(options: Mapping[str, Any], *, dry_run: bool, as_json: bool = False) -> None:
    """Run the trainer's `compress`.

    Args:
        options: values by the name of the option; None is left out.
        dry_run: print the command and run nothing.
        as_json: print events as JSON lines.
    """
    if not options.get("model"):
        raise RocmatrixError("RM404", what="compress needs --model, the folder of a finished run")
    after_training("compress", [], options, dry_run=dry_run, as_json=as_json)


@edge
def report(run: str, options: Mapping[str, Any], *, dry_run: bool, as_json: bool = False) -> None:
    """Run the trainer's `report` on the folder `run`.

    Args:
        run: folder of a finished run.
        options: values by the name of the option; None is left out.
        dry_run: print the command and run nothing.
        as_json: print events as JSON lines.
    """
    after_training("report", [run], options, dry_run=dry_run, as_json=as_json)
