"""What resuming a run does with a setting stands on the setting."""

from __future__ import annotations

import inspect

import pytest

from trainer.config.setting import Flag, OnResume, settings_of
from trainer.config.train import settings
from trainer.run.rank_setup import alike
from trainer.run.resume_settings import named


def test_settings_state_what_resuming_does_with_them() -> None:
    assert all(isinstance(each.resume, OnResume) for each in settings().values())
    counted = sum(len(named(each)) for each in OnResume)
    assert counted == len(settings()) > 100


def test_resume_behaviours_are_documented_for_each_value() -> None:
    words = inspect.getdoc(OnResume) or ""
    assert all(f"{each.name}: " in words for each in OnResume)


def test_settings_that_decide_no_weights_are_listed() -> None:
    """A new setting is fixed, or is named here: one that decides weights and may change would mix two runs."""
    assert {each: named(each) for each in OnResume if each not in (OnResume.FIXED, OnResume.NEW)} == {
        OnResume.LENGTH: ["epochs", "max_steps"],
        OnResume.KEPT: ["data", "baselines", "join", "best_on", "step", "callback"],
        OnResume.ROUNDING: ["device", "threads"],
    }
    assert set(named(OnResume.NEW)) == {
        *("chunk_size", "workers", "cache"),
        *("output", "run", "resume", "checkpoint_every", "keep", "export", "skip_gpu_cleanup"),
        *(
            "use_mixed_precision",
            "micro_batch",
            "compile",
            "activation_checkpointing",
            "feed",
            "loader_workers",
            "gates",
        ),
        *("ranks", "parallel", "comms", "gradient_compression", "max_restarts", "hang_timeout", "hang_floor"),
        *("track", "nan_guard"),
        *("cell", "cell_absent", "forced", "image", "commit", "rank_choice"),
    }


def test_settings_that_decide_the_weights_are_alike_on_all_ranks() -> None:
    assert set(named(OnResume.FIXED, OnResume.LENGTH)) < set(alike())
    assert {"micro_batch", "parallel", "comms", "activation_checkpointing"} <= set(alike())
    assert not {"output", "threads", "device"} & set(alike())


def test_field_without_a_flag_is_no_setting() -> None:
    class Section:
        pass

    with pytest.raises(TypeError):
        settings_of(Section)
    assert Flag("x").resume is OnResume.NEW
