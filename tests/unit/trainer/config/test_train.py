from __future__ import annotations

import json
from argparse import SUPPRESS, ArgumentTypeError
from pathlib import Path

import pytest

from trainer.config import train as config
from trainer.config.train import FAMILIAR, TrainConfig, flags, notices, settings
from trainer.distributed.parallel import join
from trainer.distributed.transports import reduce, transport
from trainer.engine.steps import compile as compilation
from trainer.models import activation_checkpointing as activations
from trainer.runtime.paths import SAMPLE


def read(flag: str, text: str) -> object:
    return dict(flags())[flag]["type"](text)


def test_every_setting_is_a_flag_with_the_same_default() -> None:
    assert [flag.removeprefix("--").replace("-", "_") for flag, _ in flags()] == list(settings())
    assert TrainConfig(**{name: setting.default for name, setting in settings().items()}) == TrainConfig()


def test_a_flag_that_is_not_given_leaves_no_trace() -> None:
    assert all(argument["default"] is SUPPRESS for _, argument in flags())


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
    texts = {flag: argument["help"] for flag, argument in flags()}
    assert texts["--data"].endswith(f"(default: {SAMPLE.name})")
    assert texts["--hidden-layers"].endswith("(default: 32,16)")
    assert "None" not in "".join(texts.values())


def test_the_settings_are_json() -> None:
    stored = json.loads(json.dumps(TrainConfig(output=Path("x")).as_dict()))
    assert stored["output"] == "x"
    assert stored["hidden_layers"] == [32, 16]


def test_choices_that_config_spells_out_are_those_that_are_implemented() -> None:
    assert config.COMMS == transport.NAMES
    assert config.COMPRESSIONS == reduce.COMPRESSIONS
    assert config.PARALLEL == join.KINDS
    assert config.COMPILE == compilation.CHOICES
    assert config.RECOMPUTE == activations.CHOICES


def test_the_familiar_flags_are_told_apart_from_those_with_an_effect() -> None:
    assert notices(TrainConfig(epochs=1, batch_size=8)) == []
    said = notices(TrainConfig(skip_gpu_cleanup=True))
    assert [sentence.partition(" has no effect: ")[0] for sentence in said] == ["--skip-gpu-cleanup"]
    assert all(FAMILIAR[name] in sentence for name, sentence in zip(("skip_gpu_cleanup",), said, strict=True))


def test_where_a_value_came_from_is_no_setting() -> None:
    assert "origin" not in TrainConfig(origin={"epochs": "flag"}).as_dict()
    assert TrainConfig(origin={"epochs": "flag"}) == TrainConfig()
