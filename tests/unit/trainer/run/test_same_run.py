"""Going on with a run: what was typed counts, another run's checkpoint is refused, and other inputs are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trainer.config.recipe import resolve
from trainer.config.setting import OnResume
from trainer.config.train import TrainConfig
from trainer.config.train import settings as known_settings
from trainer.run.metadata import versions
from trainer.run.resume_settings import checked, given, named, rounding_changes, with_settings_of
from trainer.run.same_run import origin_of, require_own, require_same_inputs, unrecorded, version_changes
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
    message = refused("RM591", require_own, tmp_path / "step-000000000005", facts, started(), FIXED)
    assert next(iter(change)) in message
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


def test_origin_of_a_run_names_its_inputs_and_versions() -> None:
    record = RECORD | {"features": [{"name": "a", "formula": "f"}, {}]}
    assert origin_of(record) == {
        "versions": RECORD["versions"],
        "inputs": {
            "features": [["a", "f"], [None, None]],
            "rows": {"train": 70, "validation": 15, "test": 15},
            "figures": {
                "mean of input 0": 1.0,
                "mean of input 1": 2.0,
                "deviation of input 0": 0.5,
                "deviation of input 1": 0.25,
                "mean of the target": 0.0,
                "std of the target": 1.0,
            },
        },
    }


def test_adapter_by_peft_is_one_of_the_inputs_and_another_is_refused() -> None:
    def of(adapter: Any) -> dict[str, Any]:
        return inputs(model={"peft": adapter, "widths": [1]})

    assert of({"r": 8})["adapter"] == {"r": 8}
    assert "adapter" not in of(None) and "adapter" not in inputs(model=None) and "adapter" not in inputs(model={})
    require_same_inputs("one", of({"r": 8}), of({"r": 8}))
    require_same_inputs("one", of(None), of({"r": 8}))  # a run of an earlier trainer, which did not record it
    for other, words in (({"r": 4}, "{'r': 4}"), (None, "None")):
        with pytest.raises(TrainerError, match="RM593") as caught:
            require_same_inputs("one", of({"r": 8}), of(other))
        assert caught.value.why == f"the adapter is {words}, and was {{'r': 8}}"


@pytest.mark.parametrize("nothing", [{}, {"split": None, "scaler": None, "target": None, "features": None}])
def test_origin_of_a_run_without_features_is_empty(nothing: dict[str, Any]) -> None:
    bare = {"versions": {}, "split": {"train": {"from": 1}}, "scaler": {"mean": None}, "target": {"mean": None}}
    for record in (bare, {"versions": {}} | nothing):
        assert origin_of(record) == {"versions": {}, "inputs": {"features": [], "rows": {}, "figures": {}}}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"features": [{"name": "a", "formula": "x"}]}, "the features have other names or formulas"),
        ({"split": {"train": {"rows": 71}}}, "the parts have {'train': 71} rows, and had {'train': 70, 'validation'"),
        ({"scaler": {"mean": [1.0], "std": [0.5]}}, "there are other columns"),
        ({"scaler": {"mean": [1.0, 3.0], "std": [0.5, 9.0]}}, "mean of input 1 is 3.0, and was 2.0"),
        ({"target": {"mean": 0.5, "std": 1.0}}, "mean of the target is 0.5, and was 0.0"),
    ],
)
def test_refusal_of_other_inputs_names_the_first_difference(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(TrainerError, match="RM593") as caught:
        require_same_inputs("one", inputs(), inputs(**changes))
    assert caught.value.what == "run one began with other inputs"
    assert caught.value.why.startswith(why)


@pytest.mark.parametrize(
    ("before", "now", "same"),
    [
        (1.0, 1.0 + 9e-7, True),
        (1.0, 1.0 + 2e-6, False),
        (0.0, 9e-13, True),
        (0.0, 2e-12, False),
        (1, 1.0, True),
        (True, 1.0, False),
        ("1.0", 1.0, False),
        (1.0, "1.0", False),
        (None, 1.0, False),
    ],
)
def test_figures_are_the_same_within_a_rounding(before: Any, now: Any, same: bool) -> None:
    then, today = ({"features": [], "rows": {}, "figures": {"x": value}} for value in (before, now))
    if same:
        require_same_inputs("one", then, today)
    else:
        refused("RM593", require_same_inputs, "one", then, today)


def test_version_with_another_rounding_is_named_where_the_run_recorded_it() -> None:
    now = {"torch": "2", "hip": None, "cuda": "12", "numpy": "2", "trainer": "1"}
    before = {"torch": "1", "hip": "6", "cuda": None, "numpy": "1", "trainer": "0", "python": "3"}
    assert version_changes(before, now) == [
        *("torch 1 is now 2", "hip 6 is now None", "cuda None is now 12", "numpy 1 is now 2", "trainer 0 is now 1"),
    ]
    assert version_changes({"torch": "1"}, {}) == ["torch 1 is now None"]
    assert version_changes({}, now) == []


def test_settings_recorded_only_where_they_are_no_default_have_it_else() -> None:
    found = unrecorded()
    assert found == {name: each.default for name, each in known_settings().items() if each.sparse}
    assert found


def test_checkpoint_of_another_run_is_refused_with_the_first_four_differences(tmp_path: Path) -> None:
    changes = {"seed": 1, "learning_rate": 0.5, "hidden_layers": (4,), "dropout": 0.5, "batch_size": 9}
    with pytest.raises(TrainerError, match="RM591") as caught:
        require_own(tmp_path, {"settings": started(**changes)}, started(), FIXED)
    assert caught.value.where == str(tmp_path)
    differences, ours = caught.value.what.removeprefix("it was taken under "), started()["config"]
    theirs = started(**changes)["config"]
    differing = [name for name in FIXED if name in changes][:4]
    assert differences == ", ".join(f"{name} {theirs[name]!r} (this run: {ours[name]!r})" for name in differing)
    with pytest.raises(TrainerError, match="RM591") as caught:
        require_own(tmp_path, {}, started(), FIXED)
    assert (caught.value.what, caught.value.where) == ("it does not state which run it is of", str(tmp_path))


def test_checkpoint_of_a_trainer_without_schedules_or_of_tuples_is_this_runs(tmp_path: Path) -> None:
    mine = started(hidden_layers=(8, 4))
    theirs = json.loads(json.dumps(mine))
    theirs["config"].pop("batch_schedule", None)
    theirs["config"]["hidden_layers"] = (8, 4)
    require_own(tmp_path, {"settings": theirs}, mine, FIXED)
    theirs["config"]["batch_schedule"] = "8@1"
    refused("RM591", require_own, tmp_path, {"settings": theirs}, mine, FIXED)


def test_checkpoint_without_the_hash_of_its_data_is_refused(tmp_path: Path) -> None:
    theirs = started()
    del theirs["data_sha256"]
    words = refused("RM591", require_own, tmp_path, {"settings": theirs}, started(), FIXED)
    assert f"data_sha256 None (this run: {'d' * 64!r})" in words
