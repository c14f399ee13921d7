"""Compressing and reporting from the host: the trainer's own commands with the wheels that are here."""

import subprocess

import pytest

from rocmatrix.cli.commands import models as command
from rocmatrix.cli.tasks import flags
from rocmatrix.cli.tasks import models as task
from rocmatrix.images import native_env as native

RUNNER = native.Native(python="python3", cell=None, why="stand-in")


@pytest.fixture(autouse=True)
def stand_in(monkeypatch):
    monkeypatch.setattr(native, "prepare", lambda *args, **kwargs: RUNNER)
    monkeypatch.setattr(subprocess, "Popen", lambda *args, **kwargs: pytest.fail("something was run"))


def test_dry_runs_print_the_commands(capsys):
    command.compress({"model": "TRAINING/one", "how": "int8,prune", "data": ""}, dry_run=True)
    command.report("TRAINING/one", {"repeats": "9"}, dry_run=True)
    assert capsys.readouterr().out.splitlines() == [
        "python3 -P -m trainer compress --model=TRAINING/one --how=int8,prune",
        "python3 -P -m trainer report TRAINING/one --repeats=9",
    ]


def test_compress_without_a_model_states_what_is_needed(capsys):
    with pytest.raises(SystemExit) as caught:
        command.compress({}, dry_run=True)
    assert caught.value.code
    assert "RM404" in capsys.readouterr().err


def test_tasks_take_the_trainers_options():
    for one, own in ((task.compress, {"dry-run"}), (task.report, {"dry-run", "run"})):
        names = {name for argument in one.get_arguments() for name in argument.names}
        assert own | {option["name"].replace("_", "-") for option in flags.trainer_options(one.name)} <= names
