"""What a resumed run keeps, what may change, and each refusal with its words: by the rules alone, without training."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from trainer.config.batch_schedule import BatchSchedule
from trainer.config.setting import OnResume
from trainer.config.train import TrainConfig
from trainer.config.train import settings as known_settings
from trainer.run import resume_settings as rules
from trainer.run.memory_plan.start_size import StartSize
from trainer.runtime.errors import TrainerError


def started(**changes: Any) -> dict[str, Any]:
    settings = {"config": TrainConfig.of(**changes).as_dict(), "data_sha256": "d" * 64, "world_size": 2}
    read: dict[str, Any] = json.loads(json.dumps(settings))
    return read


def test_settings_are_named_by_what_resuming_does_with_them() -> None:
    for kind in OnResume:
        assert rules.named(kind) == [name for name, each in known_settings().items() if each.resume is kind]
    assert set(rules.stays()) == {
        name
        for name, each in known_settings().items()
        if each.resume in (OnResume.FIXED, OnResume.LENGTH, OnResume.KEPT, OnResume.ROUNDING)
    }


@pytest.mark.parametrize(
    ("stored", "ends"),
    [
        ({"schedule": "cosine"}, True),
        ({"schedule": "linear"}, True),
        ({"schedule": "wsd"}, True),
        ({"schedule": "constant"}, False),
        ({}, False),
        ({"schedule": "constant", "warmup_ratio": 0.0}, True),
        ({"schedule": "constant", "warmup_ratio": None}, False),
    ],
)
def test_length_of_a_run_is_fixed_where_its_learning_rates_depend_on_it(stored: dict[str, Any], ends: bool) -> None:
    assert rules.ends_with_run(stored) is ends
    expected = [OnResume.FIXED, OnResume.LENGTH] if ends else [OnResume.FIXED]
    assert rules.fixed_under(stored) == rules.named(*expected)
    assert ("epochs" in rules.fixed_under(stored)) is ends


def test_setting_of_code_counts_as_given_where_it_is_not_the_default() -> None:
    assert rules.given(TrainConfig.of()) == {}
    assert rules.given(TrainConfig.of(seed=3, epochs=7)) == {"seed": 3, "epochs": 7}


def test_run_json_holds_the_settings_the_data_and_the_ranks(tmp_path: Path) -> None:
    config = TrainConfig.of(seed=3)
    made = rules.settings_of(config, "d" * 64, world_size=2)
    assert made == {"config": config.as_dict(), "data_sha256": "d" * 64, "world_size": 2}
    written: dict[str, bytes] = {}
    rules.write_settings(SimpleNamespace(write=written.__setitem__), made)  # type: ignore[arg-type]
    ((name, content),) = written.items()
    assert name == "run.json"
    assert content == (json.dumps(made, indent=2) + "\n").encode()
    assert rules.checked(json.loads(content)) == json.loads(content)


@pytest.mark.parametrize(
    "change",
    [
        {"config": []},
        {"config": None},
        {"world_size": 0},
        {"world_size": "2"},
        {"world_size": None},
        {"data_sha256": None},
        {"data_sha256": 3},
    ],
)
def test_settings_of_another_form_are_not_used(change: dict[str, Any]) -> None:
    assert rules.checked(started()) == started()
    assert rules.checked(started() | {"world_size": 1}) is not None
    assert rules.checked(started() | change) is None


@pytest.mark.parametrize("settings", [None, [], "x", {}])
def test_file_without_settings_is_not_used(settings: Any) -> None:
    assert rules.checked(settings) is None


@pytest.mark.parametrize("name", rules.named(OnResume.FIXED))
def test_setting_that_decides_the_run_has_to_be_there(name: str) -> None:
    settings = started()
    settings["config"].pop(name, None)
    may_lack = name == "batch_schedule" or known_settings()[name].sparse
    assert (rules.checked(settings) is not None) is may_lack


def test_settings_that_decide_a_run_are_enough() -> None:
    settings = started()
    needed = {name for name in rules.named(OnResume.FIXED) if not known_settings()[name].sparse} - {"batch_schedule"}
    settings["config"] = {name: value for name, value in settings["config"].items() if name in needed}
    assert rules.checked(settings) == settings


@pytest.mark.parametrize(("name", "value"), [("clip_norm", 0.5), ("patience", 3)])
def test_sparse_setting_given_where_the_run_had_its_default_is_refused(name: str, value: Any) -> None:
    with pytest.raises(TrainerError, match="RM551"):
        rules.with_settings_of(TrainConfig.of(**{name: value}), "one", started())
    assert rules.with_settings_of(TrainConfig.of(), "one", started(**{name: value})).values()[name] == value


def test_schedule_of_batches_given_to_a_run_of_a_trainer_without_one_is_refused() -> None:
    settings = started()
    settings["config"].pop("batch_schedule", None)
    with pytest.raises(TrainerError, match="RM551"):
        rules.with_settings_of(TrainConfig.of(batch_schedule=BatchSchedule(changes=((2, 64),))), "one", settings)


def test_output_folder_of_a_run_is_not_taken_from_its_settings() -> None:
    settings = started()
    settings["config"]["output"] = "/elsewhere"
    config = rules.with_settings_of(TrainConfig.of(output=Path("here")), "one", settings)
    assert config.run.output == Path("here")
    default = rules.with_settings_of(TrainConfig.of(), "one", settings)
    assert default.run.output == TrainConfig.of().run.output


def test_settings_that_no_resume_takes_over_are_not_read() -> None:
    settings = started()
    for name in set(settings["config"]) - set(rules.stays()):
        settings["config"][name] = {"no": "value"}
    assert rules.checked(settings) == settings


def test_refusal_names_each_setting_with_its_flag_and_the_runs_value() -> None:
    with pytest.raises(TrainerError, match="RM551") as caught:
        rules.with_settings_of(TrainConfig.of(seed=4, batch_size=7), "one", started(batch_size=8))
    assert caught.value.what in (
        "run one was started with --batch-size 8, --seed 0",
        "run one was started with --seed 0, --batch-size 8",
    )


def test_run_of_a_trainer_without_schedules_of_batches_has_a_constant_one() -> None:
    settings = started()
    settings["config"].pop("batch_schedule", None)
    before = TrainConfig.of().values()["batch_schedule"]
    assert rules.with_settings_of(TrainConfig.of(), "one", settings).values()["batch_schedule"] == before


def test_sparse_setting_that_a_run_did_not_record_had_its_default() -> None:
    config = rules.with_settings_of(TrainConfig.of(), "one", started()).values()
    sparse = {name: each.default for name, each in known_settings().items() if each.sparse and name in config}
    assert {name: config[name] for name in sparse} == sparse


def test_data_of_other_bytes_are_refused_by_both_hashes() -> None:
    task: Any = SimpleNamespace(data_sha256="e" * 64, data_name="bars.csv")
    with pytest.raises(TrainerError, match="RM551") as caught:
        rules.require_same_data(task, "one", started())
    assert (caught.value.what, caught.value.where) == ("run one was started on other data", "bars.csv")
    assert caught.value.why == f"SHA-256 {'e' * 12}…, the run began with {'d' * 12}…"
    rules.require_same_data(SimpleNamespace(data_sha256="d" * 64, data_name=""), "one", started())  # type: ignore[arg-type]


def test_fewer_epochs_or_steps_than_were_taken_are_refused() -> None:
    rules.require_epochs("one", requested=3, trained=3)
    with pytest.raises(TrainerError, match="RM551") as caught:
        rules.require_epochs("one", requested=2, trained=3)
    assert caught.value.what == "run one has trained 3 epochs, more than --epochs 2"
    assert caught.value.next == "Give --epochs 3 or more, or start a new run."
    assert caught.value.why == "Epochs that were trained cannot be undone."
    rules.require_steps("one", requested=None, taken=3)
    rules.require_steps("one", requested=3, taken=3)
    with pytest.raises(TrainerError, match="RM551") as caught:
        rules.require_steps("one", requested=2, taken=3000)
    assert caught.value.what == "run one has taken 3,000 steps, more than --max-steps 2"
    assert caught.value.next == "Give --max-steps 3000 or more, or start a new run."
    assert caught.value.why == "Steps that were taken cannot be undone."


def test_longer_run_has_its_new_length_and_else_what_it_began_with() -> None:
    assert rules.longer(None, TrainConfig.of()) is None
    found = rules.longer(started(seed=3), TrainConfig.of(seed=4, epochs=99))
    assert found == started(seed=3, epochs=99)


@pytest.mark.parametrize("name", rules.named(OnResume.ROUNDING))
def test_setting_with_another_rounding_is_named(name: str) -> None:
    settings = started()
    settings["config"][name] = "before"
    now = TrainConfig.of().as_dict()[name]
    assert rules.rounding_changes(TrainConfig.of(), 2, settings) == [f"{name} before is now {now}"]
    del settings["config"][name]
    expected = [] if now is None else [f"{name} None is now {now}"]
    assert rules.rounding_changes(TrainConfig.of(), 2, settings) == expected


@pytest.mark.parametrize(
    ("recorded", "planned"),
    [
        (
            {"rows": 4, "why": "it fits", "needed_bytes": 1, "budget_bytes": 2},
            StartSize(rows=4, why="it fits", needed_bytes=1, budget_bytes=2),
        ),
        ({"rows": None, "why": "all fit", "needed_bytes": "many"}, StartSize(rows=None, why="all fit")),
        ({"rows": 1, "why": "it fits", "budget_bytes": True}, StartSize(rows=1, why="it fits")),
        ({"rows": 0, "why": "it fits"}, None),
        ({"rows": True, "why": "it fits"}, None),
        ({"rows": "4", "why": "it fits"}, None),
        ({"rows": 4}, None),
        ([4], None),
        (None, None),
    ],
)
def test_plan_of_memory_is_read_in_its_own_form_alone(recorded: Any, planned: StartSize | None) -> None:
    assert rules.planned_before({"micro_batch": recorded}) == planned
    assert rules.planned_before(None) is None


def test_choices_of_ranks_are_in_order_and_those_of_earlier_trainers_are_read() -> None:
    one, two = {"ranks": 1}, {"ranks": 2}
    now = TrainConfig.of(rank_choice=json.dumps(two))
    without = TrainConfig.of()
    assert rules.rank_choices(without, None) == []
    assert rules.rank_choices(now, None) == [two]
    assert rules.rank_choices(now, {"config": {"rank_choice": json.dumps(one)}}) == [one, two]
    kept = {"rank_choices": [one, two], "config": {"rank_choice": json.dumps(one)}}
    assert rules.rank_choices(now, kept) == [one, two]
    assert rules.rank_choices(now, {"rank_choices": [two]}) == [two]
    assert rules.rank_choices(without, {"rank_choices": [one]}) == [one]
    for broken in ({"config": {"rank_choice": "{"}}, {"config": {"rank_choice": "[1]"}}, {"rank_choices": [1]}, {}):
        assert rules.rank_choices(now, broken) == [two]
    assert rules.recorded_choice([one]) == one
    assert rules.recorded_choice([one, two]) == {"ranks": 1, "resumed": [two]}
