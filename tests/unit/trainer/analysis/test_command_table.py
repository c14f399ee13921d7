"""A table of commands and options: parsers of argparse, flags, and the list for the host program."""

from __future__ import annotations

import argparse

import pytest

from trainer.analysis import command_table
from trainer.analysis.command_table import CommandOption
from trainer.config.parsing import path, whole

TABLE = {
    "measure": (
        "measure something",
        {
            "model": CommandOption(path, "the model", required=True),
            "new_rows": CommandOption(whole(1), "rows to add", also="more_rows"),
        },
    )
}


def parsed(*words: str) -> dict[str, object]:
    parser = argparse.ArgumentParser(exit_on_error=False)
    command_table.add_commands(parser.add_subparsers(dest="command"), TABLE)
    return vars(parser.parse_args(words))


@pytest.mark.parametrize("flag", ["--new-rows", "--more-rows"])
def test_option_is_read_under_its_present_and_its_earlier_name(flag: str) -> None:
    assert parsed("measure", "--model=m", f"{flag}=7")["new_rows"] == 7


def test_option_that_was_not_given_leaves_no_trace() -> None:
    assert set(parsed("measure", "--model=m")) == {"command", "model"}


def test_missing_required_option_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed("measure")
    assert "--model" in capsys.readouterr().err


def test_list_has_the_type_of_each_value_and_what_is_required() -> None:
    model, rows = command_table.listed(TABLE)
    assert model == {
        "command": "measure", "name": "model", "kind": "text", "help": "the model", "type": "PATH", "required": True,
    }  # fmt: skip
    assert (rows["type"], rows["also"], "required" in rows) == ("INT", {"more_rows": ""}, False)


def test_flags_include_earlier_names() -> None:
    assert command_table.flags_of(TABLE, "measure") == ["--model", "--new-rows", "--more-rows"]
