"""Forecasting, compressing and reporting from the host: the trainer's own commands with the wheels that are here."""

import json

import pytest

from rocmatrix.cli.commands import models as command
from rocmatrix.cli.commands.models import Report
from rocmatrix.cli.options.command import known, trainer_options
from rocmatrix.cli.options.common import TrainerCommandOptions
from rocmatrix.images import native_env
from rocmatrix.jobs import runner
from tests.fixtures.native_stand_in import stand_in  # noqa: F401 -- used by every test


def test_dry_runs_print_the_commands(capsys):
    command.compress(TrainerCommandOptions(dry_run=True), {"model": "TRAINING/one", "how": "int8,prune", "data": ""})
    command.report(Report(run="TRAINING/one", dry_run=True), {"repeats": "9"})
    assert capsys.readouterr().out.splitlines() == [
        "python3 -P -m trainer compress --model=TRAINING/one --how=int8,prune",
        "python3 -P -m trainer report TRAINING/one --repeats=9",
    ]


def test_dry_run_prints_the_command_and_runs_nothing(capsys):
    command.predict(TrainerCommandOptions(dry_run=True), {"model": "TRAINING/a b", "data": "bars.csv", "output": ""})
    assert capsys.readouterr().out == "python3 -P -m trainer predict '--model=TRAINING/a b' --data=bars.csv\n"


def test_events_are_handed_on_and_a_failure_is_the_tasks_own(monkeypatch, capsys):
    def run(argv, *, environment, show):
        show({"event": "done", "rows": 3})
        return runner.Finished(status=2, events=())

    monkeypatch.setattr(runner, "attached", run)
    with pytest.raises(SystemExit) as caught:
        command.predict(TrainerCommandOptions(as_json=True), {"model": "TRAINING/one", "data": "bars.csv"})
    assert caught.value.code == 2
    assert json.loads(capsys.readouterr().out) == {"event": "done", "rows": 3}
    with pytest.raises(SystemExit):
        command.predict(TrainerCommandOptions(), {"model": "TRAINING/one", "data": "bars.csv"})
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("task", [command.predict, command.compress])
def test_missing_option_is_named_before_any_install(task, monkeypatch, capsys):
    monkeypatch.setattr(native_env, "prepare", lambda *args, **kwargs: pytest.fail("wheels were asked for"))
    with pytest.raises(SystemExit) as caught:
        task(TrainerCommandOptions(), {"data": "bars.csv"})
    message = capsys.readouterr().err
    assert caught.value.code == 2
    assert "RM404" in message and "--model (folder of a finished run" in message and "--data" not in message


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("compress", {"dry-run", "json", "use-installed-torch"}),
        ("predict", {"dry-run", "json", "use-installed-torch"}),
        ("report", {"dry-run", "json", "use-installed-torch", "run"}),
    ],
)
def test_command_takes_its_own_and_the_trainers_options(name, own):
    assert {flag.name for flag in known()[name].flags} == own | {
        each["name"].replace("_", "-") for each in trainer_options(name)
    }


def test_installed_torch_forecasts_and_nothing_is_fetched(monkeypatch, capsys):
    monkeypatch.setattr(native_env, "prepare", lambda *args, **kwargs: pytest.fail("wheels were asked for"))
    own = native_env.Native(python="/usr/bin/python3.13", cell=None, why="torch 2.6.0; --use-installed-torch")
    monkeypatch.setattr(native_env, "installed", lambda: own)
    args = TrainerCommandOptions(dry_run=True, use_installed_torch=True)
    command.predict(args, {"model": "TRAINING/one", "data": "bars.csv"})
    written = capsys.readouterr()
    assert written.out == "/usr/bin/python3.13 -P -m trainer predict --model=TRAINING/one --data=bars.csv\n"
    assert "--use-installed-torch" in written.err
