"""Options of `run` as people type them, and the command that stands after two dashes."""

import sys

import pytest
from invoke.context import Context

from rocmatrix.cli.tasks import jobs, run
from rocmatrix.containers.capability import FEATURES


@pytest.fixture
def seen(monkeypatch):
    seen = []
    monkeypatch.setattr(
        "rocmatrix.cli.commands.run.run", lambda asked, *, after_dashes: seen.append((asked, after_dashes))
    )
    monkeypatch.setattr("rocmatrix.cli.commands.run.devcontainer", seen.append)
    return seen


def chosen(seen):
    ((asked, after_dashes),) = seen
    return asked.chosen(after_dashes)


def test_arguments_after_the_dashes_stay_as_they_were_quoted(seen, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["invoke", "run", "--gpu", "cpu", "--", "bash", "-c", "echo 'a  b' -- c"])
    run.run(Context(), gpu="cpu")
    assert chosen(seen).command == ("bash", "-c", "echo 'a  b' -- c")


def test_command_given_as_one_text_is_taken_apart(seen, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["invoke", "run"])
    run.run(Context(), command="python -c 'print(1)'")
    assert chosen(seen).command == ("python", "-c", "print(1)")


def test_option_for_sets_target(seen, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["invoke", "run"])
    run.run(Context(), **{"for": "podman"})
    assert seen[0][0].target == "podman"
    assert "for" in {name for argument in run.run.get_arguments() for name in argument.names}


@pytest.mark.parametrize("name", FEATURES)
def test_features_can_all_be_requested(seen, monkeypatch, name):
    monkeypatch.setattr(sys, "argv", ["invoke", "run"])
    run.run(Context(), **{f"with_{name}": True})
    assert chosen(seen).features == {name}


def test_dev_container_takes_cards_and_a_user(seen):
    run.devcontainer(Context(), cards="0,1", user="1:2")
    assert (seen[0].chosen().cards, seen[0].chosen().user) == ((0, 1), "1:2")


@pytest.mark.parametrize(("task", "typed"), [(run.run, {"cards": "one"}), (jobs.smoke, {"cards": "0;1"})])
def test_cards_that_are_no_numbers_end_without_a_traceback(task, typed, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["invoke"])
    with pytest.raises(SystemExit) as ended:
        task(Context(), **typed)
    assert ended.value.code == 2
    assert "RM404" in capsys.readouterr().err
