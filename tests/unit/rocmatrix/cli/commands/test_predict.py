"""Forecasting from the host: the trainer's own command with the wheels that are here."""

import json
import subprocess

import pytest

from rocmatrix.cli.commands import predict as command
from rocmatrix.cli.options.command import known, trainer_options
from rocmatrix.cli.options.common import TrainerCommandOptions
from rocmatrix.images import native_env
from rocmatrix.jobs import runner

RUNNER = native_env.Native(python="python3", cell=None, why="stand-in")


@pytest.fixture
def stand_in(monkeypatch):
    monkeypatch.setattr(native_env, "prepare", lambda *args, **kwargs: RUNNER)


def test_dry_run_prints_the_command_and_runs_nothing(stand_in, monkeypatch, capsys):
    monkeypatch.setattr(subprocess, "Popen", lambda *args, **kwargs: pytest.fail("something was run"))
    command.predict(TrainerCommandOptions(dry_run=True), {"model": "TRAINING/a b", "data": "bars.csv", "output": ""})
    assert capsys.readouterr().out == "python3 -P -m trainer predict '--model=TRAINING/a b' --data=bars.csv\n"


def test_events_are_handed_on_and_a_failure_is_the_tasks_own(stand_in, monkeypatch, capsys):
    def run(argv, *, environment, show):
        show({"event": "done", "rows": 3})
        return runner.Finished(status=2, events=())

    monkeypatch.setattr(runner, "run", run)
    with pytest.raises(SystemExit) as caught:
        command.predict(TrainerCommandOptions(as_json=True), {})
    assert caught.value.code == 2
    assert json.loads(capsys.readouterr().out) == {"event": "done", "rows": 3}
    with pytest.raises(SystemExit):
        command.predict(TrainerCommandOptions(), {})
    assert capsys.readouterr().out == ""


def test_command_takes_the_trainers_options():
    assert {flag.name for flag in known()["predict"].flags} == {"model", "data", "output", "join", "columns", "dry-run", "json"}
    assert {option["name"] for option in trainer_options("predict")} == {"model", "data", "output", "join", "columns"}
