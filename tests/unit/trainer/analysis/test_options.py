"""The commands on a finished run: what their parsers take is what is listed for the host program."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainer.analysis import options
from trainer.cli import known_flags, parse
from trainer.runtime.errors import TrainerError


@pytest.mark.parametrize("command", options.COMMANDS)
def test_listed_options_are_the_flags_that_the_parser_takes(command: str) -> None:
    listed = [each["name"] for each in options.listed() if each["command"] == command]
    assert [f"--{name.replace('_', '-')}" for name in listed] == options.flags_of(command)
    assert {*options.flags_of(command)} <= {*known_flags(command)}


@pytest.mark.parametrize("words", [["report", "RUN"], ["compress", "--model", "RUN"]])
def test_second_file_and_columns_are_read_as_for_training(words: list[str]) -> None:
    found = parse([*words, "--join", "vix.csv", "--columns", "date=When,close=Last"])
    assert (found["join"], found["columns"]) == (Path("vix.csv"), ("date=When", "close=Last"))
    assert "join" not in parse(words)


def test_columns_without_roles_are_refused() -> None:
    with pytest.raises(TrainerError, match="RM500"):
        parse(["report", "RUN", "--columns", "close"])
