"""The configuration of a training run: sections, nested by the kind of data and of network.

A value is taken from the first of these that gives one: a flag or `--set` (the same rank, and they may not
contradict), the recipe, the default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from trainer.config.batch_schedule import BatchSchedule
from trainer.config.checkpoint_policy import Interval, Retention
from trainer.config.choices import BAR_TARGETS, LM
from trainer.config.sections.bars import BarsConfig
from trainer.config.sections.compute import ComputeConfig
from trainer.config.sections.decoder import DecoderConfig
from trainer.config.sections.network import NETWORK_SECTIONS, MlpConfig
from trainer.config.sections.optimizer import LoopConfig, OptimizerConfig
from trainer.config.sections.run import DistributedConfig, ProvenanceConfig, RunConfig, TelemetryConfig
from trainer.config.sections.table import TableConfig
from trainer.config.sections.tokens import TokensConfig
from trainer.config.setting import Setting, built, settings_of, values_in

DataConfig = BarsConfig | TableConfig | TokensConfig
ModelConfig = MlpConfig | DecoderConfig  # those of NETWORK_SECTIONS are an MlpConfig with more

OF_EVERY_KIND = (RunConfig, LoopConfig, OptimizerConfig, ComputeConfig, DistributedConfig, TelemetryConfig)
BY_KIND = (BarsConfig, TableConfig, MlpConfig, *NETWORK_SECTIONS.values(), TokensConfig, DecoderConfig)


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """The settings of `python -m trainer train`, a section each; `TrainConfig.of` makes one from settings by name.

    given: what a person gave, by the settings' names, of every kind: a run to resume may be of another kind than
    these alone describe. origin: where each of them was given.
    """

    data: DataConfig = field(default_factory=BarsConfig)
    model: ModelConfig = field(default_factory=MlpConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    loop: LoopConfig = field(default_factory=LoopConfig)
    compute: ComputeConfig = field(default_factory=ComputeConfig)
    run: RunConfig = field(default_factory=RunConfig)
    distributed: DistributedConfig = field(default_factory=DistributedConfig)
    telemetry: TelemetryConfig = field(default_factory=TelemetryConfig)
    provenance: ProvenanceConfig = field(default_factory=ProvenanceConfig)
    given: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    origin: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, *, origin: Mapping[str, str] | None = None, **values: Any) -> TrainConfig:
        """Return the configuration of settings by name; the others have their defaults.

        Raises:
            TypeError: for a name that no setting has.
        """
        if unknown := values.keys() - settings().keys():
            raise TypeError(f"no setting is called {', '.join(sorted(unknown))}")
        return cls(
            data=built(data_kind(values), values),
            model=built(model_kind(values), values),
            optimizer=built(OptimizerConfig, values),
            loop=built(LoopConfig, values),
            compute=built(ComputeConfig, values),
            run=built(RunConfig, values),
            distributed=built(DistributedConfig, values),
            telemetry=built(TelemetryConfig, values),
            provenance=built(ProvenanceConfig, values),
            given=values,
            origin=origin or {},
        )

    def having(self, **values: Any) -> TrainConfig:
        """Return the configuration with other values of these settings; what a person gave stays what was given."""
        return replace(TrainConfig.of(**(self.values() | values)), given=self.given, origin=self.origin)

    def values(self) -> dict[str, Any]:
        """Return the values of the run's own settings by name; those of other kinds are absent."""
        return values_in(getattr(self, name) for name in SECTIONS)

    def complete(self) -> dict[str, Any]:
        """Return the values of all settings by name, those of other kinds at their defaults."""
        own = self.values()
        return {name: own.get(name, each.default) for name, each in settings().items()}

    def unused(self) -> dict[str, Any]:
        """Return the settings of other kinds that were given another value than their default."""
        own, known = self.values(), settings()
        return {name: value for name, value in self.given.items() if name not in own and value != known[name].default}

    def as_dict(self) -> dict[str, Any]:
        """Return all settings, those of other kinds at their defaults, in JSON's types: the format of metadata.json."""
        recorded = {name: value for name, value in self.complete().items() if settings()[name].recorded(value)}
        worded = (Path, Interval, Retention, BatchSchedule)
        return {name: str(value) if isinstance(value, worded) else value for name, value in recorded.items()}


SECTIONS = ("data", "model", "optimizer", "loop", "compute", "run", "distributed", "telemetry", "provenance")


def data_kind(values: Mapping[str, Any]) -> type[BarsConfig | TableConfig | TokensConfig]:
    """Return the section of the kind of data that settings describe."""
    if values.get("task") == LM:
        return TokensConfig
    features, target = values.get("features", "auto"), values.get("target", BarsConfig.target)
    if features == "table" or (features == "auto" and target not in BAR_TARGETS):
        return TableConfig
    return BarsConfig


def model_kind(values: Mapping[str, Any]) -> type[MlpConfig | DecoderConfig]:
    """Return the section of the kind of network that settings describe."""
    if values.get("task") == LM:
        return DecoderConfig
    return NETWORK_SECTIONS.get(values.get("network", ""), MlpConfig)


def settings() -> dict[str, Setting]:
    """Return the settings of all kinds by name, section by section."""
    return settings_of(*BY_KIND, *OF_EVERY_KIND, ProvenanceConfig)


FAMILIAR = {
    "skip_gpu_cleanup": "there is no clean-up to skip: all device memory is released when the process ends",
}


def notices(config: TrainConfig) -> list[str]:
    """Return a sentence for each setting that was given and has no effect."""
    values = config.values()
    found = [f"--{_dashed(name)} has no effect: {why}" for name, why in FAMILIAR.items() if values[name]]
    if config.loop.max_steps is not None and config.loop.epochs != LoopConfig.epochs:
        found.append(f"--epochs {config.loop.epochs} has no effect: --max-steps {config.loop.max_steps} ends the run")
    if config.run.resume is None:  # the run to resume may be of another kind
        found += [f"--{_dashed(name)} has no effect: {_not_used(name)}" for name in config.unused()]
    return found


def _not_used(name: str) -> str:
    return f"it is a setting of {settings()[name].title!r}, which this run does not use"


def _dashed(name: str) -> str:
    return name.replace("_", "-")
