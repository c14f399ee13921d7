from __future__ import annotations

import json
from argparse import ArgumentTypeError
from dataclasses import fields
from pathlib import Path

import pytest

from trainer.config import SAMPLE, TrainConfig, flags


def read(flag: str, text: str) -> object:
    return dict(flags())[flag]["type"](text)


def test_every_setting_is_a_flag_with_the_same_default() -> None:
    names = [setting.name for setting in fields(TrainConfig)]
    assert [flag.removeprefix("--").replace("-", "_") for flag, _ in flags()] == names
    defaults = {flag.removeprefix("--").replace("-", "_"): argument["default"] for flag, argument in flags()}
    assert TrainConfig(**defaults) == TrainConfig()


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
    texts = {flag: argument["help"] for flag, argument in flags()}
    assert texts["--data"].endswith(f"(default: {SAMPLE.name})")
    assert texts["--hidden-layers"].endswith("(default: 32,16)")
    assert "None" not in "".join(texts.values())


def test_the_settings_are_json() -> None:
    stored = json.loads(json.dumps(TrainConfig(output=Path("x")).as_dict()))
    assert stored["output"] == "x"
    assert stored["hidden_layers"] == [32, 16]
