"""Compressing and reporting from the host: the trainer's own commands with the wheels that are here."""

import subprocess

import pytest

from rocmatrix.cli.commands import models as command
from rocmatrix.cli.commands.models import Report
from rocmatrix.cli.options.command import known, trainer_options
from rocmatrix.cli.options.common import TrainerCommandOptions
from rocmatrix.images import native_env

RUNNER = native_env.Native(python="python3", cell=None, why="stand-in")


@pytest.fixture(autouse=True)
def stand_in(monkeypatch):
    monkeypatch.setattr(native_env, "prepare", lambda *args, **kwargs: RUNNER)
    monkeypatch.setattr(subprocess, "Popen", lambda *args, **kwargs: pytest.fail("something was run"))


def test_dry_runs_print_the_commands(capsys):
    command.compress(TrainerCommandOptions(dry_run=True), {"model": "TRAINING/one", "how": "int8,prune", "data": ""})
    command.report(Report(run="TRAINING/one", dry_run=True), {"repeats": "9"})
    assert capsys.readouterr().out.splitlines() == [
        "python3 -P -m trainer compress --model=TRAINING/one --how=int8,prune",
        "python3 -P -m trainer report TRAINING/one --repeats=9",
    ]


def test_compress_without_a_model_states_what_is_needed(capsys):
    with pytest.raises(SystemExit) as caught:
        command.compress(TrainerCommandOptions(dry_run=True), {})
    assert caught.value.code
    assert "RM404" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "own"), [("compress", {"dry-run", "json"}), ("report", {"dry-run", "json", "run"})])
def test_command_takes_its_own_and_the_trainers_options(name, own):
    assert {flag.name for flag in known()[name].flags} == own | {
        each["name"].replace("_", "-") for each in trainer_options(name)
    }
