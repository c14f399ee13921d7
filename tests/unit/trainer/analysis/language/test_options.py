"""The command line of the commands on language models: bounds of numbers, flags, and the body that is called."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from trainer.analysis.language import command, options


def parsed(*words):
    parser = argparse.ArgumentParser()
    options.add_commands(parser.add_subparsers(dest="command"))
    return vars(parser.parse_args(words))


def test_options_that_were_not_given_are_left_to_the_command():
    assert parsed("generate", "--model", "m", "--prompt", "p") == {
        "command": "generate", "model": Path("m"), "prompt": "p",
    }  # fmt: skip
    assert parsed("plan", "--model", "m", "--gpu", "g", "--micro-batch", "4")["micro_batch"] == 4


@pytest.mark.parametrize(
    "words",
    [
        ["generate", "--model", "m"],
        ["evaluate", "--model", "m"],
        ["gguf", "--model", "m"],
        ["generate", "--mod", "m", "--prompt", "p"],
    ],
)
def test_missing_or_shortened_option_is_refused(words, capsys):
    with pytest.raises(SystemExit):
        parsed(*words)
    assert "required" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flag", "taken", "refused"),
    [
        ("--max-new-tokens", ["1", "4096"], ["0", "-1", "1.5"]),
        ("--temperature", ["0", "100"], ["-0.1", "100.1", "warm"]),
        ("--top-k", ["0", "50"], ["-1"]),
        ("--seed", ["0", str(2**32 - 1)], [str(2**32)]),
    ],
)
def test_number_is_taken_within_its_bounds(flag, taken, refused):
    for value in taken:
        assert str(parsed("chat", "--model", "m", flag, value)[flag[2:].replace("-", "_")]) in (value, f"{value}.0")
    for value in refused:
        with pytest.raises(SystemExit):
            parsed("chat", "--model", "m", flag, value)


def test_earlier_name_of_an_option_is_still_taken():
    assert parsed("chat", "--model", "m", "--most", "7")["max_new_tokens"] == 7


def test_list_for_other_programs_has_each_option_of_each_command():
    rows = options.listed()
    assert {row["command"] for row in rows} == set(options.COMMANDS)
    assert len(rows) == sum(len(flags) for _, flags in options.COMMANDS.values())
    assert all(row["help"] and row["name"].isidentifier() for row in rows)


def test_command_is_run_by_its_name_with_what_was_given(monkeypatch):
    seen = []
    monkeypatch.setattr(command, "show_data", lambda **given: seen.append(given) or 3)
    assert options.run("show-data", {"data": "d"}) == 3
    assert seen == [{"data": "d"}]


def test_commands_have_their_bodies():
    apart = ("plan", "convert-recipe")  # each has a module of its own
    assert all(hasattr(command, name.replace("-", "_")) for name in options.COMMANDS if name not in apart)


def test_options_that_a_recipe_may_bring_are_optional_to_the_parser():
    assert parsed("plan", "--recipe", "r")["recipe"] == "r"
    found = [each["name"] for each in options.listed() if each.get("unless") == "recipe"]
    assert found == ["model", "gpu"]
