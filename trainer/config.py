"""What a training run is told: one dataclass, from which the command line is made."""

from __future__ import annotations

import math
import re
from argparse import ArgumentTypeError
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

SAMPLE = Path(__file__).parent / "data" / "sp500_vix_daily.csv"


def _whole(least: int, most: float = math.inf) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if re.fullmatch(r"\d+", text) and least <= int(text) <= most:
            return int(text)
        limit = f"{least} to {most}" if most < math.inf else f"{least} or more"
        raise ArgumentTypeError(f"{text!r} is not a whole number, {limit}")

    return parse


def _number(most: float) -> Callable[[str], float]:
    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if 0 < value <= most:
            return value
        raise ArgumentTypeError(f"{text!r} is not a number above 0, at most {most:g}")

    return parse


def _widths(text: str) -> tuple[int, ...]:
    return tuple(_whole(1)(part.strip()) for part in text.split(","))


def _run_name(text: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9][\w.-]{0,99}", text, re.ASCII):
        return text
    raise ArgumentTypeError(f"{text!r} is no run name: letters, digits, '.', '_' and '-', at most 100")


@dataclass(frozen=True)
class _Flag:
    """What the command line says about a field, and how it reads it; `parse` raises ArgumentTypeError."""

    help: str
    parse: Callable[[str], Any] = str


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """The settings of `python -m trainer train`; each field is the flag of the same name.

    The host gives `cell`, `image` and `commit` to be recorded: the trainer cannot find them out by itself.
    """

    data: Annotated[Path, _Flag("CSV file of bars: date,open,high,low,close,volume,vix_close", Path)] = SAMPLE
    output: Annotated[Path, _Flag("folder that receives the run's folder", Path)] = Path("TRAINING")
    run: Annotated[str | None, _Flag("name of the run (default: UTC time and a suffix)", _run_name)] = None
    epochs: Annotated[int, _Flag("passes over the training rows", _whole(1))] = 300
    batch_size: Annotated[int, _Flag("rows per optimizer step", _whole(1))] = 32
    learning_rate: Annotated[float, _Flag("step size of AdamW", _number(10))] = 5e-5
    hidden_layers: Annotated[tuple[int, ...], _Flag("widths of the hidden layers", _widths)] = (32, 16)
    horizon: Annotated[int, _Flag("bars ahead over which volatility is forecast", _whole(1))] = 5
    data_fraction: Annotated[float, _Flag("share of the bars to use, the latest ones", _number(1))] = 1.0
    seed: Annotated[int, _Flag("seed of weights and of the order of rows", _whole(0, 2**32 - 1))] = 0
    device: Annotated[str, _Flag("auto, cpu, cuda or cuda:N; ROCm cards are cuda, too")] = "auto"
    threads: Annotated[int, _Flag("CPU threads; each count rounds differently", _whole(1, 1024))] = 1
    cell: Annotated[str | None, _Flag("name of the matrix cell, to be recorded")] = None
    image: Annotated[str | None, _Flag("digest of the container image, to be recorded")] = None
    commit: Annotated[str | None, _Flag("git commit of the project, to be recorded")] = None

    def as_dict(self) -> dict[str, Any]:
        """Return the settings in JSON's types."""
        return {name: str(value) if isinstance(value, Path) else value for name, value in vars(self).items()}


def flags() -> list[tuple[str, dict[str, Any]]]:
    """Return each field of TrainConfig as a flag and the keyword arguments of argparse's add_argument."""
    hints = get_type_hints(TrainConfig, include_extras=True)
    return [
        (f"--{setting.name.replace('_', '-')}", _argument(setting.default, *hints[setting.name].__metadata__))
        for setting in fields(TrainConfig)
    ]


def _argument(default: Any, flag: _Flag) -> dict[str, Any]:
    text = ",".join(map(str, default)) if isinstance(default, tuple) else getattr(default, "name", default)
    shown = "" if default is None else f" (default: {text})"
    return {"type": flag.parse, "default": default, "help": flag.help + shown}
