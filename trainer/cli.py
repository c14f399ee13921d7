"""The command line. Nothing heavy is imported before a command needs it."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

import trainer
from trainer.analysis import options as after_training
from trainer.analysis.command_table import flags_of
from trainer.analysis.language import options as language
from trainer.config import synonyms
from trainer.config.listing import ABOUT, OUTSIDE, flags, options, train_help
from trainer.config.parsing import Store, given_twice
from trainer.config.sections.bars import FeaturesConfig
from trainer.config.setting import settings_of
from trainer.config.train import TrainConfig, notices, settings
from trainer.distributed import refusal
from trainer.distributed.launch_size import require_processors
from trainer.distributed.launched_ranks import idle_ranks, require_ranks_of_launcher
from trainer.distributed.torchrun import LAUNCHED, launch
from trainer.runtime.advice import fitted
from trainer.runtime.error_report import coded, report
from trainer.runtime.errors import CATALOG, TrainerError, suggestion
from trainer.runtime.events import emit, say
from trainer.runtime.signals import TerminatedError, forget, status_of


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return 0, 2 for what the caller can put right, 1 for a defect, 130 when interrupted."""
    arguments: dict[str, Any] = {}
    command = ""
    try:
        words = dashed(sys.argv[1:] if argv is None else argv)
        if words[:1] == ["smoke"]:
            return smoke(words[1:])
        if words[:1] == ["bench"]:
            return bench(words[1:])
        if words[:1] == ["settings"]:
            return settings_only(words[1:])
        arguments = parse(words)
        command = arguments.pop("command")
        if LAUNCHED not in os.environ:  # the ranks of a launch would all repeat it
            for sentence in given_twice(words[1:], {*known_flags(command)} - {"--set", "--help"}):
                say(sentence)
        if command == "train" and LAUNCHED not in os.environ:
            words, config = with_ranks_resolved(words, arguments)
            arguments = {name: value for name, value in parse(words).items() if name != "command"}
            several = config.distributed
            if isinstance(several.ranks, int) and several.ranks > 1:
                return launched(words, config, several.ranks)
        return run(command, arguments)
    except BaseException as error:  # pyo3's PanicException is no Exception, and may have come of Ctrl-C
        if isinstance(error, SystemExit) and not isinstance(error, TerminatedError):
            raise
        forget()
        known = coded(error, folder_given(arguments))
        if command:
            known.next = fitted(known.next, known_flags(command))
        status = report(known)
        refusal.leave(known)  # last: the launcher ends this process for it
        return status_of(error, status)


def settings_only(words: list[str]) -> int:
    """Read the settings of a training as `train` does, and begin nothing: 0, or the error that `train` would end with.

    The host asks before it builds an image or sends a job. Raises TrainerError.

    Args:
        words: what would follow `train`.
    """
    from trainer.config.recipe import resolve

    resolve({name: value for name, value in parse(["train", *words]).items() if name != "command"})
    return 0


def launched(words: list[str], config: TrainConfig, ranks: int) -> int:
    """Start the ranks under torchrun and return the exit status; RM563 where they are far too many for this machine.

    Args:
        words: the trainer's command line.
        ranks: number of processes, 2 or more.
    """
    if shared := require_processors(ranks, config.compute.device):
        say(shared)
        emit("notice", what=shared)
    return launch(words, ranks=ranks, max_restarts=config.distributed.max_restarts)


def with_ranks_resolved(words: list[str], arguments: dict[str, Any]) -> tuple[list[str], TrainConfig]:
    """Return the command line and its configuration with a number of ranks; `auto` is measured first."""
    from trainer.config.recipe import resolve

    config = resolve(dict(arguments))
    if config.distributed.ranks != "auto":
        return words, config
    from trainer.run.rank_choice.choice import resolved_ranks

    resolved_words = resolved_ranks(synonyms.translated(words, known_flags("train")), config)
    again = {name: value for name, value in parse(resolved_words).items() if name != "command"}
    return resolved_words, resolve(again)


def train(arguments: dict[str, Any]) -> int:
    """Run the main job."""
    from trainer.config.recipe import resolve

    config = resolve(arguments)
    if "TRAINER_RANK_TRIAL" in os.environ:
        from trainer.run.rank_choice.trial import measure

        measure(config)
        return 0
    require_ranks_of_launcher(arguments.get("ranks"))
    for sentence in [*notices(config), *idle_ranks(config.distributed.ranks)]:
        say(sentence)
        emit("notice", what=sentence)
    from trainer.tasks import export
    from trainer.telemetry import trackers

    export.require(config.run.export)
    trackers.require(config.telemetry.track)
    from trainer.run.train import train as run

    run(config)
    return 0


def predict(arguments: dict[str, Any]) -> int:
    """Forecast with a finished run's model."""
    from trainer.analysis.predict import predict as run

    run(**arguments)
    return 0


def compress(arguments: dict[str, Any]) -> int:
    """Make a finished run's model smaller."""
    from trainer.analysis.compress.command import compress as run

    return run(**with_files(arguments))


def report_page(arguments: dict[str, Any]) -> int:
    """Write a page on a finished run."""
    from trainer.analysis.report.command import report as run

    return run(**with_files(arguments))


def with_files(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return arguments with where a run's files are now as one, `given`."""
    from trainer.analysis.compress.subject import Given

    of_files = {name: value for name, value in arguments.items() if name in ("data", "join", "columns")}
    rest = {name: value for name, value in arguments.items() if name not in of_files}
    return {**rest, "given": Given(**of_files)}


def features(arguments: dict[str, Any]) -> int:
    """Compute the features of a file, or list them."""
    from trainer.analysis.features import run

    return run(arguments)


def replay(arguments: dict[str, Any]) -> int:
    """Compute again what the NaN guard saved."""
    from trainer.analysis.replay import replay as run

    return run(**arguments)


def smoke(argv: list[str]) -> int:
    """Hand over to the probes, which parse their own flags."""
    from trainer.diagnostics.probes.runner import main as run

    return run(argv)


def bench(argv: list[str]) -> int:
    """Hand over to the benchmarks, which parse their own flags."""
    from trainer.diagnostics.bench.command import main as run

    return run(argv)


def schema(_: dict[str, Any]) -> int:
    """Print the JSON Schema of metadata.json."""
    from trainer.tasks.records.schema import json_schema

    print(json.dumps(json_schema(), indent=2))
    return 0


def compare(arguments: dict[str, Any]) -> int:
    """Find the first step at which two runs diverge."""
    from trainer.analysis.compare import compare as run

    return run(**arguments)


def errors(_: dict[str, Any]) -> int:
    """Print the catalog, one JSON object a line."""
    for entry in CATALOG.values():
        print(json.dumps(asdict(entry)))
    return 0


def print_options(_: dict[str, Any]) -> int:
    """Print what a person may give to each command, one JSON object a line."""
    from trainer.diagnostics.bench.command import OPTIONS as OF_BENCH

    for option in [*options(), *after_training.listed(), *language.listed(), *OF_BENCH]:
        print(json.dumps(option))
    return 0


def run(command: str, arguments: dict[str, Any]) -> int:
    """Run a command by its name and return its exit status."""
    listings = {"schema": schema, "errors": errors, "options": print_options}
    jobs = {"train": train, "predict": predict, "features": features, "compare": compare, "replay": replay}
    after = {"compress": compress, "report": report_page}
    if command in language.COMMANDS:
        return language.run(command, arguments)
    return (jobs | after | listings)[command](arguments)


class _Parser(argparse.ArgumentParser):
    def __init__(self, **words: Any) -> None:
        super().__init__(**words)
        for name in (None, "store"):
            self.register("action", name, Store)

    def error(self, message: str) -> NoReturn:
        raise TrainerError("RM500", what=message)


class _TrainHelp(argparse.Action):
    """Print the common settings, or with --help=all every one, and end."""

    def __call__(self, parser: argparse.ArgumentParser, _: Any, values: Any, flag: str | None = None) -> None:
        print(train_help(everything=values == "all"), end="")
        parser.exit()


def parse(argv: list[str]) -> dict[str, Any]:
    """Return the command's name and its settings.

    Raises:
        TrainerError: RM500, naming the nearest flag for an unknown one.
    """
    if argv[:1] == ["train"]:
        argv = synonyms.translated(argv, known_flags("train"))
    arguments, unknown = parser().parse_known_args(argv)
    if unknown:
        flag = unknown[0].partition("=")[0]
        known = known_flags(arguments.command)
        instead = synonyms.advice(flag) if arguments.command == "train" else ""
        why = instead or suggestion(flag, known)
        raise TrainerError("RM500", what=f"{flag} is not known to {arguments.command}", why=why)
    return vars(arguments)


def parser() -> argparse.ArgumentParser:
    """Return the parser; `train`'s flags are the fields of TrainConfig."""
    root = _Parser(prog="trainer", description=trainer.__doc__, allow_abbrev=False)
    root.add_argument("--version", action="version", version=f"trainer {trainer.__version__}")
    commands = root.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_train(commands)
    after_training.add_commands(commands)
    language.add_commands(commands)
    made = commands.add_parser("features", help="compute the features of intraday bars", allow_abbrev=False)
    for name, words in flags(settings_of(FeaturesConfig).values()):
        made.add_argument(name, **words)
    again = commands.add_parser("replay", help="compute again what the NaN guard saved", allow_abbrev=False)
    again.add_argument("file", type=Path, metavar="FILE", help="nan-step-N.pt, as the failed run named it")
    pair = commands.add_parser("compare", help="find the first step at which two runs diverge", allow_abbrev=False)
    for name in ("first", "second"):
        pair.add_argument(name, type=Path, metavar="RUN", help="folder of a run, TRAINING/<run>")
    commands.add_parser("settings", help="read the settings of train, and begin nothing")
    commands.add_parser("smoke", help="check what this machine can compute")
    commands.add_parser("bench", help="measure what this machine can do")
    commands.add_parser("schema", help="print the JSON Schema of metadata.json")
    commands.add_parser("errors", help="print the catalog of error codes as JSON lines")
    commands.add_parser("options", help="print the options of each command as JSON lines")
    return root


def known_flags(command: str) -> list[str]:
    """Return the flags of a command, to name the nearest of."""
    train = [f"--{each['name']}" for each in OUTSIDE] + [each.flag for each in settings().values()]
    made = [each.flag for each in settings_of(FeaturesConfig).values()]
    more = {"train": train, "features": made}
    more |= {each: after_training.flags_of(each) for each in after_training.COMMANDS}
    more |= {each: flags_of(language.COMMANDS, each) for each in language.COMMANDS}
    return [*more.get(command, []), "--help"]


def _add_train(commands: Any) -> None:
    job = commands.add_parser(
        "train",
        help=ABOUT[:1].lower() + ABOUT[1:].rstrip("."),
        add_help=False,
        allow_abbrev=False,
    )
    modes = {"nargs": "?", "const": "common", "choices": ("common", "all"), "default": argparse.SUPPRESS}
    job.add_argument("-h", "--help", action=_TrainHelp, **modes)
    for each in OUTSIDE:
        action = "append" if each["kind"] == "list" else "store"
        job.add_argument(f"--{each['name']}", default=argparse.SUPPRESS, action=action, help=each["help"])
    for name, words in flags(settings().values()):
        job.add_argument(name, **words)


def dashed(argv: Sequence[str]) -> list[str]:
    """Return `argv` with `--batch_size` written as `--batch-size`; values keep their underscores."""
    return [re.sub(r"^--\w[\w-]*", lambda flag: flag[0].replace("_", "-"), word) for word in argv]


def folder_given(arguments: dict[str, Any]) -> Path | None:
    """Return the folder that --output names, None where it names a file."""
    output = arguments.get("output")
    return output if output is not None and output.is_dir() else None
