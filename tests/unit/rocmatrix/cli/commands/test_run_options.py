"""Options of `run` as people type them, and the command that stands after two dashes."""

import sys

import pytest

from rocmatrix.cli.commands import run
from rocmatrix.cli.options.command import known
from rocmatrix.containers.capability import FEATURES


def typed(name="run", **values):
    """Return the options that a command's body is given."""
    (options,) = known()[name].arguments(values)
    return options


def test_words_after_the_dashes_stay_as_they_were_quoted(monkeypatch):
    seen = []
    monkeypatch.setattr(run.Run, "chosen", lambda _, command: seen.append(command) or sys.exit())
    monkeypatch.setattr(sys, "argv", ["invoke", "run", "--gpu", "cpu", "--", "bash", "-c", "echo 'a  b' -- c"])
    with pytest.raises(SystemExit):
        run.run(typed(gpu="cpu"))
    assert seen == [["bash", "-c", "echo 'a  b' -- c"]]


def test_command_after_the_dashes_is_run_where_no_text_names_one():
    assert typed(gpu="cpu").chosen(["bash", "-c", "a"]).command == ("bash", "-c", "a")
    assert typed(command="python -c 'print(1)'").chosen(["bash"]).command == ("python", "-c", "print(1)")


def test_target_is_typed_as_for():
    assert typed(**{"for": "podman"}).target == "podman"
    assert "for" in {flag.name for flag in known()["run"].flags}


@pytest.mark.parametrize("name", FEATURES)
def test_features_are_typed_each_as_a_flag(name):
    assert typed(**{f"with_{name}": True}).chosen().features == {name}


def test_devcontainer_takes_cards_and_a_user():
    chosen = typed("devcontainer", cards="0,1", user="1:2").chosen()
    assert (chosen.cards, chosen.user) == ((0, 1), "1:2")


@pytest.mark.parametrize(("name", "cards"), [("run", "one"), ("smoke", "0;1")])
def test_cards_that_are_no_numbers_end_without_a_traceback(name, cards, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["invoke"])
    with pytest.raises(SystemExit) as ended:
        known()[name].run({"cards": cards})
    assert ended.value.code == 2
    assert "RM404" in capsys.readouterr().err


def test_command_with_an_open_quote_ends_without_a_traceback(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["invoke"])
    with pytest.raises(SystemExit) as ended:
        known()["run"].run({"command": "echo 'it", "dry_run": True})
    assert ended.value.code == 2
    assert "no closing quotation" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"user": "me"}, "two numbers"),
        ({"user": "-1:-1"}, "two numbers"),
        ({"user": "\u0661\u0660:1"}, "two numbers"),
        ({"user": f"{2**32 - 1}:1"}, "two numbers"),
        ({"output": __file__}, "is a file"),
        ({"sysfs": __file__}, "RM310"),
        ({"data": ["{loop}"]}, "leads nowhere"),
        ({"target": "compose", "to": "{folder}"}, "--to"),
    ],
)
def test_run_refuses_what_no_container_could_have(options, words, tmp_path, monkeypatch, capsys):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    places = {"{loop}": str(tmp_path / "loop"), "{folder}": str(tmp_path)}
    filled = {
        name: [places.get(each, each) for each in value] if isinstance(value, list) else places.get(value, value)
        for name, value in options.items()
    }
    monkeypatch.setattr(sys, "argv", ["invoke"])
    with pytest.raises(SystemExit) as ended:
        known()["run"].run({"gpu": "cpu", "dry_run": "target" not in options, **filled})
    assert ended.value.code == 2
    assert words in capsys.readouterr().err
