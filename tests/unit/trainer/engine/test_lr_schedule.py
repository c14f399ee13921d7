from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.config.choices import SCHEDULES
from trainer.config.sections.optimizer import OptimizerConfig
from trainer.engine.lr_schedule import AFTER_WARMUP, Shape, factor, require_schedule, shape_of
from trainer.runtime.errors import TrainerError

SHAPE = Shape(name="linear", steps=100, warmup=10, decay=20)


def factors(name: str) -> list[float]:
    return [factor(replace(SHAPE, name=name), step) for step in range(SHAPE.steps)]


def test_choices_are_those_that_are_implemented() -> None:
    assert tuple(AFTER_WARMUP) == SCHEDULES


@pytest.mark.parametrize("name", SCHEDULES)
def test_warm_up_rises_in_equal_parts_to_the_full_rate(name: str) -> None:
    assert factors(name)[:10] == pytest.approx([(step + 1) / 10 for step in range(10)])


@given(st.sampled_from(SCHEDULES), st.integers(2, 10_000), st.floats(0, 0.9), st.floats(0.01, 1))
def test_rates_are_within_zero_and_the_full_one_and_never_rise_after_the_warm_up(
    name: str, steps: int, ratio: float, decay: float
) -> None:
    warmup = max(1, int(ratio * steps))
    shape = Shape(name=name, steps=steps, warmup=warmup, decay=max(1, int(decay * steps)))
    found = [factor(shape, step) for step in range(0, steps, max(1, steps // 50))]
    assert all(0 <= each <= 1 for each in found)
    after = [factor(shape, step) for step in range(warmup, steps, max(1, steps // 50))]
    assert after == sorted(after, reverse=True)


def test_constant_stays_at_the_full_rate() -> None:
    assert set(factors("constant")[10:]) == {1.0}


def test_cosine_is_half_way_down_in_the_middle_after_the_warm_up() -> None:
    found = factors("cosine")
    assert found[10] == 1.0
    assert found[55] == pytest.approx(0.5)
    assert found[99] == pytest.approx((1 + math.cos(math.pi * 89 / 90)) / 2)


def test_linear_falls_by_equal_parts_to_zero_after_the_last_step() -> None:
    found = factors("linear")
    assert found[10] == 1.0
    assert [one - other for one, other in pairwise(found[10:])] == pytest.approx([1 / 90] * 89)
    assert factor(replace(SHAPE, name="linear"), 100) == 0.0


def test_wsd_is_stable_until_its_decay() -> None:
    found = factors("wsd")
    assert set(found[10:81]) == {1.0}
    assert found[81] == pytest.approx(19 / 20)
    assert found[99] == pytest.approx(1 / 20)


def test_inverse_sqrt_halves_at_four_warm_ups() -> None:
    found = factors("inverse-sqrt")
    assert found[9] == 1.0
    assert found[39] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("changes", "steps"),
    [
        ({"warmup_steps": 3, "warmup_ratio": 0.1}, 100),
        ({"schedule": "inverse-sqrt"}, 100),
        ({"decay_ratio": 0.2}, 100),
        ({"decay_ratio": 0.2, "schedule": "cosine"}, 100),
        ({"warmup_steps": 100}, 100),
    ],
)
def test_settings_that_contradict_each_other_are_refused(changes: dict[str, object], steps: int) -> None:
    with pytest.raises(TrainerError, match="RM526"):
        require_schedule(OptimizerConfig(**changes), steps)


def test_settings_that_fit_are_taken() -> None:
    for schedule in SCHEDULES:
        require_schedule(OptimizerConfig(schedule=schedule, warmup_steps=99), 100)
    require_schedule(OptimizerConfig(schedule="wsd", decay_ratio=0.5, warmup_ratio=0.2), 100)


def test_ratio_is_a_share_of_all_steps() -> None:
    shape = shape_of(OptimizerConfig(schedule="wsd", warmup_ratio=0.2, decay_ratio=0.25), 100)
    assert (shape.warmup, shape.decay) == (20, 20)
