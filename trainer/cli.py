"""The command line: `train`, `smoke` and `errors`. Nothing heavy is imported before a command needs it."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import sys
import tempfile
import traceback
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

import trainer
from trainer.config import TrainConfig, flags
from trainer.errors import CATALOG, TrainerError, from_os_error, suggestion
from trainer.events import emit, say


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return 0, 2 for what the caller can put right, 1 for a defect, 130 when interrupted."""
    arguments: dict[str, Any] = {}
    try:
        words = dashed(sys.argv[1:] if argv is None else argv)
        if words[:1] == ["smoke"]:
            return smoke(words[1:])
        arguments = parse(words)
        return errors() if arguments.pop("command") == "errors" else train(arguments)
    except (Exception, KeyboardInterrupt) as error:
        return report(in_catalog_words(error, arguments.get("output")))


def train(arguments: dict[str, Any]) -> int:
    """Run the main job."""
    from trainer.train import train as run

    run(TrainConfig(**arguments))
    return 0


def smoke(argv: list[str]) -> int:
    """Hand over to the probes, which parse their own flags."""
    from trainer.probes.runner import main as run

    return run(argv)


def errors() -> int:
    """Print the catalog, one JSON object a line."""
    for entry in CATALOG.values():
        print(json.dumps(asdict(entry)))
    return 0


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise TrainerError("RM500", what=message)


def parse(argv: list[str]) -> dict[str, Any]:
    """Return the command's name and its settings.

    Raises:
        TrainerError: RM500, naming the nearest flag for an unknown one.
    """
    arguments, unknown = parser().parse_known_args(argv)
    if unknown:
        flag = unknown[0].partition("=")[0]
        known = [name for name, _ in flags()] if arguments.command == "train" else ["--help"]
        raise TrainerError("RM500", what=f"{flag} is not known to {arguments.command}", why=suggestion(flag, known))
    return vars(arguments)


def parser() -> argparse.ArgumentParser:
    """Return the parser; `train`'s flags are the fields of TrainConfig."""
    root = _Parser(prog="trainer", description=trainer.__doc__, allow_abbrev=False)
    root.add_argument("--version", action="version", version=f"trainer {trainer.__version__}")
    commands = root.add_subparsers(dest="command", required=True, metavar="COMMAND")
    job = commands.add_parser("train", help="train on price bars and write a run folder", allow_abbrev=False)
    for name, settings in flags():
        job.add_argument(name, **settings)
    commands.add_parser("smoke", help="check what this machine can compute")
    commands.add_parser("errors", help="print the catalog of error codes as JSON lines")
    return root


def dashed(argv: Sequence[str]) -> list[str]:
    """Return `argv` with `--batch_size` written as `--batch-size`; values keep their underscores."""
    return [re.sub(r"^--\w[\w-]*", lambda flag: flag[0].replace("_", "-"), word) for word in argv]


def in_catalog_words(error: BaseException, output: Path | None) -> TrainerError:
    """Return `error` as one of the catalog; the traceback of an unknown one goes to a file in `output`."""
    torch = sys.modules.get("torch")  # if it was never imported, this is none of its errors
    if isinstance(error, TrainerError):
        return error
    if isinstance(error, KeyboardInterrupt):
        return TrainerError("RM598", what="the run was stopped before its end")
    if isinstance(error, ImportError):
        return TrainerError("RM501", what=str(error))
    if torch and isinstance(error, torch.cuda.OutOfMemoryError):
        return TrainerError("RM521", what=". ".join(str(error).split(". ")[:2]))  # without torch's advice
    known = from_os_error(error) if isinstance(error, OSError) else None
    return known or unexpected(error, output)


def unexpected(error: BaseException, output: Path | None) -> TrainerError:
    """Return RM599, its traceback kept in `output`, else in the system's folder for temporary files."""
    text = "".join(traceback.format_exception(error))
    where = "no file: neither the output folder nor the temporary one can be written"
    for folder in (output, None):
        with contextlib.suppress(OSError):
            handle, where = tempfile.mkstemp(prefix="traceback-", suffix=".txt", dir=folder)
            os.write(handle, text.encode())
            break
    return TrainerError("RM599", what=f"{type(error).__name__}: {error}", where=where)


def report(error: TrainerError) -> int:
    """Tell people on stderr and programs on stdout; return the exit status."""
    say(error.render())
    try:
        emit("error", **error.parts())
    except OSError:  # nobody reads stdout, or its disk is full: Python's own flush at exit must not fail, too
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return error.exit_status
