"""Flags and help: what argparse and people see of the settings."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentTypeError
from pathlib import Path

import pytest

from trainer.cli import main
from trainer.config.listing import flags, options, train_help, typed
from trainer.config.train import settings
from trainer.runtime.paths import SAMPLE

FLAGS = flags(settings().values())


def read(flag: str, text: str) -> object:
    return dict(FLAGS)[flag]["type"](text)


def test_settings_are_each_a_flag_of_their_name() -> None:
    assert [flag.removeprefix("--").replace("-", "_") for flag, _ in FLAGS] == list(settings())


def test_flag_that_is_not_given_leaves_no_trace() -> None:
    assert all(argument["default"] is SUPPRESS for _, argument in FLAGS)


@pytest.mark.parametrize(
    ("flag", "text", "value"),
    [
        ("--epochs", "7", 7),
        ("--hidden-layers", "64, 8", (64, 8)),
        ("--learning-rate", "1e-3", 1e-3),
        ("--data-fraction", "1", 1.0),
        ("--run", "my-run_1.2", "my-run_1.2"),
        ("--output", "some/where", Path("some/where")),
    ],
)
def test_values_are_read(flag: str, text: str, value: object) -> None:
    assert read(flag, text) == value


@pytest.mark.parametrize(
    ("flag", "text"),
    [
        ("--epochs", "0"),
        ("--epochs", str(10**9)),
        ("--batch-size", str(10**12)),
        ("--hidden-layers", str(10**9)),
        ("--hidden-layers", ",".join(["8"] * 257)),
        ("--track", "tensorbord"),
        ("--skip-gpu-cleanup", "perhaps"),
        ("--epochs", "1.5"),
        ("--batch-size", "-1"),
        ("--hidden-layers", ""),
        ("--hidden-layers", "8,,4"),
        ("--hidden-layers", "8,0"),
        ("--learning-rate", "0"),
        ("--learning-rate", "nan"),
        ("--learning-rate", "fast"),
        ("--data-fraction", "1.01"),
        ("--seed", str(2**32)),
        ("--run", "../escape"),
        ("--run", ".hidden"),
        ("--run", ""),
    ],
)
def test_bad_values_are_refused_by_name(flag: str, text: str) -> None:
    with pytest.raises(ArgumentTypeError, match=r"is not|is no"):
        read(flag, text)


def test_help_shows_defaults_without_machine_paths() -> None:
    texts = {flag: argument["help"] for flag, argument in FLAGS}
    assert texts["--data"].endswith(f"(default: {SAMPLE.name})")
    assert texts["--hidden-layers"].endswith("(default: 32,16)")
    assert "None" not in "".join(texts.values())


def flags_in(text: str) -> list[str]:
    return [line.split()[0].partition("[")[0] for line in text.splitlines() if line.startswith("  --")]


def test_help_lists_the_common_settings_and_all_lists_every_one_once() -> None:
    common, every = (flags_in(train_help(everything=all_of_them)) for all_of_them in (False, True))
    assert every[: len(common)] == common
    assert sorted(every) == sorted(["--recipe", "--set", *(each.flag for each in typed())])
    assert len(common) < 35
    assert {"--data", "--target", "--epochs", "--resume", "--ranks", "--model"} <= set(common)
    assert not {"--tick", "--lora-rank", "--cell"} & set(common)


def test_help_has_a_kinds_settings_under_that_kind() -> None:
    titles, title = {}, ""
    for line in train_help(everything=True).splitlines():
        title = line if line and not line.startswith(" ") else title
        if line.startswith("  --"):
            titles[line.split()[0]] = title
    assert titles["--tick"] == "Bars: volume profiles"
    assert titles["--missing"] == titles["--categories"] == "Tables"
    assert titles["--lora-rank"] == "Language models (--task lm): network"
    assert titles["--heads"] == "Network: transformer over columns"


@pytest.mark.parametrize("columns", ["80", "200", "60"])
@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["--help=all"], ["--help", "all"]])
def test_help_fits_its_columns_and_ends_with_examples(
    arguments: list[str], columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    with pytest.raises(SystemExit) as ended:
        main(["train", *arguments])
    lines = capsys.readouterr().out.splitlines()
    assert ended.value.code == 0
    # a word or a list of choices is not cut, so that narrow terminals have a longer line now and then
    assert max(map(len, lines)) <= 80
    assert "Examples" in lines[-8:]
    assert ("FURTHER SETTINGS" in lines) == (arguments[-1].endswith("all"))


def test_value_is_shown_by_its_type_or_its_choices() -> None:
    shown = {each["name"]: each["type"] for each in options() if each["command"] == "train"}
    assert (shown["epochs"], shown["learning_rate"], shown["data"]) == ("INT", "FLOAT", "PATH")
    assert (shown["schedule"], shown["micro_batch"]) == ("{constant,cosine,linear,wsd,inverse-sqrt}", "INT|auto")
    assert not [name for name, value in shown.items() if not value or value == "STRING"]


def test_options_list_settings_of_the_user_and_not_of_the_host() -> None:
    names = [each["name"] for each in options() if each["command"] == "train"]
    assert "cell" not in names
    assert names[:2] == ["recipe", "set"]
