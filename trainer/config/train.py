"""What a training run is told: one dataclass, from which the command line and the recipes' keys are made.

A value is taken from the first of these that gives one: a flag or `--set` (the same rank, and they may not
contradict), the recipe, the default.
"""

from __future__ import annotations

import re
from argparse import SUPPRESS, ArgumentTypeError
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

from trainer.config.batch_schedule import CONSTANT, MOST_EPOCHS, MOST_ROWS, BatchSchedule, parse_batch_schedule
from trainer.config.checkpoint_policy import (
    EVERY_MINUTE,
    LAST_TWO,
    Interval,
    Retention,
    parse_interval,
    parse_retention,
)
from trainer.config.data import DataConfig
from trainer.config.language import LanguageConfig
from trainer.config.loop import LoopConfig
from trainer.config.model import ModelConfig
from trainer.config.parsing import Flag as _Flag
from trainer.config.parsing import number as _number
from trainer.config.parsing import one_of as _one_of
from trainer.config.parsing import switch as _switch
from trainer.config.parsing import whole as _whole
from trainer.config.table import TableConfig
from trainer.runtime.paths import SAMPLE

STEPS, FEEDS = ("auto", "eager", "graph", "direct"), ("auto", "device", "host", "mapped")  # a test holds them equal
PRECISIONS = ("auto", "fp32", "bf16", "fp16", "fp64")
# Spelled out, so that --help imports no torch; a test holds them equal to what is implemented.
PARALLEL = ("ddp", "fsdp2", "pipeline")
COMMS = ("auto", "nccl", "nccl-no-p2p", "gloo", "host")
COMPRESSIONS = ("none", "bf16")
COMPILE = ("off", "auto", "on")
RECOMPUTE = ("off", "selective", "full")
BY_HOST = "provenance"  # records that the host program gives; no person types them, and no recipe holds them
OUTSIDE = (  # options of `train` that are not settings themselves, but give some
    {"name": "recipe", "kind": "text", "help": "settings from a file, by name or path; see recipes/"},
    {"name": "set", "kind": "list", "help": "one setting, as section.name=value; may be repeated"},
)
TRACKERS = ("tensorboard", "wandb", "mlflow")
# Bounds that no sensible run meets: beyond them numbers overflow in torch, or a run could never end.
MOST_WIDTH, MOST_LAYERS = 2**20, 256


def _rows_or_auto(text: str) -> int | None:
    return None if text == "auto" else _whole(1)(text)


def _seconds_or_word(text: str) -> float | str | None:
    return {"auto": "auto", "off": None}[text] if text in ("auto", "off") else _number(1e6)(text)


def widths(text: str) -> tuple[int, ...]:
    """Read widths of layers between commas, or none; raises ArgumentTypeError."""
    if text == "none":
        return ()
    read = tuple(_whole(1, MOST_WIDTH)(part.strip()) for part in text.split(","))
    if len(read) > MOST_LAYERS:
        raise ArgumentTypeError(f"{len(read)} hidden layers is not {MOST_LAYERS} or fewer")
    return read


def _some_of(*known: str) -> Callable[[str], tuple[str, ...]]:
    def parse(text: str) -> tuple[str, ...]:
        names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
        for name in names:
            if name not in known:
                raise ArgumentTypeError(f"{name!r} is not one of {', '.join(known)}")
        return names

    return parse


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _callbacks(text: str) -> tuple[str, ...]:
    return () if text == "none" else _names(text)


def _run_name(text: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9][\w.-]{0,99}", text, re.ASCII):
        return text
    raise ArgumentTypeError(f"{text!r} is no run name: letters, digits, '.', '_' and '-', at most 100")


@dataclass(frozen=True, kw_only=True)
class TrainConfig(LanguageConfig, LoopConfig, ModelConfig, TableConfig):
    """The settings of `python -m trainer train`; each field but the last is the flag of the same name.

    The host gives `cell` (or `cell_absent`, why there is none), `forced`, `image` and `commit` to be recorded:
    the trainer cannot find them out by itself. `origin` says where each value that is no default came from.
    """

    data: Annotated[Path, _Flag("bars, or any table: CSV (also .gz, .zst), Parquet, Arrow", Path, "data")] = SAMPLE
    output: Annotated[Path, _Flag("folder that receives the run's folder", Path, "run")] = Path("TRAINING")
    run: Annotated[str | None, _Flag("name of the run (default: UTC time and a suffix)", _run_name, "run")] = None
    epochs: Annotated[int, _Flag("passes over the training rows", _whole(1, MOST_EPOCHS))] = 300
    batch_size: Annotated[int, _Flag("rows per optimizer step", _whole(1, MOST_ROWS))] = 32
    batch_schedule: Annotated[
        BatchSchedule, _Flag("other batches from an epoch on: epoch:rows, as 10:64,30:256", parse_batch_schedule)
    ] = CONSTANT
    learning_rate: Annotated[float, _Flag("learning rate of AdamW", _number(10))] = 5e-5
    hidden_layers: Annotated[tuple[int, ...], _Flag("widths of the hidden layers, or none", widths, "model")] = (
        32,
        16,
    )
    horizon: Annotated[int, _Flag("bars ahead over which the target is taken", _whole(1, MOST_ROWS), "data")] = 5
    data_fraction: Annotated[float, _Flag("share of the bars to use, the latest ones", _number(1), "data")] = 1.0
    seed: Annotated[int, _Flag("seed of weights and of the order of rows", _whole(0, 2**32 - 1))] = 0
    precision: Annotated[str, _Flag("fp32, bf16, fp16, fp64, or auto: by evidence", _one_of(*PRECISIONS))] = "fp32"
    use_mixed_precision: Annotated[bool, _Flag("the same as --precision auto", _switch)] = False
    micro_batch: Annotated[
        int | None, _Flag("rows at a time, or auto: as many as fit (default: auto)", _rows_or_auto)
    ] = None
    loader_workers: Annotated[
        int, _Flag("threads that fetch rows ahead from the host; 0: all rows are on the device", _whole(0, 64), "data")
    ] = 0
    feed: Annotated[
        str,
        _Flag("where the rows lie: device, host, mapped, or auto: on the device if they fit", _one_of(*FEEDS), "data"),
    ] = "auto"
    step: Annotated[
        str, _Flag("eager, graph (cards), direct (CPUs), or auto: the faster if equal to the bit", _one_of(*STEPS))
    ] = "auto"
    resume: Annotated[str | None, _Flag("resume an unfinished run: its name, or auto", _run_name, "run")] = None
    checkpoint_every: Annotated[
        Interval, _Flag("steps (500) or time (60s, 10m); 0: never", parse_interval, "checkpoint")
    ] = EVERY_MINUTE
    keep: Annotated[
        Retention, _Flag("checkpoints that stay, as last=2,best=1,every=1000", parse_retention, "checkpoint")
    ] = LAST_TWO
    device: Annotated[str, _Flag("auto, cpu, cuda or cuda:N; ROCm cards are cuda, too", str, "run")] = "auto"
    threads: Annotated[int, _Flag("CPU threads; each count rounds differently", _whole(1, 1024), "run")] = 1
    skip_gpu_cleanup: Annotated[
        bool, _Flag("accepted for familiarity, without effect: memory is given back at every end", _switch, "run")
    ] = False
    track: Annotated[
        tuple[str, ...], _Flag("where else figures go: tensorboard, wandb, mlflow", _some_of(*TRACKERS), "telemetry")
    ] = ()
    callback: Annotated[
        tuple[str, ...],
        _Flag("your own callbacks, FILE.py:Class or module:Class; none", _callbacks, "telemetry", sparse=True),
    ] = ()
    nan_guard: Annotated[int, _Flag("check for NaN every N steps (0: off)", _whole(0, MOST_ROWS), "telemetry")] = 100
    export: Annotated[tuple[str, ...], _Flag("further formats of the model: onnx", _some_of("onnx"), "model")] = ()
    parallel: Annotated[str, _Flag("among ranks: ddp, fsdp2 or pipeline", _one_of(*PARALLEL), "ranks")] = "ddp"
    comms: Annotated[
        str, _Flag("way between ranks, or auto: the first that passes a probe", _one_of(*COMMS), "ranks")
    ] = "auto"
    gradient_compression: Annotated[str, _Flag("none, or bf16: half the bytes", _one_of(*COMPRESSIONS), "ranks")] = (
        "none"
    )
    ranks: Annotated[
        int, _Flag("processes to start, a card each; torchrun does it by itself", _whole(1, 1024), "ranks")
    ] = 1
    max_restarts: Annotated[
        int, _Flag("times to start the ranks again after a hang or a death", _whole(0, 1000), "ranks")
    ] = 3
    hang_timeout: Annotated[
        float | str | None,
        _Flag("most seconds in one section, off, or auto: 600 among ranks", _seconds_or_word, "ranks"),
    ] = "auto"
    hang_floor: Annotated[float, _Flag("least seconds that a learned limit allows", _number(1e6), "ranks")] = 30.0
    compile: Annotated[str, _Flag("off, on, or auto: kept if equal and faster", _one_of(*COMPILE), "model")] = "off"
    activation_checkpointing: Annotated[
        str, _Flag("off, selective or full: less memory, more time", _one_of(*RECOMPUTE), "model")
    ] = "off"
    cell: Annotated[str | None, _Flag("name of the matrix cell, to be recorded", str, BY_HOST)] = None
    cell_absent: Annotated[str | None, _Flag("why there is no cell, to be recorded", str, BY_HOST)] = None
    forced: Annotated[
        tuple[str, ...], _Flag("rules of the matrix that were overridden, to be recorded", _names, BY_HOST)
    ] = ()
    image: Annotated[str | None, _Flag("digest of the container image, to be recorded", str, BY_HOST)] = None
    commit: Annotated[str | None, _Flag("git commit of the project, to be recorded", str, BY_HOST)] = None
    origin: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    def as_dict(self) -> dict[str, Any]:
        """Return the settings in JSON's types."""
        values = {name: getattr(self, name) for name, each in settings().items() if each.recorded(getattr(self, name))}
        worded = (Path, Interval, Retention, BatchSchedule)
        return {name: str(value) if isinstance(value, worded) else value for name, value in values.items()}


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One field of TrainConfig as people meet it: `key` is section.name in a recipe."""

    name: str
    key: str
    help: str
    parse: Callable[[str], Any]
    default: Any
    is_switch: bool
    sparse: bool = False

    @property
    def flag(self) -> str:
        """The setting's flag, with dashes."""
        return "--" + self.name.replace("_", "-")

    def recorded(self, value: Any) -> bool:
        """Return whether metadata and recipes hold this value: all do, but for defaults of sparse settings."""
        return not self.sparse or value != self.default


@dataclass(frozen=True, kw_only=True)
class FeaturesConfig(DataConfig):
    """The settings of `python -m trainer features`; each field is the flag of the same name."""

    data: Annotated[Path | None, _Flag("intraday bars: CSV, Parquet or Arrow", Path, "data")] = None
    out: Annotated[Path | None, _Flag("Arrow file to write; its metadata goes to FILE.json", Path, "run")] = None
    list: Annotated[bool, _Flag("print name, formula and unit of every feature, and compute none", _switch, "run")] = (
        False
    )


def settings(config: type[DataConfig] = TrainConfig) -> dict[str, Setting]:
    """Return the settings by name, in the order of the configuration's fields."""
    hints = get_type_hints(config, include_extras=True)
    return {
        each.name: _setting(each.name, each.default, hints[each.name])
        for each in fields(config)
        if hasattr(hints[each.name], "__metadata__")
    }


def _setting(name: str, default: Any, hint: Any) -> Setting:
    (flag,) = hint.__metadata__
    return Setting(
        name=name,
        key=f"{flag.section}.{name}",
        help=flag.help,
        parse=flag.parse,
        default=default,
        is_switch=hint.__origin__ is bool,
        sparse=flag.sparse,
    )


def flags(config: type[DataConfig] = TrainConfig) -> list[tuple[str, dict[str, Any]]]:
    """Return each setting as a flag and the keyword arguments of argparse's add_argument.

    A flag that is not given leaves no trace, so that a recipe's value is not taken for overridden.
    """
    return [(setting.flag, _argument(setting)) for setting in settings(config).values()]


def shown(value: Any) -> str:
    """Return a value as a flag would take it."""
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _argument(setting: Setting) -> dict[str, Any]:
    switch = {"nargs": "?", "const": True, "metavar": "true|false"} if setting.is_switch else {}
    return {"type": setting.parse, "default": SUPPRESS, "help": help_of(setting), "dest": setting.name, **switch}


FAMILIAR = {
    "skip_gpu_cleanup": "there is no clean-up to skip: all device memory is given back when the process ends",
}


def notices(config: TrainConfig) -> list[str]:
    """Return a sentence for each setting that was given and has no effect: it is accepted for familiarity."""
    given = [name for name in FAMILIAR if getattr(config, name) not in (None, False)]
    found = [f"--{name.replace('_', '-')} has no effect: {FAMILIAR[name]}" for name in given]
    if config.max_steps is not None and config.epochs != TrainConfig.epochs:
        found.append(f"--epochs {config.epochs} has no effect: --max-steps {config.max_steps} ends the run")
    return found


def options() -> list[dict[str, str]]:
    """Return what a person may give to a command, for the host program: name, help, and kind: text, flag or list."""
    outside = [{"command": "train", **each} for each in OUTSIDE]
    return [*outside, *_options("train", TrainConfig), *_options("features", FeaturesConfig)]


def _options(command: str, config: type[DataConfig]) -> list[dict[str, str]]:
    return [
        {"command": command, "name": each.name, "kind": "flag" if each.is_switch else "text", "help": help_of(each)}
        for each in settings(config).values()
        if not each.key.startswith(f"{BY_HOST}.")
    ]


def help_of(setting: Setting) -> str:
    """Return the help of a setting with its default."""
    default = getattr(setting.default, "name", setting.default)
    words = "" if default is None or default is False or default == () else f" (default: {shown(default)})"
    return setting.help + words
