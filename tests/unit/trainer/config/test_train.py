from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from trainer.config import choices
from trainer.config.sections.bars import BarsConfig
from trainer.config.sections.decoder import DecoderConfig
from trainer.config.sections.network import MlpConfig, TransformerConfig
from trainer.config.sections.table import TableConfig
from trainer.config.sections.tokens import TokensConfig
from trainer.config.train import BY_KIND, FAMILIAR, OF_EVERY_KIND, TrainConfig, notices, settings
from trainer.data.dataset import TARGETS
from trainer.device.precision import DTYPES
from trainer.distributed.transports import transport
from trainer.engine.lr_schedule import AFTER_WARMUP
from trainer.models.kernels import BACKENDS
from trainer.models.layers import ACTIVATIONS
from trainer.runtime.errors import TrainerError
from trainer.tasks.export import NEEDS

MOST_FIELDS = 12


def classes(section: type[Any]) -> set[type[Any]]:
    """The section and those within it, at its default."""
    made = section()
    found = [getattr(made, each.name) for each in fields(section)]
    return {section}.union(*(classes(type(each)) for each in found if is_dataclass(each)))


def test_configuration_without_settings_is_that_of_all_defaults() -> None:
    assert TrainConfig.of() == TrainConfig()
    own = TrainConfig().values()
    assert TrainConfig.of(**{name: each.default for name, each in settings().items() if name in own}) == TrainConfig()


@pytest.mark.parametrize("section", [TrainConfig, *BY_KIND, *OF_EVERY_KIND])
def test_section_has_at_most_twelve_fields(section: type[Any]) -> None:
    for each in classes(section):
        assert len(fields(each)) <= MOST_FIELDS, each


def test_setting_stands_in_one_section_of_a_kind() -> None:
    for kind in ({}, {"target": "y"}, {"task": "lm"}, {"network": "transformer"}):
        made = TrainConfig.of(**kind)
        counted = [name for section in made_sections(made) for name in section]
        assert len(counted) == len(set(counted)) > 60


def made_sections(config: TrainConfig) -> list[list[str]]:
    from trainer.config.setting import values_in

    sections = [getattr(config, each.name) for each in fields(config)]
    return [list(values_in([each])) for each in sections if is_dataclass(each)]


@pytest.mark.parametrize(
    ("values", "data", "model"),
    [
        ({}, BarsConfig, MlpConfig),
        ({"network": "residual", "target": "direction"}, BarsConfig, MlpConfig),
        ({"network": "transformer", "features": "daily", "target": "y"}, BarsConfig, TransformerConfig),
        ({"target": "y"}, TableConfig, MlpConfig),
        ({"features": "table"}, TableConfig, MlpConfig),
        ({"task": "lm", "network": "transformer", "target": "y"}, TokensConfig, DecoderConfig),
    ],
)
def test_sections_of_data_and_network_are_those_of_their_kind(
    values: dict[str, Any], data: type[Any], model: type[Any]
) -> None:
    made = TrainConfig.of(**values)
    assert (type(made.data), type(made.model)) == (data, model)


def test_name_that_no_setting_has_is_refused() -> None:
    with pytest.raises(TypeError, match=r"epoch$"):
        TrainConfig.of(epoch=3)


def test_other_values_leave_the_rest_and_may_change_the_kind() -> None:
    bars = TrainConfig.of(seed=3, horizon=7, origin={"seed": "flag"})
    table = bars.having(target="y", epochs=2)
    assert isinstance(table.data, TableConfig)
    assert (table.loop.seed, table.loop.epochs, table.origin, dict(table.given)) == (
        *(3, 2, {"seed": "flag"}),
        {"seed": 3, "horizon": 7},
    )
    assert bars.having() == bars


def test_settings_are_json() -> None:
    stored = json.loads(json.dumps(TrainConfig.of(output=Path("x")).as_dict()))
    assert stored["output"] == "x"
    assert stored["hidden_layers"] == [32, 16]


@pytest.mark.parametrize("kind", [{}, {"target": "y"}, {"network": "transformer"}, {"task": "lm"}])
def test_kinds_record_the_same_settings_where_none_is_used(kind: dict[str, str]) -> None:
    assert TrainConfig.of(**kind).as_dict() == {**TrainConfig().as_dict(), **kind}


def test_settings_of_another_kind_are_unused_where_they_are_no_default() -> None:
    config = TrainConfig.of(target="y", tick=0.5, row_ticks=1, heads=2, seed=4)
    assert config.unused() == {"tick": 0.5, "heads": 2}
    assert [each.split()[0] for each in notices(config)] == ["--tick", "--heads"]


@pytest.mark.parametrize(
    ("values", "what"),
    [
        ({"attention": "math"}, "--attention math with --network mlp"),
        ({"attention": "math", "task": "lm"}, "--attention math with --task lm"),
        ({"network": "transformer", "hidden_layers": ()}, "without blocks"),
        ({"network": "transformer", "norm": "batch"}, "--norm batch"),
        ({"network": "transformer", "heads": 5}, "--heads 5"),
    ],
)
def test_settings_of_a_network_that_do_not_fit_are_refused(values: dict[str, Any], what: str) -> None:
    config = TrainConfig.of(**values)
    with pytest.raises(TrainerError, match="RM557") as caught:
        config.model.require_fitting(config.unused())
    assert what in caught.value.what


def test_choices_of_the_command_line_are_the_keys_of_what_implements_them() -> None:
    assert (transport.AUTOMATIC, *transport.TRANSPORTS) == choices.COMMS
    assert tuple(TARGETS) == choices.BAR_TARGETS
    assert tuple(AFTER_WARMUP) == choices.SCHEDULES
    assert tuple(BACKENDS) == choices.ATTENTION_KERNELS
    assert tuple(choices.ACTIVATIONS.values()) == tuple(ACTIVATIONS)
    assert set(choices.PRECISIONS) == {"auto", *DTYPES}
    assert tuple(NEEDS) == choices.EXPORTS


def test_familiar_flags_are_distinguished_from_those_with_an_effect() -> None:
    assert notices(TrainConfig.of(epochs=1, batch_size=8)) == []
    notes = notices(TrainConfig.of(skip_gpu_cleanup=True))
    assert [sentence.partition(" has no effect: ")[0] for sentence in notes] == ["--skip-gpu-cleanup"]
    assert all(FAMILIAR[name] in sentence for name, sentence in zip(("skip_gpu_cleanup",), notes, strict=True))


def test_origin_of_a_value_is_no_setting() -> None:
    assert "origin" not in TrainConfig.of(origin={"epochs": "flag"}).as_dict()
    assert TrainConfig.of(origin={"epochs": "flag"}) == TrainConfig()


def test_importing_the_configuration_loads_neither_torch_nor_numpy() -> None:
    code = "import sys, trainer.config.train, trainer.config.listing; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "trainer.config.train" in loaded
    assert not {"torch", "numpy", "polars", "yaml"} & set(loaded)
