"""Going on with a run: what was typed counts, another run's checkpoint is refused, and other inputs are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trainer.config.recipe import resolve
from trainer.config.setting import OnResume
from trainer.config.train import TrainConfig
from trainer.run.metadata import versions
from trainer.run.resume_settings import checked, given, named, rounding_changes, with_settings_of
from trainer.run.same_run import origin_of, require_own, require_same_inputs, version_changes
from trainer.run.stored_settings import values_of
from trainer.runtime.errors import TrainerError

FIXED = named(OnResume.FIXED)


def started(**changes: Any) -> dict[str, Any]:
    """Return what run.json says of a run, as it is read back."""
    settings = {"config": TrainConfig.of(**changes).as_dict(), "data_sha256": "d" * 64, "world_size": 1}
    read: dict[str, Any] = json.loads(json.dumps(settings))
    return read


def refused(code: str, call: Any, *args: Any) -> str:
    with pytest.raises(TrainerError) as caught:
        call(*args)
    assert caught.value.code == code
    return str(caught.value)


DEFAULTS = [
    ("dropout", 0.0, 0.1, "model.dropout=0.0"),
    ("seed", 0, 7, "train.seed=0"),
    ("precision", "fp32", "bf16", "train.precision=fp32"),
    ("hidden_layers", (32, 16), (8,), "model.hidden_layers=32,16"),
    ("norm", "none", "layer", "model.norm=none"),
    ("weight_decay", 0.01, 0.1, "train.weight_decay=0.01"),
    ("missing", "fill", "drop", "data.missing=fill"),
    ("embargo", None, 9, "data.embargo=auto"),
]


@pytest.mark.parametrize(("name", "default", "before", "assignment"), DEFAULTS)
@pytest.mark.parametrize("way", ["flag", "set", "recipe"])
def test_value_given_at_its_default_is_given_however_it_is(
    tmp_path: Path, name: str, default: Any, before: Any, assignment: str, way: str
) -> None:
    key, _, text = assignment.partition("=")
    section, _, own = key.partition(".")
    recipe = tmp_path / "own.yaml"
    recipe.write_text(f'{section}:\n  {own}: "{text}"\n')
    typed = {"flag": {name: default}, "set": {"set": [assignment]}, "recipe": {"recipe": str(recipe)}}[way]
    config = resolve(typed | {"target": "y"})  # of a table, which has all of these
    assert name in given(config)
    assert name in refused("RM551", with_settings_of, config, "one", started(target="y", **{name: before})).replace(
        "-", "_"
    )
    assert (
        with_settings_of(config, "one", started(target="y")).values()[name] == default
    )  # as it was: nothing to refuse


def test_setting_not_given_is_that_of_the_run() -> None:
    config = with_settings_of(resolve({}), "one", started(dropout=0.1, epochs=50, hidden_layers=(8,)))
    assert (config.model.dropout, config.loop.epochs, config.model.hidden_layers) == (0.1, 50, (8,))
    assert with_settings_of(resolve({"epochs": 300}), "one", started(epochs=50)).loop.epochs == 300


def test_settings_come_back_from_a_file_unchanged() -> None:
    for config in (
        TrainConfig.of(),
        TrainConfig.of(target="y", hidden_layers=(), categories=("a", "b"), embargo=3, hang_timeout=None),
    ):
        read = values_of(json.loads(json.dumps(config.as_dict())))
        assert {name: config.complete()[name] for name in read} == read


@pytest.mark.parametrize("value", ["x", -1, 0.5, [], None, True, {"a": 1}, 2**70, float("nan")])
@pytest.mark.parametrize("name", ["batch_size", "hidden_layers", "seed", "batch_schedule", "data_fraction"])
def test_file_whose_values_no_setting_takes_is_not_used(name: str, value: Any) -> None:
    settings = started()
    settings["config"][name] = value
    if (name, value) in (("hidden_layers", []), ("data_fraction", 0.5)):
        assert checked(settings) == settings
    else:
        assert checked(settings) is None


@pytest.mark.parametrize(
    "change", [{"seed": 1}, {"learning_rate": 0.5}, {"hidden_layers": (4,)}, {"dropout": 0.5}, {"target": "return"}]
)
def test_checkpoint_of_another_run_is_refused_by_name(tmp_path: Path, change: dict[str, Any]) -> None:
    facts = {"settings": started(**change)}
    told = refused("RM591", require_own, tmp_path / "step-000000000005", facts, started(), FIXED)
    assert next(iter(change)) in told
    require_own(tmp_path, {"settings": started()}, started(), FIXED)
    longer_run = {"settings": started(epochs=9, device="cuda", threads=4)}  # what a resume may change
    require_own(tmp_path, longer_run, started(), FIXED)


@pytest.mark.parametrize("facts", [{}, {"settings": None}, {"settings": []}, {"settings": {"config": 3}}, [], None])
def test_checkpoint_without_its_run_is_refused(tmp_path: Path, facts: Any) -> None:
    refused("RM591", require_own, tmp_path, facts, started(), FIXED)


def test_checkpoint_of_other_data_is_refused(tmp_path: Path) -> None:
    other = started() | {"data_sha256": "e" * 64}
    assert "data_sha256" in refused("RM591", require_own, tmp_path, {"settings": other}, started(), FIXED)


RECORD = {
    "versions": {"torch": "2.12.0", "numpy": "2.3", "trainer": "1", "hip": None, "cuda": None},
    "features": [{"name": "a", "formula": "log(close)"}, {"name": "b", "formula": "x"}],
    "scaler": {"mean": [1.0, 2.0], "std": [0.5, 0.25]},
    "target": {"mean": 0.0, "std": 1.0},
    "split": {"by": "time", "train": {"rows": 70}, "validation": {"rows": 15}, "test": {"rows": 15}},
}


def inputs(**changes: Any) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(json.dumps(origin_of(RECORD | changes)["inputs"]))
    return read


@pytest.mark.parametrize(
    "changes",
    [
        {"features": [{"name": "a", "formula": "log(open)"}, {"name": "b", "formula": "x"}]},
        {"features": [{"name": "b", "formula": "x"}, {"name": "a", "formula": "log(close)"}]},
        {"scaler": {"mean": [1.0, 2.001], "std": [0.5, 0.25]}},
        {"scaler": {"mean": [1.0, 2.0], "std": [0.5, 0.2500004]}},
        {"scaler": {"mean": [1.0], "std": [0.5]}},
        {"target": {"mean": 0.01, "std": 1.0}},
        {"split": {"by": "time", "train": {"rows": 71}, "validation": {"rows": 15}, "test": {"rows": 14}}},
    ],
)
def test_inputs_that_are_computed_otherwise_are_refused(changes: dict[str, Any]) -> None:
    refused("RM593", require_same_inputs, "one", inputs(), inputs(**changes))


def test_inputs_that_round_otherwise_are_the_same_and_an_older_run_records_none() -> None:
    require_same_inputs("one", inputs(), inputs(scaler={"mean": [1.0 + 1e-12, 2.0], "std": [0.5, 0.25]}))
    require_same_inputs("one", None, inputs())
    for odd in ({"features": 3}, {**inputs(), "figures": []}, {**inputs(), "figures": {"x": 1}}):
        refused("RM593", require_same_inputs, "one", odd, inputs())


def test_other_torch_is_reported_as_rounding() -> None:
    now = versions()
    settings = started() | {"versions": {**now, "torch": "1.13.1"}}
    assert rounding_changes(TrainConfig.of(), 1, settings) == [f"torch 1.13.1 is now {now['torch']}"]
    assert rounding_changes(TrainConfig.of(), 1, started() | {"versions": now}) == []
    assert rounding_changes(TrainConfig.of(), 1, started() | {"versions": "x"}) == []
    assert version_changes({"python": "3.11"}, now) == []  # of itself it rounds nothing
