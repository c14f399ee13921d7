"""`./invokew predict`, `compress` and `report`: a finished run's model, on the CPU, as such networks are small."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rocmatrix.cli.commands import common
from rocmatrix.cli.options.command import TrainerOptions, command, trainer_options
from rocmatrix.cli.options.common import TrainerCommandOptions
from rocmatrix.runtime.console import say
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.option import positional
from rocmatrix.runtime.paths import ROOT


@command(TrainerCommandOptions, trainer="predict", about="Forecast with a finished run's model.")
def predict(args: TrainerCommandOptions, options: TrainerOptions) -> None:
    """Run the trainer's `predict`."""
    after_training("predict", [], options, args)


@command(
    TrainerCommandOptions,
    trainer="compress",
    about="Make a finished run's model smaller: distilled, pruned or int8, with loss, bytes and time before and after.",
)
def compress(args: TrainerCommandOptions, options: TrainerOptions) -> None:
    """Run the trainer's `compress`."""
    after_training("compress", [], options, args)


@dataclass(frozen=True, kw_only=True)
class Report(TrainerCommandOptions):
    """Options of `report`."""

    run: str = positional("folder of a finished run, TRAINING/<run>", metavar="RUN")


@command(
    Report,
    trainer="report",
    about="Write a page on a finished run: losses, errors, the weight of each input, the split, the conventions.",
)
def report(args: Report, options: TrainerOptions) -> None:
    """Run the trainer's `report` on the folder of a run."""
    after_training("report", [args.run], options, args)


def after_training(program: str, arguments: list[str], options: Mapping[str, Any], args: TrainerCommandOptions) -> None:
    """Run a command of the trainer with the locked CPU wheels, or with the active environment's or the machine's torch.

    Raises RM404 for a missing option, before wheels are installed, RM403 where no torch fits this machine's Python, and
    RM655 where it has none.

    Args:
        program: name of the trainer's command.
        arguments: arguments before the options.
        options: values by the name of the option; None is left out.
        args: what is asked of this side: with `as_json` events are printed as JSON lines, otherwise data alone.
    """
    require_options(program, options)
    from rocmatrix.images import native_env
    from rocmatrix.jobs import programs
    from rocmatrix.jobs import runner as launch

    if args.use_installed_torch:
        runner = native_env.installed()
    else:
        runner = native_env.prepare(common.known_matrix(), ROOT, cell=None, install_wheels=not args.dry_run)
    argv = launch.native_argv(runner.python, [program, *arguments, *programs.flags(options)])
    say(f"torch: {runner.why}")
    if args.dry_run:
        print(launch.Job(argv=argv, environment=None, why="").summary)
        return
    show = common.event_printer(as_json=args.as_json)
    done = launch.attached(argv, environment=launch.native_environment(ROOT, os.environ), show=show)
    if done.status != 0:
        sys.exit(done.exit_status)


def require_options(program: str, options: Mapping[str, Any]) -> None:
    """Raise RM404 where an option that the trainer's command requires was not given.

    Args:
        program: name of the trainer's command.
        options: values by the name of the option.
    """
    required = [
        each
        for each in trainer_options(program)
        if each.get("required") and not options.get(each["name"]) and not options.get(each.get("unless", ""))
    ]
    if required:
        needs = " and ".join(f"--{each['name'].replace('_', '-')} ({each['help']})" for each in required)
        others = dict.fromkeys(each["unless"] for each in required if each.get("unless"))
        instead = "".join(f", or --{other}" for other in others)
        raise RocmatrixError("RM404", what=f"{program} needs {needs}{instead}", next=f"See ./invokew {program} --help.")
