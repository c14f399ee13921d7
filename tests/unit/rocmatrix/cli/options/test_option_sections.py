"""The help of a task with many options: in sections, with types, the common ones unless all are asked for."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from rocmatrix.cli.options import option_sections, task_help
from rocmatrix.cli.options.command import Command, known
from rocmatrix.runtime.paths import ROOT


def help_of(*words: str) -> str:
    argv = [sys.executable, str(ROOT / "rocmatrix" / "cli" / "program.py"), *words]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else done.stderr


def options_in(text: str) -> list[str]:
    return re.findall(r"^  (--[\w-]+)", text, re.MULTILINE)


@pytest.fixture(scope="module")
def common() -> str:
    return help_of("train", "--help")


@pytest.fixture(scope="module")
def every() -> str:
    return help_of("train", "--help=all")


def test_help_of_train_has_the_common_options_first_and_examples_last(common: str) -> None:
    assert options_in(common)[:4] == ["--recipe", "--set", "--data", "--task"]
    assert {"--epochs", "--resume", "--cell", "--dry-run"} <= set(options_in(common))
    assert not {"--tick", "--lora-rank", "--hang-floor"} & set(options_in(common))
    assert "./invokew train --help=all lists" in common
    assert common.rstrip().splitlines()[-1].startswith("  ./invokew train ")


def test_help_all_lists_every_option_once_and_a_kinds_own_under_that_kind(every: str) -> None:
    listed = options_in(every)
    assert sorted(listed) == sorted(f"--{flag.name}" for flag in known()["train"].flags)
    before_tick = every[: every.index("  --tick=")].splitlines()
    titles = [line for line in before_tick if line and not line.startswith((" ", "Usage"))]
    assert titles[-1] == "Bars: volume profiles"
    assert titles.count(option_sections.FURTHER) == 1


@pytest.mark.parametrize("everything", [False, True])
def test_help_fits_eighty_columns_and_names_types(everything: bool, common: str, every: str) -> None:
    text = every if everything else common
    assert max(map(len, text.splitlines())) < 80
    assert "STRING" not in text
    assert {"--epochs=INT", "--learning-rate=FLOAT", "--data=PATH"} <= set(text.split())
    assert "--network={mlp,residual,transformer}" in text


@pytest.mark.parametrize("words", [("--help", "train"), ("train", "-h")])
def test_help_flags_all_print_the_same(words: tuple[str, ...], common: str) -> None:
    assert help_of(*words) == common


def test_help_all_as_two_arguments_is_the_same(every: str) -> None:
    assert help_of("train", "--help", "all") == every


def test_help_of_no_task_called_all_is_refused_as_before() -> None:
    assert "RM404" in help_of("--help", "all")


def test_features_have_sections_and_all_options_are_listed() -> None:
    text = help_of("features", "--help")
    assert {"--tick", "--out", "--session"} <= set(options_in(text))
    assert "further options" not in text


IN_SECTIONS = [each for each in known().values() if any("section" in about for about in each.described.values())]


def test_commands_with_many_options_have_sections() -> None:
    assert {each.name for each in IN_SECTIONS} == {"train", "submit", "features"}


@pytest.mark.parametrize("command", IN_SECTIONS, ids=lambda command: command.name)
def test_sections_hold_every_option_once(command: Command) -> None:
    options = {flag.key: task_help.row(flag) for flag in command.flags}
    sections = option_sections.sections(options, command.described, everything=True)
    assert sorted(option for _, listed in sections for option in listed) == sorted(options.values())


@pytest.mark.parametrize("command", known().values(), ids=lambda command: command.name)
def test_option_names_the_type_of_its_value_unless_it_is_a_switch(command: Command) -> None:
    page = task_help.page(command, program="x", everything=True, width=200)
    shown = set(re.findall(r"^ +(?:-\w, )?--([\w-]+)(?: |$)", page, re.MULTILINE))
    switches = {flag.name for flag in command.flags if flag.kind is bool}
    assert shown == switches
    assert "STRING" not in page
    values = {flag.name for flag in command.flags if not flag.positional} - switches
    assert set(re.findall(r"^ +(?:-\w [^ ]+, )?--([\w-]+)\[?=[^ ]", page, re.MULTILINE)) >= values


TEXTS = {"prompt", "target", "time-format", "time-zone", "session-zone", "time-column", "model"}  # any text


@pytest.mark.parametrize("command", known().values(), ids=lambda command: command.name)
def test_option_that_takes_no_free_text_names_what_it_takes(command: Command) -> None:
    assert {flag.name for flag in command.flags if flag.metavar == "TEXT"} <= TEXTS


def test_repeated_options_of_run_name_what_they_take() -> None:
    assert {"--data=PATH", "--env=NAME[=VALUE]", "--port=[HOST:]PORT"} <= set(help_of("run", "--help").split())
