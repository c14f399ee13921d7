"""The tasks of `./invokew` have the flags of the commands, as invoke reads them."""

import pytest
from invoke.context import Context
from invoke.parser.parser import Parser

from rocmatrix.cli.options import task_help
from rocmatrix.cli.options.command import known
from rocmatrix.cli.options.invoke_tasks import CommandTask, collection
from rocmatrix.cli.program import UnderscoreParser

CONTEXTS = {context.name: context for context in collection().to_contexts()}


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        (["train", "--batch_size=3"], ["train", "--batch-size=3"]),
        (["train", "--dry_run", "--batch-size", "3"], ["train", "--dry-run", "--batch-size", "3"]),
        (["train", "--no_such=a_b"], ["train", "--no_such=a_b"]),
        (["train", "--run=a_b"], ["train", "--run=a_b"]),
        (["run", "--", "--dry_run"], ["run", "--", "--dry_run"]),
    ],
)
def test_underscores_of_a_known_flag_become_dashes(typed, read, monkeypatch):
    seen = []
    monkeypatch.setattr(Parser, "parse_argv", lambda _, argv: seen.append(argv))
    UnderscoreParser(contexts=collection().to_contexts()).parse_argv(typed)
    assert seen == [read]


def test_commands_are_tasks_under_their_names():
    assert set(CONTEXTS) == set(known())


@pytest.mark.parametrize("name", known())
def test_help_of_a_task_has_the_texts_of_all_flags_that_invoke_takes(name):
    taken = [text for _, text in CONTEXTS[name].help_tuples()]
    assert sorted(text for _, text in task_help.rows(known()[name].flags)) == sorted(taken)


def test_task_hands_what_was_typed_to_its_command(monkeypatch):
    seen = []
    monkeypatch.setattr("rocmatrix.cli.options.command.Command.run", lambda self, typed: seen.append(typed))
    CommandTask(known()["train"])(Context(), epochs="3", **{"in": "native"})
    assert seen == [{"epochs": "3", "in": "native"}]
