"""Language models from the host: the trainer's own commands, and what is asked for before wheels are installed."""

import pytest

from rocmatrix.cli.commands import language as command
from rocmatrix.cli.options.command import known, trainer_options
from rocmatrix.images import native_env
from tests.fixtures.native_stand_in import stand_in  # noqa: F401 -- used by every test


def test_dry_runs_print_the_commands(capsys):
    known()["generate"].run({"model": "a b", "prompt": "Once", "seed": "0", "max_new_tokens": "", "dry_run": True})
    known()["show-data"].run({"data": "rows.jsonl", "too_long": "cut", "dry_run": True})
    assert capsys.readouterr().out.splitlines() == [
        "python3 -P -m trainer generate '--model=a b' --prompt=Once --seed=0",
        "python3 -P -m trainer show-data --data=rows.jsonl --too-long=cut",
    ]


NEEDED = {
    "generate": ("model", "prompt"),
    "chat": ("model",),
    "evaluate": ("model", "data"),
    "merge": ("model", "output"),
    "gguf": ("model", "output"),
    "show-data": ("data",),
    "convert-recipe": ("recipe", "output"),
    "plan": ("model", "gpu", "recipe"),
}


@pytest.mark.parametrize("name", command.COMMANDS)
def test_missing_option_is_named_before_any_install(name, monkeypatch, capsys):
    monkeypatch.setattr(native_env, "prepare", lambda *args, **kwargs: pytest.fail("wheels were asked for"))
    with pytest.raises(SystemExit) as caught:
        known()[name].run({})
    message = capsys.readouterr().err
    assert caught.value.code == 2
    assert "RM404" in message
    assert all(f"--{each}" in message for each in NEEDED[name])


def test_option_that_another_stands_for_is_not_required(capsys):
    known()["plan"].run({"recipe": "lm-mi210-lora-13b", "dry_run": True})
    assert "--recipe=lm-mi210-lora-13b" in capsys.readouterr().out


@pytest.mark.parametrize("name", command.COMMANDS)
def test_tasks_take_the_trainers_options(name):
    options = {option["name"].replace("_", "-") for option in trainer_options(name)}
    assert options
    assert {flag.name for flag in known()[name].flags} == options | {"dry-run", "json", "use-installed-torch"}
