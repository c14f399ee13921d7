from __future__ import annotations

from typing import Any

import pytest
import torch

from trainer.config.sections.run import DistributedConfig
from trainer.config.train import TrainConfig
from trainer.device.memory import OutOfMemory
from trainer.distributed.collectives import Ranks
from trainer.distributed.parallel.join import connect, device_of_rank, join
from trainer.distributed.parallel.world import BootstrapGroup
from trainer.run.rank_setup import CEILING_S, attempt_of, launch_name, limits_of, require_alike
from trainer.runtime.errors import TrainerError


@pytest.fixture(autouse=True)
def plain_process(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_MAX_RESTARTS", "TORCHELASTIC_RUN_ID"):
        monkeypatch.delenv(name, raising=False)


def second_of_two(monkeypatch: pytest.MonkeyPatch, cards: int) -> None:
    for name, value in {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: cards)


def test_plain_process_is_a_world_of_one() -> None:
    alone = connect()
    assert type(alone) is Ranks
    assert join(alone, "cpu") is alone
    assert device_of_rank("cuda:3") == "cuda:3"


@pytest.mark.parametrize(
    ("cards", "requested", "device"),
    [(2, "auto", "cuda:1"), (2, "cuda", "cuda:1"), (2, "cpu", "cpu"), (1, "auto", "cpu"), (0, "auto", "cpu")],
)
def test_ranks_each_have_a_card_or_all_have_the_cpu(
    monkeypatch: pytest.MonkeyPatch, cards: int, requested: str, device: str
) -> None:
    second_of_two(monkeypatch, cards)
    assert device_of_rank(requested) == device


@pytest.mark.parametrize("requested", ["cuda", "cuda:0"])
def test_cards_that_are_too_few_are_refused_where_cards_are_requested(
    monkeypatch: pytest.MonkeyPatch, requested: str
) -> None:
    second_of_two(monkeypatch, cards=1)
    with pytest.raises(TrainerError, match="RM563"):
        device_of_rank(requested)


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


def test_plain_process_is_not_watched_unless_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert limits_of(DistributedConfig()) is None
    asked = limits_of(DistributedConfig(hang_timeout=5.0))
    assert asked
    assert (asked.floor, asked.ceiling) == (5.0, 5.0)
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    among_ranks = limits_of(DistributedConfig(hang_floor=7.0))
    assert among_ranks
    assert (among_ranks.floor, among_ranks.ceiling) == (7.0, CEILING_S)
    assert limits_of(DistributedConfig(hang_timeout=None)) is None


class Told(Ranks):
    """Two ranks, of which the other one says `other`."""

    def __init__(self, **other: str) -> None:
        self.other = other

    def gather(self, value: Any) -> list[Any]:
        return [value, value | self.other]


def test_ranks_with_other_settings_or_other_data_are_refused() -> None:
    require_alike(Told(), TrainConfig.of(), "abc")
    for other in ({"seed": "7"}, {"data": "def"}, {"parallel": "pipeline"}):
        with pytest.raises(TrainerError, match="RM565") as caught:
            require_alike(Told(**other), TrainConfig.of(), "abc")
        assert next(iter(other)) in caught.value.what


def test_broken_connection_is_no_defect_and_memory_that_runs_out_stays_what_it_is() -> None:
    bootstrap = BootstrapGroup(rank=1, world_size=2, local_rank=1, store=None, address="", rendezvous_id="m")
    with pytest.raises(TrainerError, match="RM568"), bootstrap.waiting():
        raise RuntimeError("Connection closed by peer\nmore")
    with pytest.raises(OutOfMemory), bootstrap.waiting():
        raise OutOfMemory("HIP out of memory")
