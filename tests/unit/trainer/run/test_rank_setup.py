"""Ranks join one run, restart together, and agree on settings and data."""

from __future__ import annotations

from typing import Any

import pytest

from trainer.config.sections.run import DistributedConfig
from trainer.config.train import TrainConfig
from trainer.distributed.collectives import Ranks
from trainer.distributed.parallel.join import connect, device_of_rank, join
from trainer.run.rank_setup import CEILING_S, attempt_of, launch_name, limits_of, require_alike
from trainer.runtime.errors import TrainerError

pytestmark = pytest.mark.usefixtures("plain_process")


def test_plain_process_is_a_world_of_one() -> None:
    alone = connect()
    assert type(alone) is Ranks
    assert join(alone, "cpu") is alone
    assert device_of_rank("cuda:3") == "cuda:3"


def test_attempts_all_mean_the_run_of_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    assert attempt_of(TrainConfig.of(), Ranks()) == TrainConfig.of()
    monkeypatch.setenv("TORCHELASTIC_MAX_RESTARTS", "2")
    first = attempt_of(TrainConfig.of(), Ranks())
    assert (first.run.run, first.run.resume) == (launch_name(), None)
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    second = attempt_of(TrainConfig.of(), Ranks())
    assert (second.run.run, second.run.resume) == (first.run.run, "auto")
    assert attempt_of(TrainConfig.of(run="mine", resume="mine"), Ranks()) == TrainConfig.of(run="mine", resume="mine")


def test_restart_of_one_launcher_restarts_all() -> None:
    assert attempt_of(TrainConfig.of(run="mine"), Voting(False)).run.resume is None
    assert attempt_of(TrainConfig.of(run="mine"), Voting(True)).run.resume == "auto"


class Voting(Ranks):
    """Two ranks, of which the other one answers every vote with `other`."""

    def __init__(self, other: bool) -> None:
        self.other = other

    def any_rank(self, *flags: bool) -> tuple[bool, ...]:
        return tuple(flag or self.other for flag in flags)


def test_plain_process_is_not_watched_unless_requested(monkeypatch: pytest.MonkeyPatch) -> None:
    assert limits_of(DistributedConfig()) is None
    limits = limits_of(DistributedConfig(hang_timeout=5.0))
    assert limits
    assert (limits.floor, limits.ceiling) == (5.0, 5.0)
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    among_ranks = limits_of(DistributedConfig(hang_floor=7.0))
    assert among_ranks
    assert (among_ranks.floor, among_ranks.ceiling) == (7.0, CEILING_S)
    assert limits_of(DistributedConfig(hang_timeout=None)) is None


class TwoRanks(Ranks):
    """Two ranks, of which the other one says `other`."""

    def __init__(self, **other: str) -> None:
        self.other = other

    def gather(self, value: Any) -> list[Any]:
        return [value, value | self.other]


def test_ranks_with_other_settings_or_other_data_are_refused() -> None:
    require_alike(TwoRanks(), TrainConfig.of(), "abc")
    for other in ({"seed": "7"}, {"data": "def"}, {"parallel": "pipeline"}):
        with pytest.raises(TrainerError, match="RM565") as caught:
            require_alike(TwoRanks(**other), TrainConfig.of(), "abc")
        assert next(iter(other)) in caught.value.what
