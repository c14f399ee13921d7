"""Language models from the host: the trainer's own commands, and what is asked for before wheels are installed."""

import subprocess

import pytest

from rocmatrix.cli.commands import language as command
from rocmatrix.cli.options.command import known, trainer_options
from rocmatrix.images import native_env

RUNNER = native_env.Native(python="python3", cell=None, why="stand-in")


@pytest.fixture(autouse=True)
def stand_in(monkeypatch):
    monkeypatch.setattr(native_env, "prepare", lambda *args, **kwargs: RUNNER)
    monkeypatch.setattr(subprocess, "Popen", lambda *args, **kwargs: pytest.fail("something was run"))


def test_dry_runs_print_the_commands(capsys):
    known()["generate"].run({"model": "a b", "prompt": "Once", "seed": "0", "most": "", "dry_run": True})
    known()["show-data"].run({"data": "rows.jsonl", "too_long": "cut", "dry_run": True})
    assert capsys.readouterr().out.splitlines() == [
        "python3 -P -m trainer generate '--model=a b' --prompt=Once --seed=0",
        "python3 -P -m trainer show-data --data=rows.jsonl --too-long=cut",
    ]


@pytest.mark.parametrize(("name", "needed"), [(name, needed) for name, (needed, _) in command.COMMANDS.items()])
def test_missing_option_is_named_before_any_install(name, needed, monkeypatch, capsys):
    monkeypatch.setattr(native_env, "prepare", lambda *args, **kwargs: pytest.fail("wheels were asked for"))
    with pytest.raises(SystemExit) as caught:
        known()[name].run({})
    words = capsys.readouterr().err
    assert caught.value.code == 2
    assert "RM404" in words
    assert all(f"--{each}" in words for each in needed)


@pytest.mark.parametrize("name", command.COMMANDS)
def test_tasks_take_the_trainers_options(name):
    options = {option["name"].replace("_", "-") for option in trainer_options(name)}
    assert options
    assert {flag.name for flag in known()[name].flags} == options | {"dry-run", "json"}
